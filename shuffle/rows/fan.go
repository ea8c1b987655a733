package rows

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// fan is the first of two levels when there are many partitions. To scatter a batch costs a visit to every partition of every
// column; with two rows for each, the visits are all the time it takes, and none of the memory that they touch is in the core's
// cache. So rows go to groups of neighbouring partitions first, and a group that is full to its partitions, each of which
// then gets a whole batch of rows at once, out of memory that the cache holds.
type fan struct {
	groups *Builder // of the schema's columns and one for the partition
	shift  int      // a partition's group is its number without so many last bits
	of     []uint32 // scratch: the group of each row
}

// fanFrom is the number of partitions from which on two levels are faster than one.
const fanFrom = 512

// newFan returns nil where one level is faster.
func newFan(mem memory.Allocator, schema *arrow.Schema, partitions int) *fan {
	if partitions < fanFrom {
		return nil
	}
	f := &fan{}
	for 4<<(2*f.shift) <= partitions { // as many groups as partitions in each, or more
		f.shift++
	}
	fields := append(schema.Fields(), arrow.Field{Name: "partition", Type: arrow.PrimitiveTypes.Uint32})
	f.groups = newPlain(mem, arrow.NewSchema(fields, nil), (partitions-1)>>f.shift+1)
	return f
}

// setTarget makes groups as large as their partitions' batches together.
func (f *fan) setTarget(bytes int64) { f.groups.SetTarget(bytes << f.shift) }

// add gives rows (borrowed), whose partitions are parts (borrowed) of n, to their groups.
func (f *fan) add(cols []arrow.Array, parts []uint32, n int, full Emit) error {
	f.of = f.of[:0]
	for _, p := range parts {
		if p >= uint32(n) {
			return fmt.Errorf("%w: %d of %d", ErrPartition, p, n)
		}
		f.of = append(f.of, p>>f.shift)
	}
	numbers := memory.NewBufferBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(parts))), 4*len(parts)))
	column := makeArray(arrow.PrimitiveTypes.Uint32, len(parts), 0, nil, numbers)
	defer column.Release()
	return f.groups.spread(append(cols[:len(cols):len(cols)], column), f.of, full)
}

// opened undoes what add did to the rows of a group's batch.
func opened(batch arrow.RecordBatch) (cols []arrow.Array, parts []uint32) {
	last := int(batch.NumCols()) - 1
	return batch.Columns()[:last], batch.Column(last).(*array.Uint32).Uint32Values()
}

// part gives the rows of a full group (taken) to its partitions.
func (b *Builder) part(group arrow.RecordBatch, emit Emit) error {
	defer group.Release()
	cols, parts := opened(group)
	return b.spread(cols, parts, emit)
}

// unfan gives what the groups hold to their partitions.
func (b *Builder) unfan(emit Emit) error {
	return b.fan.groups.Flush(func(_ int, group arrow.RecordBatch) error { return b.part(group, emit) })
}
