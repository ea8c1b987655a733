package flat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"manta/objectstore/block"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// values are some of each plain type.
var values = []struct {
	dt   arrow.DataType
	some []string
}{
	{arrow.PrimitiveTypes.Int8, []string{"-1", "7"}},
	{arrow.PrimitiveTypes.Int64, []string{"-1", "7", "0"}},
	{arrow.PrimitiveTypes.Float64, []string{"1.5", "-0.25", "-0"}},
	{arrow.FixedWidthTypes.Boolean, []string{"true", "false"}},
	{arrow.FixedWidthTypes.Timestamp_us, []string{"2001-02-03T04:05:06Z"}},
	{arrow.FixedWidthTypes.MonthDayNanoInterval, []string{`{"months":1,"days":2,"nanoseconds":3}`}},
	{&arrow.Decimal128Type{Precision: 38, Scale: 2}, []string{"1.25", "-7"}},
	{&arrow.Decimal256Type{Precision: 50, Scale: 2}, []string{"1.25", "-7"}},
	{&arrow.FixedSizeBinaryType{ByteWidth: 3}, []string{"YWJj"}},
	{arrow.BinaryTypes.String, []string{"", "a", "naïve", "0123456789abcdefghij"}},
	{arrow.BinaryTypes.LargeString, []string{"", "a", "0123456789abcdefghij"}},
	{arrow.BinaryTypes.Binary, []string{"", "YWJj"}},
	{arrow.BinaryTypes.LargeBinary, []string{"", "YWJj"}},
	{extensions.NewUUIDType(), []string{"00000000-0000-0000-0000-000000000007"}},
	{extensions.NewBool8Type(), []string{"true", "false"}},
}

// laid are types with a layout, others those without.
var (
	laid = func() (out []arrow.DataType) {
		for _, v := range values {
			out = append(out, v.dt)
		}
		text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
		return append(out,
			arrow.Null, arrow.ListOf(number), arrow.LargeListOf(text), arrow.ListOf(arrow.ListOf(text)), arrow.MapOf(text, number),
			arrow.FixedSizeListOf(3, text), arrow.ListOf(arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Boolean)), arrow.ListOf(arrow.Null),
			arrow.StructOf(arrow.Field{Name: "a", Type: number, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(text), Nullable: true}),
			arrow.StructOf(arrow.Field{Name: "m", Type: arrow.MapOf(text, arrow.ListOf(number)), Nullable: true}),
			arrow.ListOf(extensions.NewUUIDType()))
	}()
	others = []arrow.DataType{
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, arrow.BinaryTypes.StringView,
		arrow.ListViewOf(arrow.PrimitiveTypes.Int64), arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
		arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32}}, []int8{0}),
		arrow.StructOf(arrow.Field{Name: "v", Type: arrow.BinaryTypes.BinaryView}),
	}
)

// fill gives a builder one more value.
func fill(b array.Builder, r *rand.Rand, nulls bool) {
	if nulls && r.IntN(4) == 0 {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.MapBuilder:
		b.Append(true)
		for range r.IntN(3) {
			fill(b.KeyBuilder(), r, false)
			fill(b.ItemBuilder(), r, nulls)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		for range b.Type().(*arrow.FixedSizeListType).Len() {
			fill(b.ValueBuilder(), r, nulls)
		}
	case array.ListLikeBuilder:
		b.(interface{ Append(bool) }).Append(true)
		for range r.IntN(4) {
			fill(b.ValueBuilder(), r, nulls)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			fill(b.FieldBuilder(i), r, nulls)
		}
	default:
		for _, v := range values {
			if arrow.TypeEqual(v.dt, b.Type()) {
				if err := b.AppendValueFromString(v.some[r.IntN(len(v.some))]); err != nil {
					panic(err)
				}
				return
			}
		}
		panic(fmt.Sprintf("no values of %s", b.Type()))
	}
}

func schemaOf(types ...arrow.DataType) *arrow.Schema {
	var fields []arrow.Field
	for i, t := range types {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: t, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

func batchOf(mem memory.Allocator, s *arrow.Schema, rows int, r *rand.Rand, nulls bool) arrow.RecordBatch {
	b := array.NewRecordBuilder(mem, s)
	defer b.Release()
	for range rows {
		for _, f := range b.Fields() {
			fill(f, r, nulls)
		}
	}
	return b.NewRecordBatch()
}

// joined is parts in one piece of memory.
func joined(mem memory.Allocator, parts [][]byte) []byte {
	all := bytes.Join(parts, nil)
	data := mem.Allocate(len(all))
	copy(data, all)
	return data
}

// A batch comes out as it went in and as it comes out of Arrow's own format, whatever slice of a slice it is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(t, 0)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var types []arrow.DataType
		for range rapid.IntRange(0, 4).Draw(t, "columns") {
			types = append(types, laid[rapid.IntRange(0, len(laid)-1).Draw(t, "type")])
		}
		s := schemaOf(types...)
		rows := rapid.SampledFrom([]int{0, 1, 7, 8, 50}).Draw(t, "rows")
		b := batchOf(mem, s, rows, r, rapid.Bool().Draw(t, "nulls"))
		for range rapid.IntRange(0, 2).Draw(t, "slices") {
			from := r.IntN(int(b.NumRows()) + 1)
			part := b.NewSlice(int64(from), int64(from+r.IntN(int(b.NumRows())-from+1)))
			b.Release()
			b = part
		}
		defer b.Release()

		l := New(s)
		p, err := l.Write(b, mem)
		require.NoError(t, err)
		lengths := []int{}
		for _, part := range p.Parts()[1:] {
			lengths = append(lengths, len(part))
		}
		cut, err := l.Cut(p.Parts()[0], p.Size(), nil)
		require.NoError(t, err)
		require.Equal(t, lengths, append([]int{}, cut...))
		data := joined(mem, p.Parts())
		require.Len(t, data, int(p.Size()))
		p.Free()
		p.Free()
		got, err := l.Read(data, mem)
		require.NoError(t, err)
		defer got.Release()
		require.True(t, array.RecordEqual(b, got), "%s\n%s", b, got)
		require.Equal(t, s, got.Schema())

		ipc, err := block.Encode(mem, s, 0, b)
		require.NoError(t, err)
		blocks, err := block.Decode(ipc.Bytes(), s, ipc.Free)
		require.NoError(t, err)
		defer blocks.Close()
		same, err := blocks.Next()
		require.NoError(t, err)
		defer same.Release()
		require.True(t, array.RecordEqual(same, got))
		for i, c := range got.Columns() {
			require.Equal(t, same.Column(i).NullN(), c.NullN())
		}
	})
}

