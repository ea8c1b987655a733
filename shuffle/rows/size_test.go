package rows

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// Slices of a batch have together what it has, and equal ones the same, whatever the types.
func TestSizeOfSlices(t *testing.T) {
	number, text := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	for _, dt := range []arrow.DataType{
		number, text, arrow.FixedWidthTypes.Boolean, arrow.ListOf(number), arrow.LargeListOf(text), arrow.MapOf(text, number),
		arrow.FixedSizeListOf(4, number), arrow.StructOf(arrow.Field{Name: "a", Type: arrow.ListOf(text)}, arrow.Field{Name: "b", Type: number}),
	} {
		b := array.NewBuilder(memory.NewGoAllocator(), dt)
		const rows, part = 1024, 64
		for range rows {
			one(b)
		}
		a := b.NewArray()
		whole := dataBytes(a.Data())
		require.GreaterOrEqual(t, whole, int64(rows/8), dt)
		first := int64(-1)
		for at := int64(0); at < rows; at += part {
			s := array.NewSlice(a, at, at+part)
			size := dataBytes(s.Data())
			if first < 0 {
				first = size
			}
			require.Equal(t, first, size, "%s at %d", dt, at)
			half := array.NewSlice(s, part/2, part)
			require.Equal(t, size, 2*dataBytes(half.Data()), dt)
			half.Release()
			s.Release()
		}
		require.Equal(t, whole, first*rows/part, dt)
		a.Release()
		b.Release()
	}
}

// one appends a value, always the same.
func one(b array.Builder) {
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(7)
	case *array.StringBuilder:
		b.Append("seven")
	case *array.BooleanBuilder:
		b.Append(true)
	case *array.MapBuilder:
		b.Append(true)
		one(b.KeyBuilder())
		one(b.ItemBuilder())
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			one(b.FieldBuilder(i))
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range 4 {
			one(b.ValueBuilder())
		}
	case array.ListLikeBuilder:
		b.(interface{ Append(bool) }).Append(true)
		for range 3 {
			one(b.ValueBuilder())
		}
	}
}
