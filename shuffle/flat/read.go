package flat

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Read returns the batch that data is, whose buffers point into it. mem frees data once the last of them is released, or, on
// error, at once; data must not change until then. Its address is a multiple of 8.
func (l *Layout) Read(data []byte, mem memory.Allocator) (arrow.RecordBatch, error) {
	whole := memory.NewBufferWithAllocator(data, mem)
	defer whole.Release()
	head := data[:min(len(data), l.HeadBytes())]
	// The lengths of the parts are not needed: what is in the head is right then, and says all.
	var room [64]int
	if _, err := l.Cut(head, int64(len(data)), room[:0]); err != nil {
		return nil, err
	}
	r := reader{whole: whole, words: head, at: len(head), buffers: make([]*memory.Buffer, l.buffers)}
	rows := r.word()
	columns := make([]arrow.Array, 0, len(l.nodes))
	defer func() {
		for _, c := range columns {
			c.Release()
		}
	}()
	for i := range l.nodes {
		d := r.array(&l.nodes[i], rows)
		if r.err != nil {
			if d != nil {
				d.Release()
			}
			return nil, r.err
		}
		columns = append(columns, array.MakeFromData(d))
		d.Release()
	}
	return array.NewRecordBatch(l.schema, columns, int64(rows)), nil
}

// reader makes arrays of a batch whose head was checked.
type reader struct {
	whole   *memory.Buffer
	words   []byte
	at      int              // where the next buffer begins
	buffers []*memory.Buffer // unused room for those of arrays
	err     error
}

func (r *reader) word() int {
	w := binary.LittleEndian.Uint64(r.words)
	r.words = r.words[8:]
	return int(w)
}

// next is the next buffer. An empty one is none of the batch's parts.
func (r *reader) next(n int) *memory.Buffer {
	b := memory.SliceBuffer(r.whole, r.at, n)
	r.at += n + -n&(align-1)
	return b
}

// array makes the next array; after an error, perhaps nothing.
func (r *reader) array(n *node, length int) arrow.ArrayData {
	var of [3]*memory.Buffer
	if n.kind == nothing {
		return r.data(n, length, of[:1], nil, length)
	}
	nulls := r.word()
	if nulls > 0 {
		of[0] = r.next((length + 7) / 8)
	}
	switch n.kind {
	case bits:
		of[1] = r.next((length + 7) / 8)
		return r.data(n, length, of[:2], nil, nulls)
	case fixed:
		of[1] = r.next(length * n.width)
		return r.data(n, length, of[:2], nil, nulls)
	case text:
		bytes := r.word()
		of[1] = r.offsets(n, length, bytes)
		of[2] = r.next(bytes)
		return r.data(n, length, of[:3], nil, nulls)
	case list:
		values := r.word()
		of[1] = r.offsets(n, length, values)
		return r.data(n, length, of[:2], []arrow.ArrayData{r.array(&n.children[0], values)}, nulls)
	case tuples:
		return r.data(n, length, of[:1], []arrow.ArrayData{r.array(&n.children[0], length*n.width)}, nulls)
	default: // group
		children := make([]arrow.ArrayData, len(n.children))
		for i := range children {
			children[i] = r.array(&n.children[i], length)
		}
		return r.data(n, length, of[:1], children, nulls)
	}
}

// data puts an array together. Buffers and children are taken.
func (r *reader) data(n *node, length int, of []*memory.Buffer, children []arrow.ArrayData, nulls int) arrow.ArrayData {
	buffers := r.buffers[:len(of):len(of)]
	r.buffers = r.buffers[len(of):]
	copy(buffers, of)
	d := array.NewData(n.dt, length, buffers, children, nulls, 0)
	for _, b := range of {
		if b != nil {
			b.Release()
		}
	}
	for _, c := range children {
		c.Release()
	}
	return d
}

// offsets is the next buffer, in which the offsets of so many values must rise from 0 to end.
func (r *reader) offsets(n *node, length, end int) *memory.Buffer {
	b := r.next((length + 1) * n.width)
	good := false
	if n.width == 8 {
		good = rising(view[int64](b.Bytes()), int64(end))
	} else {
		good = end < 1<<31 && rising(view[int32](b.Bytes()), int32(end))
	}
	if !good && r.err == nil {
		r.err = fmt.Errorf("%w: bad offsets of %s", ErrCorrupt, n.dt)
	}
	return b
}

// rising says whether offsets, of which there are some, go from 0 to end without a step back.
func rising[O int32 | int64](offsets []O, end O) bool {
	last, bad := offsets[0], O(0)
	for _, o := range offsets[1:] {
		bad |= o | (o - last) // no overflow while neither was ever negative
		last = o
	}
	return offsets[0] == 0 && last == end && bad >= 0
}

// view takes bytes as values.
func view[T int32 | int64](b []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}