// Large buffers are not copied, and are freed with the last batch that needs them.
func TestNoCopy(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	s := schemaOf(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String)
	b := batchOf(mem, s, 5000, rand.New(rand.NewPCG(1, 2)), false)
	l := New(s)
	p, err := l.Write(b, mem)
	require.NoError(t, err)
	require.Zero(t, p.Own())
	b.Release()
	require.Equal(t, 8*l.words, l.HeadBytes())
	data := joined(mem, p.Parts())
	p.Free()
	got, err := l.Read(data, mem)
	require.NoError(t, err)
	column := got.Column(0).(*array.Int64)
	column.Retain()
	got.Release()
	require.Equal(t, &data[l.HeadBytes()], &column.Data().Buffers()[1].Bytes()[0])
	require.Equal(t, len(data), mem.CurrentAlloc())
	column.Release()
}

func TestTypes(t *testing.T) {
	for _, dt := range laid {
		require.NotNil(t, New(schemaOf(dt)), "%s", dt)
	}
	for _, dt := range others {
		require.Nil(t, New(schemaOf(arrow.PrimitiveTypes.Int8, dt)), "%s", dt)
	}
	seen := map[uint64]arrow.DataType{}
	for _, dt := range append(append([]arrow.DataType{
		arrow.FixedSizeListOf(4, arrow.BinaryTypes.String), arrow.FixedWidthTypes.Timestamp_ns,
		arrow.StructOf(arrow.Field{Name: "x", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.ListOf(arrow.PrimitiveTypes.Int64))}),
	}, laid...), others...) {
		f := Fingerprint(schemaOf(dt))
		if _, ok := dt.(arrow.ExtensionType); !ok {
			require.NotContains(t, seen, f, "%s", dt)
			seen[f] = dt
		}
	}
	require.Equal(t, Fingerprint(schemaOf(extensions.NewBool8Type())), Fingerprint(schemaOf(arrow.PrimitiveTypes.Int8)))
	require.NotEqual(t, Fingerprint(schemaOf()), Fingerprint(schemaOf(arrow.Null)))

	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := batchOf(mem, schemaOf(arrow.PrimitiveTypes.Int64), 3, rand.New(rand.NewPCG(1, 2)), false)
	defer b.Release()
	_, err := New(schemaOf(arrow.PrimitiveTypes.Int8)).Write(b, mem)
	require.ErrorContains(t, err, "are due")
}

// look reads every value, of many rows of nothing the first ones.
func look(b arrow.RecordBatch) {
	for _, c := range b.Columns() {
		for i := range min(c.Len(), 10_000) {
			_ = c.ValueStr(i)
		}
		_ = c.NullN()
	}
}

// readAny reads bytes that may be anything.
func readAny(t require.TestingT, l *Layout, data []byte) error {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	b, err := l.Read(joined(mem, [][]byte{data}), mem)
	if err == nil {
		look(b)
		b.Release()
	} else {
		require.ErrorIs(t, err, ErrCorrupt)
	}
	require.Zero(t, mem.CurrentAlloc())
	return err
}

