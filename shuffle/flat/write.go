package flat

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Parts is a batch as it is to be written, one part after another. It holds the batch, in whose memory most of them lie.
type Parts struct {
	parts [][]byte
	size  int64
	batch arrow.RecordBatch
	mem   memory.Allocator
	own   [][]byte // of mem
}

// Write makes the parts of a batch (borrowed) of the layout's types.
func (l *Layout) Write(batch arrow.RecordBatch, mem memory.Allocator) (*Parts, error) {
	if s := batch.Schema(); s != l.schema && Fingerprint(s) != l.types {
		return nil, fmt.Errorf("flat: columns %s where %s are due", s, l.schema)
	}
	batch.Retain()
	w := writer{p: &Parts{parts: make([][]byte, 1, 1+l.buffers), batch: batch, mem: mem}, head: make([]byte, 0, l.HeadBytes())}
	w.word(int(batch.NumRows()))
	for i := range l.nodes {
		d := batch.Column(i).Data()
		w.array(&l.nodes[i], d, d.Offset(), d.Len())
	}
	if w.err != nil {
		w.p.Free()
		return nil, w.err
	}
	w.p.parts[0] = w.head
	w.p.size += int64(len(w.head))
	return w.p, nil
}

// Parts are valid until Free. They are what Cut says: the head, then buffers and padding.
func (p *Parts) Parts() [][]byte { return p.parts }

// Size is the bytes of all parts.
func (p *Parts) Size() int64 { return p.size }

// Own is the memory that is not the batch's.
func (p *Parts) Own() (n int64) {
	for _, b := range p.own {
		n += int64(len(b))
	}
	return n
}

// Free may be called more than once.
func (p *Parts) Free() {
	if p.batch == nil {
		return
	}
	for _, b := range p.own {
		p.mem.Free(b)
	}
	p.batch.Release()
	*p = Parts{}
}

type writer struct {
	p    *Parts
	head []byte
	err  error
}

var zeros [align]byte

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("flat: "+format, args...)
	}
}

func (w *writer) word(n int) { w.head = binary.LittleEndian.AppendUint64(w.head, uint64(n)) }

// part adds a buffer.
func (w *writer) part(b []byte) {
	if len(b) == 0 {
		return
	}
	w.p.parts = append(w.p.parts, b)
	pad := -len(b) & (align - 1)
	if pad > 0 {
		w.p.parts = append(w.p.parts, zeros[:pad])
	}
	w.p.size += int64(len(b) + pad)
}

// scratch is memory that the parts have besides the batch's.
func (w *writer) scratch(n int) []byte {
	b := w.p.mem.Allocate(n)
	w.p.own = append(w.p.own, b)
	return b
}

// bits adds so many bits of b.
func (w *writer) bits(b []byte, from, length int) {
	if from%8 == 0 {
		w.part(b[from/8 : (from+length+7)/8])
		return
	}
	out := w.scratch((length + 7) / 8)
	if len(out) > 0 {
		out[len(out)-1] = 0
	}
	bitutil.CopyBitmap(b, from, length, out, 0)
	w.part(out)
}

// bytes is those of one of the array's buffers, at least n.
func (w *writer) bytes(d arrow.ArrayData, i, n int) []byte {
	if bs := d.Buffers(); i < len(bs) && bs[i] != nil && bs[i].Len() >= n {
		return bs[i].Bytes()
	}
	if n > 0 {
		w.fail("an array of %s without memory for its %d rows", d.DataType(), d.Len())
	}
	return nil
}

// array adds rows of d, which are counted as its buffers do.
func (w *writer) array(n *node, d arrow.ArrayData, from, length int) {
	if n.kind == nothing || w.err != nil {
		return
	}
	w.validity(d, from, length)
	switch n.kind {
	case bits:
		if b := w.bytes(d, 1, (from+length+7)/8); w.err == nil && length > 0 {
			w.bits(b, from, length)
		}
	case fixed:
		if b := w.bytes(d, 1, (from+length)*n.width); w.err == nil && length > 0 {
			w.part(b[from*n.width : (from+length)*n.width])
		}
	case text:
		first, last := w.offsets(n, d, from, length)
		if b := w.bytes(d, 2, last); w.err == nil {
			w.part(b[first:last])
		}
	case list:
		first, last := w.offsets(n, d, from, length)
		w.child(n, d, 0, first, last-first)
	case group:
		for i := range n.children {
			w.child(n, d, i, from, length)
		}
	case tuples:
		w.child(n, d, 0, from*n.width, length*n.width)
	}
}

// child adds rows of a child, which are counted as its parent does.
func (w *writer) child(n *node, d arrow.ArrayData, i, from, length int) {
	children := d.Children()
	if w.err != nil {
		return
	}
	if i >= len(children) || from+length > children[i].Len() {
		w.fail("an array of %s without its children", d.DataType())
		return
	}
	c := children[i]
	w.array(&n.children[i], c, c.Offset()+from, length)
}

// validity adds the number of nulls and, if there are any, the bitmap.
func (w *writer) validity(d arrow.ArrayData, from, length int) {
	nulls, bitmap := 0, []byte(nil)
	bs := d.Buffers()
	if d.NullN() != 0 && length > 0 && len(bs) > 0 && bs[0] != nil && bs[0].Len() > 0 {
		nulls = d.NullN()
		bitmap = w.bytes(d, 0, (from+length+7)/8)
		if w.err != nil {
			return
		}
		if nulls < 0 || from != d.Offset() || length != d.Len() {
			nulls = length - bitutil.CountSetBits(bitmap, from, length)
		}
	}
	w.word(nulls)
	if nulls > 0 {
		w.bits(bitmap, from, length)
	}
}

// offsets adds how far they reach, and them, from 0 on. It returns what they reach over.
func (w *writer) offsets(n *node, d arrow.ArrayData, from, length int) (first, last int) {
	if length == 0 {
		w.word(0)
		w.part(zeros[:n.width])
		return 0, 0
	}
	b := w.bytes(d, 1, (from+length+1)*n.width)
	if w.err != nil {
		return 0, 0
	}
	b = b[from*n.width : (from+length+1)*n.width]
	if n.width == 8 {
		return offsetsOf[int64](w, b)
	}
	return offsetsOf[int32](w, b)
}

func offsetsOf[O int32 | int64](w *writer, b []byte) (first, last int) {
	in := view[O](b)
	start := in[0]
	first, last = int(start), int(in[len(in)-1])
	if first < 0 || last < first {
		w.fail("bad offsets")
		return 0, 0
	}
	if start != 0 {
		b = w.scratch(int(unsafe.Sizeof(start)) * len(in))
		for i, out := 0, view[O](b); i < len(in); i++ {
			out[i] = in[i] - start
		}
	}
	w.word(last - first)
	w.part(b)
	return first, last
}
