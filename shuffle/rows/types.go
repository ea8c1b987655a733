package rows

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// newColumn chooses the path for a type.
func newColumn(mem memory.Allocator, dt arrow.DataType, partitions int) column {
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return &boolean{mem: mem, parts: make([]boolPart, partitions)}
	case *arrow.StringType, *arrow.BinaryType:
		return newVarlen[int32](mem, dt, partitions, 4)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return newVarlen[int64](mem, dt, partitions, 8)
	case *arrow.DictionaryType, arrow.ExtensionType:
		// fixed width by interface, but with a dictionary or a storage type to carry along
	case arrow.FixedWidthDataType:
		if w := t.BitWidth(); w > 0 && w%8 == 0 {
			return &fixed{mem: mem, dt: dt, width: w / 8, parts: make([]fixedPart, partitions)}
		}
	}
	return &general{mem: mem, dt: dt, parts: make([][]arrow.Array, partitions), size: make([]int64, partitions)}
}

// HasUnion reports a column with a union in it. Arrow's writer fails on a slice of one, so batches that are to be written
// must not be cut.
func HasUnion(schema *arrow.Schema) bool {
	var union func(arrow.DataType) bool
	union = func(t arrow.DataType) bool {
		if _, ok := t.(arrow.UnionType); ok {
			return true
		}
		nested, ok := t.(arrow.NestedType)
		return ok && slices.ContainsFunc(nested.Fields(), func(f arrow.Field) bool { return union(f.Type) })
	}
	return slices.ContainsFunc(schema.Fields(), func(f arrow.Field) bool { return union(f.Type) })
}

// scatterEach is scatter for columns without a faster way.
func scatterEach(c column, arr arrow.Array, order, start []int32) error {
	for p := range len(start) - 1 {
		if idx := order[start[p]:start[p+1]]; len(idx) > 0 {
			if err := c.append(p, arr, idx); err != nil {
				return err
			}
		}
	}
	return nil
}
