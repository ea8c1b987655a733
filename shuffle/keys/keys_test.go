package keys

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// column reads values as JSON.
func column(t require.TestingT, mem memory.Allocator, dt arrow.DataType, json string) arrow.Array {
	a, _, err := array.FromJSON(mem, dt, strings.NewReader(json))
	require.NoError(t, err)
	return a
}

func batchOf(names string, cols ...arrow.Array) arrow.RecordBatch {
	fields := make([]arrow.Field, len(cols))
	for i, c := range cols {
		fields[i] = arrow.Field{Name: names[i : i+1], Type: c.DataType(), Nullable: true}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(cols[0].Len()))
}

func hashColumn(t require.TestingT, a arrow.Array) []uint64 {
	b := batchOf("a", a)
	defer b.Release()
	h, err := NewHasher(b.Schema(), []int{0})
	require.NoError(t, err)
	out, err := h.Hash(b, nil)
	require.NoError(t, err)
	return out
}

// Values that the package calls equal hash the same, and others do not.
func TestEqualAcrossTypes(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, family := range []struct {
		json  string
		types []arrow.DataType
	}{
		{`[0, 1, 7, null, 100]`, []arrow.DataType{
			arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
			arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		}},
		{`[-1, null, -128, 127]`, []arrow.DataType{
			arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		}},
		{`[0, 1.5, -2.25, null]`, []arrow.DataType{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64}},
		{`["0.25", "-1.50", null, "99.99"]`, []arrow.DataType{
			&arrow.Decimal32Type{Precision: 9, Scale: 2}, &arrow.Decimal64Type{Precision: 18, Scale: 2},
			&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 70, Scale: 2},
		}},
		{`["", "a", null, "a text that is longer than a view's inline part"]`, []arrow.DataType{
			arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dict,
		}},
		{`[[1, 2], [], null, [null], [1, null]]`, []arrow.DataType{
			arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.LargeListOf(arrow.PrimitiveTypes.Int64), arrow.ListViewOf(arrow.PrimitiveTypes.Int16),
		}},
		{`[{"x": 1, "y": ["a"]}, {"x": null, "y": ["a"]}, null, {"x": 1, "y": null}]`, []arrow.DataType{
			arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}),
		}},
	} {
		var first []uint64
		for _, dt := range family.types {
			a := column(t, mem, dt, family.json)
			got := hashColumn(t, a)
			slice := array.NewSlice(a, 1, int64(a.Len()))
			require.Equal(t, got[1:], hashColumn(t, slice), "a slice of %s", dt)
			slice.Release()
			a.Release()
			if first == nil {
				first = got
			}
			require.Equal(t, first, got, dt)
		}
		slices.Sort(first)
		require.Len(t, slices.Compact(first), len(first), family.json)
	}
}

func TestFloats(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.AppendValues([]float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0xFFF8000000000123), math.Inf(1)}, nil)
	a := b.NewArray()
	defer a.Release()
	h := hashColumn(t, a)
	require.Equal(t, h[0], h[1])
	require.Equal(t, h[2], h[3])
	require.NotEqual(t, h[0], h[2])
	require.NotEqual(t, h[2], h[4])
}

// The hash is part of what attempts and nodes of a job agree on: it does not change from version to version unnoticed.
func TestHashIsFixed(t *testing.T) {
	a := column(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, `[0, 1, null]`)
	defer a.Release()
	s := column(t, memory.DefaultAllocator, arrow.BinaryTypes.String, `["", "key", null]`)
	defer s.Release()
	b := batchOf("as", a, s)
	defer b.Release()
	h, err := NewHasher(b.Schema(), []int{0, 1})
	require.NoError(t, err)
	got, err := h.Hash(b, nil)
	require.NoError(t, err)
	require.Equal(t, []uint64{0x9521a69fa3e18465, 0x113afab1a0550a91, 0xc17a9ebaed2cda01}, got)
}

