package rows

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// whole is a batch that is made of the rows of one scatter alone.
type whole struct {
	p    int
	idx  []int32
	slab *slab
	cols []arrow.Array
}

// pickWhole makes batches for the partitions that hold nothing and get as much as a batch at once, and takes their rows out of
// order and start. Without a column builder in between each lies in one slab of the right size.
func (b *Builder) pickWhole(cols []arrow.Array, emit Emit) error {
	n := len(b.order)
	if n == 0 {
		return nil
	}
	size := arrayBytes(cols)
	least := b.target * int64(n) / max(size, 1) // rows of a batch, if all are as large
	if int64(n) < least {
		return nil
	}
	picked := b.whole[:0]
	rest := b.rest[:0]
	from := b.start[0]
	for p := range b.rows {
		to := b.start[p+1]
		b.start[p] = int32(len(rest))
		switch idx := b.order[from:to]; {
		case len(idx) > 0 && int64(len(idx)) >= least && b.rows[p] == 0:
			picked = append(picked, whole{p: p, idx: idx})
		default:
			rest = append(rest, idx...)
		}
		from = to
	}
	b.start[len(b.rows)] = int32(len(rest))
	b.order, b.rest, b.whole = rest, b.order, picked
	defer func() {
		for _, w := range picked {
			releaseAll(w.cols)
		}
		clear(picked)
	}()
	for i := range picked {
		w := &picked[i]
		// What its values take on average, and what buffers are rounded up to; a bit more is allocated apart.
		w.slab = newSlab(b.mem, int(size*int64(len(w.idx))/int64(n))+2*slabAlign*len(cols))
	}
	err := b.pickColumns(picked, cols)
	for i := range picked {
		picked[i].slab.close()
	}
	for i := range picked {
		if err != nil {
			return err
		}
		w := &picked[i]
		batch := array.NewRecordBatch(b.schema, w.cols, int64(len(w.idx)))
		releaseAll(w.cols)
		w.cols = nil
		err = emit(w.p, batch)
	}
	return err
}

// pickColumns goes through one column after the other, so that what it reads is in the cache.
func (b *Builder) pickColumns(picked []whole, cols []arrow.Array) error {
	for c, column := range b.cols {
		for i := range picked {
			w := &picked[i]
			if w.cols == nil {
				w.cols = make([]arrow.Array, 0, len(b.cols))
			}
			a, err := column.pick(w.slab, cols[c], w.idx)
			if err != nil {
				return err
			}
			w.cols = append(w.cols, a)
		}
	}
	return nil
}

// pickValid returns the null bitmap of the rows idx of arr and their nulls, or nil and 0.
func pickValid(mem memory.Allocator, arr arrow.Array, idx []int32) (*memory.Buffer, int) {
	if arr.NullN() == 0 {
		return nil, 0
	}
	var v validity
	v.append(mem, 0, arr, idx, len(idx))
	return v.take(mem, len(idx))
}

func (c *fixed) pick(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	valid, nulls := pickValid(mem, arr, idx)
	dst := mem.Allocate(len(idx) * c.width)
	gather(dst, c.values(arr), c.width, idx)
	return makeArray(c.dt, len(idx), nulls, valid, memory.NewBufferWithAllocator(dst, mem)), nil
}

func (c *boolean) pick(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	valid, nulls := pickValid(mem, arr, idx)
	var m bits
	data := arr.Data()
	m.gather(mem, data.Buffers()[1].Bytes(), data.Offset(), idx, len(idx))
	return makeArray(arrow.FixedWidthTypes.Boolean, len(idx), nulls, valid, m.buf.take(mem)), nil
}

func (c *varlen[O]) pick(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	from, src := c.sources(arr)
	offsets := mem.Allocate((len(idx) + 1) * c.width)
	out := as[O](offsets)
	var n int64
	for _, r := range idx {
		n += int64(from[r+1] - from[r])
	}
	if n > c.max {
		mem.Free(offsets)
		return nil, fmt.Errorf("rows: %d bytes of %s in one batch", n, c.dt)
	}
	data := mem.Allocate(int(n))
	out[0] = 0
	gatherText(data, out[1:], 0, src, from, idx)
	valid, nulls := pickValid(mem, arr, idx)
	return makeArray(c.dt, len(idx), nulls, valid,
		memory.NewBufferWithAllocator(offsets, mem), memory.NewBufferWithAllocator(data, mem)), nil
}

func (c *general) pick(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error) {
	return take(mem, arr, idx)
}
