package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fixedPart is one partition of a column of fixed width.
type fixedPart struct {
	values buf
	valid  validity
	n      int
}

// fixed builds columns whose values all have the same number of bytes.
type fixed struct {
	mem   memory.Allocator
	dt    arrow.DataType
	width int
	parts []fixedPart
}

func (c *fixed) append(p int, arr arrow.Array, idx []int32) error {
	part := &c.parts[p]
	k := count(arr, idx)
	data := arr.Data()
	off := data.Offset()
	var src []byte
	if b := data.Buffers()[1]; b != nil && k > 0 {
		src = b.Bytes()[off*c.width : (off+arr.Len())*c.width]
	}
	dst := part.values.grow(c.mem, k*c.width)
	switch {
	case idx == nil:
		copy(dst, src)
	case c.width == 8:
		gather(as[uint64](dst), as[uint64](src), idx)
	case c.width == 4:
		gather(as[uint32](dst), as[uint32](src), idx)
	case c.width == 16:
		gather(as[[2]uint64](dst), as[[2]uint64](src), idx)
	case c.width == 2:
		gather(as[uint16](dst), as[uint16](src), idx)
	case c.width == 1:
		gather(dst, src, idx)
	default:
		w := c.width
		for i, r := range idx {
			copy(dst[i*w:(i+1)*w], src[int(r)*w:])
		}
	}
	part.valid.append(c.mem, part.n, arr, idx, k)
	part.n += k
	return nil
}

// gather is the kernel: sequential writes, reads within one small batch.
func gather[T any](dst, src []T, idx []int32) {
	dst = dst[:len(idx)]
	for i, r := range idx {
		dst[i] = src[r]
	}
}

func (c *fixed) finish(p int) (arrow.Array, error) {
	part := &c.parts[p]
	n := part.n
	valid, nulls := part.valid.take(c.mem, n)
	values := part.values.take(c.mem)
	part.n = 0
	return makeArray(c.dt, n, nulls, valid, values), nil
}

func (c *fixed) bytes(p int) int64 {
	part := &c.parts[p]
	return int64(part.values.len + part.valid.bits.buf.len)
}

func (c *fixed) room(int, arrow.Array) bool { return true }

func (c *fixed) release() {
	for p := range c.parts {
		c.parts[p].values.free(c.mem)
		c.parts[p].valid.free(c.mem)
		c.parts[p].n = 0
	}
}

// makeArray takes the buffers.
func makeArray(dt arrow.DataType, n, nulls int, buffers ...*memory.Buffer) arrow.Array {
	data := array.NewData(dt, n, buffers, nil, nulls, 0)
	defer data.Release()
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
	return array.MakeFromData(data)
}

func count(arr arrow.Array, idx []int32) int {
	if idx == nil {
		return arr.Len()
	}
	return len(idx)
}