func TestPartitionsAreEven(t *testing.T) {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	const rows, n = 70_000, 7
	for i := range rows {
		b.Append(int64(i) * 1024)
	}
	a := b.NewArray()
	defer a.Release()
	in := batchOf("a", a)
	defer in.Release()
	h, err := NewHasher(in.Schema(), []int{0})
	require.NoError(t, err)
	parts, err := h.Partitions(in, n, nil)
	require.NoError(t, err)
	count := make([]int, n)
	for _, p := range parts {
		count[p]++
	}
	for _, c := range count {
		require.InDelta(t, rows/n, c, 0.05*rows/n)
	}
}

// Ranges puts every row where a search by the model's order puts it, and the partitions are in order.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		type row struct {
			f    float64
			null bool
			s    string
		}
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
			return row{
				rapid.SampledFrom([]float64{math.NaN(), -1, 0, math.Copysign(0, -1), 2.5, math.Inf(1)}).Draw(t, "f"),
				rapid.IntRange(0, 4).Draw(t, "null") == 0, rapid.SampledFrom([]string{"", "a", "ab", "b"}).Draw(t, "s"),
			}
		}), 0, 40).Draw(t, "rows")
		fb, sb := array.NewFloat64Builder(mem), array.NewStringBuilder(mem)
		defer fb.Release()
		defer sb.Release()
		for _, r := range rows {
			if r.null {
				fb.AppendNull()
			} else {
				fb.Append(r.f)
			}
			sb.Append(r.s)
		}
		f, s := fb.NewArray(), sb.NewArray()
		defer f.Release()
		defer s.Release()
		in := batchOf("fs", f, s)
		defer in.Release()
		order := []Key{{Column: 0, Descending: rapid.Bool().Draw(t, "desc"), NullsFirst: rapid.Bool().Draw(t, "first")}, {Column: 1, Descending: rapid.Bool().Draw(t, "desc2")}}
		rank := func(r row) (a, b float64) {
			switch {
			case r.null && order[0].NullsFirst:
				a = math.Inf(-1)
			case r.null:
				a = 100
			case math.IsNaN(r.f):
				a = 99
			default:
				a = min(r.f, 98)
			}
			if order[0].Descending && !r.null {
				a = -a
			}
			b = float64(slices.Index([]string{"", "a", "ab", "b"}, r.s))
			if order[1].Descending {
				b = -b
			}
			return a, b
		}
		less := func(x, y row) int {
			xa, xb := rank(x)
			ya, yb := rank(y)
			return cmp.Or(cmp.Compare(xa, ya), cmp.Compare(xb, yb))
		}
		n := rapid.IntRange(1, 5).Draw(t, "n")
		bounds, err := Bounds(mem, in, order, n)
		require.NoError(t, err)
		defer bounds.Release()
		if len(rows) > 0 {
			require.Equal(t, int64(n-1), bounds.NumRows())
		}
		r, err := NewRanges(in.Schema(), order, bounds)
		require.NoError(t, err)
		parts, err := r.Partitions(in, nil)
		require.NoError(t, err)
		require.Len(t, parts, len(rows))
		for i := range rows {
			for j := range rows {
				if parts[i] < parts[j] {
					require.Negative(t, less(rows[i], rows[j]))
				}
			}
		}
	})
}

func TestRefuses(t *testing.T) {
	union := arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32}}, []int8{0})
	schema := arrow.NewSchema([]arrow.Field{{Name: "u", Type: arrow.ListOf(union)}, {Name: "i", Type: arrow.PrimitiveTypes.Int64}}, nil)
	for _, columns := range [][]int{nil, {0}, {2}, {-1}} {
		_, err := NewHasher(schema, columns)
		require.ErrorIs(t, err, ErrKey)
	}
	down := column(t, memory.DefaultAllocator, arrow.PrimitiveTypes.Int64, `[2, 1]`)
	defer down.Release()
	bounds := batchOf("i", down)
	defer bounds.Release()
	for _, keys := range [][]Key{nil, {{Column: 0}}, {{Column: 1}}, {{Column: 5}}} {
		_, err := NewRanges(schema, keys, bounds)
		require.ErrorIs(t, err, ErrKey)
	}
	h, err := NewHasher(schema, []int{1})
	require.NoError(t, err)
	_, err = h.Hash(bounds, nil)
	require.ErrorIs(t, err, ErrKey)
}
