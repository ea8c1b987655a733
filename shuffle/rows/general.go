package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// general builds columns of any type: it keeps a copy of each run of rows and concatenates at the end.
type general struct {
	mem   memory.Allocator
	dt    arrow.DataType
	parts [][]arrow.Array
	size  []int64
}

func (c *general) append(p int, arr arrow.Array, idx []int32) error {
	part, err := take(c.mem, arr, idx)
	if err != nil {
		return err
	}
	c.parts[p] = append(c.parts[p], part)
	c.size[p] += dataBytes(part.Data())
	return nil
}

// take copies the rows idx of arr (all when nil) into an array of their own. It retains nothing of arr but
// dictionaries: the caller's batch may be reused.
func take(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	var runs []arrow.Array
	defer func() {
		for _, r := range runs {
			r.Release()
		}
	}()
	if idx == nil {
		runs = append(runs, array.NewSlice(arr, 0, int64(arr.Len())))
	}
	for i := 0; i < len(idx); {
		j := i + 1
		for j < len(idx) && idx[j] == idx[j-1]+1 {
			j++
		}
		runs = append(runs, array.NewSlice(arr, int64(idx[i]), int64(idx[j-1])+1))
		i = j
	}
	return concatenate(mem, runs)
}

func (c *general) scatter(arr arrow.Array, order, start []int32) error {
	return scatterEach(c, arr, order, start)
}

func (c *general) finish(p int) (arrow.Array, error) {
	parts := c.parts[p]
	c.parts[p], c.size[p] = nil, 0
	if len(parts) == 1 {
		return parts[0], nil
	}
	defer func() {
		for _, a := range parts {
			a.Release()
		}
	}()
	if len(parts) == 0 {
		return array.MakeArrayOfNull(c.mem, c.dt, 0), nil
	}
	return concatenate(c.mem, parts)
}

func (c *general) bytes(p int) int64 { return c.size[p] }

func (c *general) room(p int, arr arrow.Array) bool {
	return c.size[p]+dataBytes(arr.Data()) < 1<<30
}

func (c *general) release() {
	for p, parts := range c.parts {
		for _, a := range parts {
			a.Release()
		}
		c.parts[p], c.size[p] = nil, 0
	}
}
