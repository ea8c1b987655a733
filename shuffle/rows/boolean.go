package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

type boolPart struct {
	values bits
	valid  validity
}

// boolean builds columns of one bit a value.
type boolean struct {
	mem   memory.Allocator
	parts []boolPart
}

func (c *boolean) append(p int, arr arrow.Array, idx []int32) error {
	part := &c.parts[p]
	k := count(arr, idx)
	if k == 0 {
		return nil
	}
	data := arr.Data()
	part.valid.append(c.mem, part.values.n, arr, idx, k)
	part.values.gather(c.mem, data.Buffers()[1].Bytes(), data.Offset(), idx, k)
	return nil
}

func (c *boolean) scatter(arr arrow.Array, order, start []int32) error {
	return scatterEach(c, arr, order, start)
}

func (c *boolean) finish(p int) (arrow.Array, error) {
	part := &c.parts[p]
	n := part.values.n
	valid, nulls := part.valid.take(c.mem, n)
	values := part.values.buf.take(c.mem)
	part.values.n = 0
	return makeArray(arrow.FixedWidthTypes.Boolean, n, nulls, valid, values), nil
}

func (c *boolean) bytes(p int) int64 {
	part := &c.parts[p]
	return int64(part.values.buf.len + part.valid.bits.buf.len)
}

func (c *boolean) room(int, arrow.Array) bool { return true }

func (c *boolean) release() {
	for p := range c.parts {
		c.parts[p].values.buf.free(c.mem)
		c.parts[p].values.n = 0
		c.parts[p].valid.free(c.mem)
	}
}
