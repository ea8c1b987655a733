package rows

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

type varPart struct {
	offsets buf
	data    buf
	valid   validity
	n       int
}

// varlen builds (large) utf8 and binary columns, whose offsets are of type O.
type varlen[O int32 | int64] struct {
	mem   memory.Allocator
	dt    arrow.DataType
	width int // of O
	max   int64
	nulls bool // a null was seen, ever: partitions may have bitmaps
	parts []varPart
}

func newVarlen[O int32 | int64](mem memory.Allocator, dt arrow.DataType, partitions, width int) *varlen[O] {
	c := &varlen[O]{mem: mem, dt: dt, width: width, max: math.MaxInt64, parts: make([]varPart, partitions)}
	if width == 4 {
		c.max = math.MaxInt32
	}
	return c
}

// sources returns the offsets of arr's rows (one more than rows) and its data buffer.
func (c *varlen[O]) sources(arr arrow.Array) (offsets []O, data []byte) {
	d := arr.Data()
	if arr.Len() == 0 {
		return nil, nil
	}
	offsets = as[O](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+arr.Len()+1]
	if b := d.Buffers()[2]; b != nil {
		data = b.Bytes()
	}
	return offsets, data
}

func (c *varlen[O]) append(p int, arr arrow.Array, idx []int32) error {
	part := &c.parts[p]
	k := count(arr, idx)
	if k == 0 {
		return nil
	}
	offsets, data := c.sources(arr)
	if idx == nil {
		at, out := c.begin(part, k)
		first, last := offsets[0], offsets[k]
		copy(part.data.grow(c.mem, int(last-first)), data[first:last])
		for i := range out {
			out[i] = at + offsets[i+1] - first
		}
	} else if err := c.gather(part, offsets, data, idx); err != nil {
		return err
	}
	c.nulls = c.nulls || arr.NullN() > 0
	part.valid.append(c.mem, part.n, arr, idx, k)
	part.n += k
	return nil
}

// begin makes room for the offsets of k more values. It returns where the first one begins, and the offsets where they end.
func (c *varlen[O]) begin(part *varPart, k int) (at O, ends []O) {
	if part.n == 0 {
		clear(part.offsets.grow(c.mem, c.width))
	}
	return O(part.data.len), as[O](part.offsets.grow(c.mem, k*c.width))
}

// gather appends the values idx of data.
func (c *varlen[O]) gather(part *varPart, offsets []O, data []byte, idx []int32) error {
	var add int64
	for _, r := range idx {
		add += int64(offsets[r+1] - offsets[r])
	}
	if all := int64(part.data.len) + add; all > c.max {
		return fmt.Errorf("rows: %d bytes of %s in one batch", all, c.dt)
	}
	at, ends := c.begin(part, len(idx))
	part.data.grow(c.mem, int(add))
	gatherText(part.data.b[at:], ends, at, data, offsets, idx)
	return nil
}

// shortText is the size from which on a value is worth a call to copy it.
const shortText = 32

// gatherText copies the values idx of data, which end at offsets, to dst one after the other, and notes in ends where each of
// them ends, the first one beginning at `at`. What is behind the last one in dst may change: of short values more is copied
// than they have, in two moves.
func gatherText[O int32 | int64](dst []byte, ends []O, at O, data []byte, offsets []O, idx []int32) {
	ends = ends[:len(idx)]
	n := 0
	for i, r := range idx {
		from, to := int(offsets[r]), int(offsets[r+1])
		if to-from <= shortText && from+shortText <= len(data) && n+shortText <= len(dst) {
			*(*[shortText]byte)(dst[n:]) = *(*[shortText]byte)(data[from:])
		} else {
			copy(dst[n:], data[from:to])
		}
		n += to - from
		ends[i] = at + O(n)
	}
}

func (c *varlen[O]) scatter(arr arrow.Array, order, start []int32) error {
	c.nulls = c.nulls || arr.NullN() > 0
	offsets, data := c.sources(arr)
	for p := range c.parts {
		idx := order[start[p]:start[p+1]]
		if len(idx) == 0 {
			continue
		}
		part := &c.parts[p]
		if err := c.gather(part, offsets, data, idx); err != nil {
			return err
		}
		if c.nulls {
			part.valid.append(c.mem, part.n, arr, idx, len(idx))
		}
		part.n += len(idx)
	}
	return nil
}

func (c *varlen[O]) finish(p int) (arrow.Array, error) {
	part := &c.parts[p]
	n := part.n
	if n == 0 {
		clear(part.offsets.grow(c.mem, c.width))
	}
	valid, nulls := part.valid.take(c.mem, n)
	offsets, data := part.offsets.take(c.mem), part.data.take(c.mem)
	part.n = 0
	return makeArray(c.dt, n, nulls, valid, offsets, data), nil
}

func (c *varlen[O]) bytes(p int) int64 {
	part := &c.parts[p]
	return int64(part.offsets.len + part.data.len + part.valid.bits.buf.len)
}

// room counts all of arr's data: cheap, and close enough at sizes near the limit.
func (c *varlen[O]) room(p int, arr arrow.Array) bool {
	if c.width == 8 || arr.Len() == 0 {
		return true
	}
	offsets, _ := c.sources(arr)
	return int64(c.parts[p].data.len)+int64(offsets[len(offsets)-1]-offsets[0]) <= c.max
}

func (c *varlen[O]) release() {
	for p := range c.parts {
		part := &c.parts[p]
		part.offsets.free(c.mem)
		part.data.free(c.mem)
		part.valid.free(c.mem)
		part.n = 0
	}
}
