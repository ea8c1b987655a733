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

// Size is the memory of a batch: the bytes of all its buffers, as far as its rows reach.
func Size(batch arrow.RecordBatch) int64 { return arrayBytes(batch.Columns()) }

func arrayBytes(cols []arrow.Array) (n int64) {
	for _, c := range cols {
		n += dataBytes(c.Data())
	}
	return n
}

// dataBytes counts the rows of d only where its layout makes that cheap; a slice of any other type counts in proportion.
func dataBytes(d arrow.ArrayData) int64 {
	var n int64
	bufs := d.Buffers()
	switch t := d.DataType().(type) {
	case *arrow.StringType, *arrow.BinaryType:
		return spanBytes[int32](d, 4)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return spanBytes[int64](d, 8)
	case *arrow.DictionaryType:
		n = int64(d.Len()) * int64(t.IndexType.(arrow.FixedWidthDataType).BitWidth()) / 8
		if dict := d.Dictionary(); dict != nil {
			n += dataBytes(dict)
		}
		return n + validBytes(d)
	case *arrow.FixedSizeListType:
		// children carry the values
	case arrow.FixedWidthDataType:
		return (int64(d.Len())*int64(t.BitWidth())+7)/8 + validBytes(d)
	}
	for _, b := range bufs {
		if b != nil {
			n += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		n += dataBytes(c)
	}
	if all := d.Len() + d.Offset(); all > d.Len() {
		n = n * int64(d.Len()) / int64(all)
	}
	return n
}

func validBytes(d arrow.ArrayData) int64 {
	if bufs := d.Buffers(); len(bufs) == 0 || bufs[0] == nil {
		return 0
	}
	return int64(d.Len()+7) / 8
}

func spanBytes[O int32 | int64](d arrow.ArrayData, width int64) int64 {
	n := validBytes(d) + int64(d.Len())*width
	if d.Len() > 0 && d.Buffers()[1] != nil {
		offsets := as[O](d.Buffers()[1].Bytes())
		n += int64(offsets[d.Offset()+d.Len()] - offsets[d.Offset()])
	}
	return n
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
