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
	nulls bool // a null was seen, ever: partitions may have bitmaps
	parts []fixedPart
}

// values are the bytes of arr's rows.
func (c *fixed) values(arr arrow.Array) []byte {
	data := arr.Data()
	b := data.Buffers()[1]
	if b == nil || arr.Len() == 0 {
		return nil
	}
	return b.Bytes()[data.Offset()*c.width : (data.Offset()+arr.Len())*c.width]
}

func (c *fixed) append(p int, arr arrow.Array, idx []int32) error {
	part := &c.parts[p]
	k := count(arr, idx)
	src := c.values(arr)
	dst := part.values.grow(c.mem, k*c.width)
	if idx == nil {
		copy(dst, src)
	} else {
		gather(dst, src, c.width, idx)
	}
	c.nulls = c.nulls || arr.NullN() > 0
	part.valid.append(c.mem, part.n, arr, idx, k)
	part.n += k
	return nil
}

func (c *fixed) scatter(arr arrow.Array, order, start []int32) error {
	// Bitmaps first: they look at the rows that a partition held before.
	c.nulls = c.nulls || arr.NullN() > 0
	if c.nulls {
		for p := range c.parts {
			if idx := order[start[p]:start[p+1]]; len(idx) > 0 {
				c.parts[p].valid.append(c.mem, c.parts[p].n, arr, idx, len(idx))
			}
		}
	}
	src := c.values(arr)
	from := start[0]
	for p := range c.parts {
		to := start[p+1]
		if idx := order[from:to]; len(idx) > 0 {
			part := &c.parts[p]
			gather(part.values.grow(c.mem, len(idx)*c.width), src, c.width, idx)
			part.n += len(idx)
		}
		from = to
	}
	return nil
}

// gather is the kernel: it copies the rows idx of src to dst, in order.
func gather(dst, src []byte, width int, idx []int32) {
	switch width {
	case 8:
		gatherOf[uint64](dst, src, idx)
	case 4:
		gatherOf[uint32](dst, src, idx)
	case 16:
		gatherOf[[2]uint64](dst, src, idx)
	case 2:
		gatherOf[uint16](dst, src, idx)
	case 1:
		gatherOf[uint8](dst, src, idx)
	default:
		copyRows(dst, src, width, idx)
	}
}

func gatherOf[T any](to, from []byte, idx []int32) {
	src := as[T](from)
	dst := as[T](to)[:len(idx)]
	for i, r := range idx {
		dst[i] = src[r]
	}
}

// copyRows copies the rows idx of src to dst, for any width.
func copyRows(dst, src []byte, width int, idx []int32) {
	for i, r := range idx {
		copy(dst[i*width:(i+1)*width], src[int(r)*width:])
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
