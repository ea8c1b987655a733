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
	if part.n == 0 {
		clear(part.offsets.grow(c.mem, c.width))
	}
	at := O(part.data.len)
	out := as[O](part.offsets.grow(c.mem, k*c.width))
	if idx == nil {
		first, last := offsets[0], offsets[k]
		copy(part.data.grow(c.mem, int(last-first)), data[first:last])
		for i := range out {
			out[i] = at + offsets[i+1] - first
		}
	} else {
		var add int64
		for _, r := range idx {
			add += int64(offsets[r+1] - offsets[r])
		}
		if int64(at)+add > c.max {
			return fmt.Errorf("rows: %d bytes of %s in one batch", int64(at)+add, c.dt)
		}
		dst := part.data.grow(c.mem, int(add))
		n := 0
		for i, r := range idx {
			n += copy(dst[n:], data[offsets[r]:offsets[r+1]])
			out[i] = at + O(n)
		}
	}
	part.valid.append(c.mem, part.n, arr, idx, k)
	part.n += k
	return nil
}

func (c *varlen[O]) scatter(arr arrow.Array, order, start []int32) error {
	return scatterEach(c, arr, order, start)
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