// What was cut, or changed anywhere, is refused or can be read: lengths and offsets are checked.
func TestRefuses(t *testing.T) {
	mem := memory.NewGoAllocator()
	r := rand.New(rand.NewPCG(3, 4))
	for _, dt := range laid {
		s := schemaOf(dt, arrow.BinaryTypes.String)
		b := batchOf(mem, s, 20, r, true)
		l := New(s)
		p, err := l.Write(b, mem)
		require.NoError(t, err)
		good := joined(mem, p.Parts())
		require.NoError(t, readAny(t, l, good))
		for n := range good {
			require.Error(t, readAny(t, l, good[:n]), "%s cut at %d", dt, n)
		}
		require.Error(t, readAny(t, l, append(good[:len(good):len(good)], make([]byte, 8)...)))
		for range 500 {
			bad := bytes.Clone(good)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(bad))
				if r.IntN(2) == 0 {
					at = r.IntN(l.HeadBytes())
				}
				bad[at] ^= byte(1 << r.IntN(8))
			}
			_ = readAny(t, l, bad)
		}
	}
}

// Lengths whose products overflow are refused, as are offsets that step back or reach too far.
func TestRefusesNumbers(t *testing.T) {
	words := func(list ...uint64) (out []byte) {
		for _, w := range list {
			out = binary.LittleEndian.AppendUint64(out, w)
		}
		return out
	}
	offsets := func(list ...uint32) (out []byte) {
		for _, w := range list {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
		return append(out, make([]byte, -len(out)&7)...)
	}
	text, wide := New(schemaOf(arrow.BinaryTypes.String)), New(schemaOf(arrow.FixedSizeListOf(1<<30, arrow.PrimitiveTypes.Int64)))
	numbers := New(schemaOf(arrow.PrimitiveTypes.Int64))
	require.NoError(t, readAny(t, text, append(append(words(2, 0, 3), offsets(0, 1, 3)...), "abc\x00\x00\x00\x00\x00"...)))
	for name, bad := range map[string]struct {
		l    *Layout
		data []byte
	}{
		"step back":     {text, append(append(words(2, 0, 3), offsets(0, 5, 3)...), "abc\x00\x00\x00\x00\x00"...)},
		"negative":      {text, append(append(words(2, 0, 3), offsets(0, 1<<31, 3)...), "abc\x00\x00\x00\x00\x00"...)},
		"wraps":         {text, append(append(words(3, 0, 3), offsets(0, 1, 1<<31, 3)...), "abc\x00\x00\x00\x00\x00"...)},
		"not from 0":    {text, append(append(words(2, 0, 3), offsets(1, 1, 3)...), "abc\x00\x00\x00\x00\x00"...)},
		"short":         {text, append(append(words(2, 0, 3), offsets(0, 1, 2)...), "abc\x00\x00\x00\x00\x00"...)},
		"far":           {text, append(append(words(2, 0, 3), offsets(0, 1, 4)...), "abc\x00\x00\x00\x00\x00"...)},
		"overflow":      {numbers, words(1<<61, 0)},
		"many":          {numbers, words(1<<39, 0)},
		"wide":          {wide, words(1<<39, 0, 0)},
		"nulls":         {numbers, words(1, 2, 0, 7)},
		"negative rows": {numbers, words(^uint64(0), 0)},
	} {
		require.Error(t, readAny(t, bad.l, bad.data), name)
	}
}

// Bytes of any kind give an error or a batch that can be read.
func FuzzRead(f *testing.F) {
	mem := memory.NewGoAllocator()
	r := rand.New(rand.NewPCG(5, 6))
	for i, dt := range laid {
		b := batchOf(mem, schemaOf(dt), 5, r, true)
		p, err := New(b.Schema()).Write(b, mem)
		require.NoError(f, err)
		f.Add(byte(i), bytes.Join(p.Parts(), nil))
	}
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		_ = readAny(t, New(schemaOf(laid[int(which)%len(laid)])), data)
	})
}

// Arrow panics at a map whose keys are null; that they are follows from the type here.
func TestNullKeys(t *testing.T) {
	l := New(schemaOf(arrow.MapOf(arrow.Null, arrow.PrimitiveTypes.Int32)))
	var data []byte
	for _, word := range []uint64{1, 0, 1, 0, 0, 1 << 32, 7} { // rows; nulls and values of the map, nulls of entries and items; offsets; the item
		data = binary.LittleEndian.AppendUint64(data, word)
	}
	_, err := l.Read(data, memory.NewGoAllocator())
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, "1 nulls where none may be")
}

// A bitmap that is too short for its array is an error.
func TestShortBitmap(t *testing.T) {
	short, values := memory.NewBufferBytes([]byte{1}), memory.NewBufferBytes(make([]byte, 8*100))
	d := array.NewData(arrow.PrimitiveTypes.Int64, 100, []*memory.Buffer{short, values}, nil, array.UnknownNullCount, 0)
	a := array.NewInt64Data(d)
	d.Release()
	s := schemaOf(arrow.PrimitiveTypes.Int64)
	b := array.NewRecordBatch(s, []arrow.Array{a}, 100)
	a.Release()
	defer b.Release()
	_, err := New(s).Write(b, memory.NewGoAllocator())
	require.Error(t, err)
}
