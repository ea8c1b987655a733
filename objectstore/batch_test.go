package objectstore

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// testBatch has a fixed column, one with nulls, one of lists of strings, and one of a dictionary.
func testBatch(mem memory.Allocator, rows int) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "words", Type: arrow.ListOf(arrow.BinaryTypes.String)},
		{Name: "kind", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%3 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Float64Builder).Append(float64(i) / 2)
		}
		list := b.Field(2).(*array.ListBuilder)
		list.Append(true)
		for k := range i % 4 {
			list.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat("ab", k+i%5))
		}
		if err := b.Field(3).(*array.BinaryDictionaryBuilder).AppendString(fmt.Sprint("kind ", i%5)); err != nil {
			panic(err)
		}
	}
	return b.NewRecordBatch()
}

func TestBatches(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit = 4 << 20 })
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	for _, rows := range []int{0, 1, 100, 20_000} { // small and large values, and a slice of each
		whole := testBatch(mem, rows)
		for _, b := range []arrow.RecordBatch{whole, whole.NewSlice(int64(rows/3), int64(rows))} {
			id, err := s.PutBatch("job", b)
			require.NoError(t, err)
			got, err := s.GetBatch(id)
			require.NoError(t, err)
			require.True(t, array.RecordEqual(b, got), "%d rows", rows)
			require.True(t, b.Schema().Equal(got.Schema()))
			b.Release()
			// It stays valid when everybody else lets go, for as long as a part of it is used.
			column := got.Column(2)
			column.Retain()
			got.Release()
			require.NoError(t, s.Release(id, "job"))
			require.Equal(t, int64(1), s.Stats().Objects)
			require.NotEmpty(t, fmt.Sprint(column))
			column.Release()
			require.Zero(t, s.Stats().Objects)
		}
	}
	requireEmpty(t, s)
}

// Put copies once and get never: counted by what is allocated, and seen from where the buffers are.
func TestBatchesAreReadInPlace(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit = 64 << 20 })
	n := array.NewInt64Builder(memory.DefaultAllocator)
	values := make([]int64, 2<<20)
	for i := range values {
		values[i] = int64(i)
	}
	n.AppendValues(values, nil)
	column := n.NewInt64Array()
	n.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBatch(schema, []arrow.Array{column}, int64(column.Len()))
	column.Release()
	defer b.Release()

	allocated := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var id ID
	require.Less(t, allocated(func() {
		var err error
		id, err = s.PutBatch("job", b)
		require.NoError(t, err)
	}), uint64(1<<20), "of 16 MiB")
	o, err := s.Get(id)
	require.NoError(t, err)
	defer o.Release()
	var got arrow.RecordBatch
	require.Less(t, allocated(func() {
		got, err = s.GetBatch(id)
		require.NoError(t, err)
	}), uint64(1<<20), "of 16 MiB")
	defer got.Release()
	at := got.Column(0).(*array.Int64).Int64Values()
	from, to := uintptr(unsafe.Pointer(&o.Bytes()[0])), uintptr(unsafe.Pointer(&o.Bytes()[len(o.Bytes())-1]))
	require.GreaterOrEqual(t, uintptr(unsafe.Pointer(&at[0])), from)
	require.LessOrEqual(t, uintptr(unsafe.Pointer(&at[len(at)-1])), to)
	require.Zero(t, uintptr(unsafe.Pointer(&at[0]))%8)
	require.Equal(t, values, at)
}

func TestBatchesThatAreNone(t *testing.T) {
	s := open(t, nil)
	_, err := s.GetBatch(newID(true))
	require.ErrorIs(t, err, ErrNotFound)
	for _, v := range [][]byte{nil, []byte("no batch"), value(1, 300_000)} {
		id := put(t, s, "job", v)
		_, err = s.GetBatch(id)
		require.ErrorIs(t, err, ErrNoBatch)
		require.ErrorContains(t, err, id.String())
		require.NoError(t, s.Release(id, "job"), "and it is not pinned any more")
	}
	requireEmpty(t, s)
}
