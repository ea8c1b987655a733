package rows

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var types = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
	arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us, arrow.FixedWidthTypes.MonthDayNanoInterval,
	&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 50, Scale: 2},
	&arrow.FixedSizeBinaryType{ByteWidth: 3},
	arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.LargeBinary,
	arrow.BinaryTypes.StringView, arrow.Null,
	arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.LargeListOf(arrow.BinaryTypes.String), arrow.ListViewOf(arrow.PrimitiveTypes.Int64),
	arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16),
	arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, arrow.Field{Name: "b", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String},
	arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.BinaryTypes.String}),
	arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []int8{0, 1}),
	arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, []int8{3, 7}),
	arrow.ListOf(arrow.SparseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, []int8{0})),
	arrow.StructOf(arrow.Field{Name: "u", Nullable: true, Type: arrow.DenseUnionOf([]arrow.Field{{Name: "i", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, []int8{0})}),
	arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
}

const long = "0123456789abcdefghijklmnopqrstuvwxyz and more"

// appendRandom gives a builder one more value.
func appendRandom(b array.Builder, r *rand.Rand, nulls bool) {
	if _, ree := b.(*array.RunEndEncodedBuilder); nulls && !ree && r.IntN(5) == 0 {
		b.AppendNull()
		return
	}
	text := []string{"", "a", "naïve", "0123456789abcdefghij", long[:shortText], long}[r.IntN(6)]
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(r.Int()))
	case *array.Int16Builder:
		b.Append(int16(r.Int()))
	case *array.Uint16Builder:
		b.Append(uint16(r.Int()))
	case *array.Int32Builder:
		b.Append(int32(r.Int()))
	case *array.Int64Builder:
		b.Append(int64(r.Int()))
	case *array.Float32Builder:
		b.Append([]float32{0, 1.5, float32(math.NaN()), float32(math.Inf(1)), float32(math.Copysign(0, -1))}[r.IntN(5)])
	case *array.Float64Builder:
		b.Append([]float64{0, 1.5, math.NaN(), math.Inf(-1), math.Copysign(0, -1)}[r.IntN(5)])
	case *array.BooleanBuilder:
		b.Append(r.IntN(2) == 0)
	case *array.Date32Builder:
		b.Append(arrow.Date32(r.IntN(1e4)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(r.IntN(1e9)))
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(r.IntN(9)), Days: int32(r.IntN(9)), Nanoseconds: int64(r.IntN(9))})
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(r.Int()), r.Uint64()))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromI64(int64(r.Int())))
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte{byte(r.Int()), 2, byte(r.Int())})
	case *array.StringBuilder:
		b.Append(text)
	case *array.LargeStringBuilder:
		b.Append(text)
	case *array.StringViewBuilder:
		b.Append(text)
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BinaryDictionaryBuilder:
		_ = b.AppendString(text)
	case *array.MapBuilder:
		b.Append(true)
		for i := range r.IntN(3) {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint(i))
			appendRandom(b.ItemBuilder(), r, nulls)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			appendRandom(b.ValueBuilder(), r, nulls)
		}
	case *array.LargeListBuilder:
		b.Append(true)
		for range r.IntN(4) {
			appendRandom(b.ValueBuilder(), r, nulls)
		}
	case *array.ListViewBuilder:
		n := r.IntN(4)
		b.AppendWithSize(true, n)
		for range n {
			appendRandom(b.ValueBuilder(), r, nulls)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		appendRandom(b.ValueBuilder(), r, nulls)
		appendRandom(b.ValueBuilder(), r, nulls)
	case *array.StructBuilder:
		b.Append(true)
		for i := range b.NumField() {
			appendRandom(b.FieldBuilder(i), r, nulls)
		}
	case *array.SparseUnionBuilder:
		n := b.NumChildren()
		pick := r.IntN(n)
		b.Append(b.Type().(*arrow.SparseUnionType).TypeCodes()[pick])
		for i := range n {
			if i == pick {
				appendRandom(b.Child(i), r, nulls)
			} else {
				b.Child(i).AppendEmptyValue()
			}
		}
	case *array.DenseUnionBuilder:
		pick := r.IntN(b.NumChildren())
		b.Append(b.Type().(*arrow.DenseUnionType).TypeCodes()[pick])
		appendRandom(b.Child(pick), r, nulls)
	case *array.RunEndEncodedBuilder:
		b.Append(uint64(1 + r.IntN(3)))
		appendRandom(b.ValueBuilder(), r, nulls)
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

func randomArray(mem memory.Allocator, dt arrow.DataType, n int, r *rand.Rand, nulls bool) arrow.Array {
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	for range n {
		appendRandom(b, r, nulls)
	}
	a := b.NewArray()
	if a.Len() > n { // run-end encoded: several rows an append
		defer a.Release()
		return array.NewSlice(a, 0, int64(n))
	}
	return a
}

// Scatter and Add give every partition the rows that a loop over rows gives it, in order, for every type.
func TestAgainstModel(t *testing.T) {
	for _, dt := range types {
		t.Run(dt.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkModel(t, dt) })
		})
	}
}

func checkModel(t *rapid.T, dt arrow.DataType) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	partitions := rapid.SampledFrom([]int{1, 2, 5, 17, 300}).Draw(t, "partitions")
	target := rapid.SampledFrom([]int64{1, 200, 1 << 20}).Draw(t, "target")
	scatter := rapid.Bool().Draw(t, "scatter")
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: dt, Nullable: true}}, nil)
	b := New(mem, schema, partitions, target)
	want, got := make([][]string, partitions), make([][]string, partitions)
	emit := func(p int, batch arrow.RecordBatch) error {
		defer batch.Release()
		if batch.NumRows() == 0 || int64(batch.Column(0).Len()) != batch.NumRows() {
			t.Fatalf("a batch of %d rows with a column of %d", batch.NumRows(), batch.Column(0).Len())
		}
		for i := range int(batch.NumRows()) {
			got[p] = append(got[p], value(batch.Column(0), i))
		}
		return nil
	}
	for range rapid.IntRange(0, 6).Draw(t, "batches") {
		n := rapid.SampledFrom([]int{0, 1, 3, 8, 70}).Draw(t, "rows")
		cut := 0
		if n > 0 {
			cut = r.IntN(n)
		}
		whole := randomArray(mem, dt, n+cut, r, rapid.Bool().Draw(t, "nulls"))
		col := array.NewSlice(whole, int64(cut), int64(cut+n))
		whole.Release()
		pb := array.NewUint32Builder(mem)
		to := r.IntN(partitions)
		for i := range n {
			p := to
			if scatter {
				p = r.IntN(partitions)
			}
			pb.Append(uint32(p))
			want[p] = append(want[p], value(col, i))
		}
		pcol := pb.NewArray()
		pb.Release()
		in := array.NewRecordBatch(arrow.NewSchema(append(schema.Fields(), arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32}), nil), []arrow.Array{col, pcol}, int64(n))
		col.Release()
		pcol.Release()
		var err error
		if scatter {
			err = b.Scatter(in, 1, emit)
		} else {
			err = b.Add(to, in, emit)
		}
		in.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if rapid.Bool().Draw(t, "flush") {
		if err := b.Flush(emit); err != nil {
			t.Fatal(err)
		}
		if b.Bytes() != 0 {
			t.Fatalf("%d bytes after a flush", b.Bytes())
		}
		require.Equal(t, want, got)
	}
	b.Release()
	mem.AssertSize(t, 0)
}

// value is one value as text, exact for floats.
func value(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "NULL"
	}
	switch a := a.(type) {
	case *array.Float32:
		return fmt.Sprint(math.Float32bits(a.Value(i)))
	case *array.Float64:
		return fmt.Sprint(math.Float64bits(a.Value(i)))
	case array.Union:
		child := a.Field(a.ChildID(i))
		at := i
		if d, ok := a.(*array.DenseUnion); ok {
			at = int(d.ValueOffset(i))
		}
		return fmt.Sprint(a.TypeCode(i), value(child, at))
	case *array.RunEndEncoded:
		return value(a.Values(), a.GetPhysicalIndex(i))
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		var out []string
		for ; from < to; from++ {
			out = append(out, value(a.ListValues(), int(from)))
		}
		return fmt.Sprint(out)
	case *array.Struct:
		var out []string
		for f := range a.NumField() {
			out = append(out, value(a.Field(f), i))
		}
		return fmt.Sprint(out)
	}
	return a.ValueStr(i)
}

func TestRefuses(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil)
	batch := func(second arrow.DataType, fill func(array.Builder)) arrow.RecordBatch {
		b := array.NewRecordBuilder(mem, arrow.NewSchema([]arrow.Field{schema.Field(0), {Name: "p", Type: second, Nullable: true}}, nil))
		defer b.Release()
		b.Field(0).(*array.Int64Builder).Append(1)
		fill(b.Field(1))
		return b.NewRecordBatch()
	}
	emit := func(int, arrow.RecordBatch) error { panic("nothing is whole") }
	b := New(mem, schema, 3, 1<<20)
	defer b.Release()
	u32 := arrow.PrimitiveTypes.Uint32
	for name, in := range map[string]arrow.RecordBatch{
		"too large": batch(u32, func(b array.Builder) { b.(*array.Uint32Builder).Append(3) }),
		"null":      batch(u32, func(b array.Builder) { b.AppendNull() }),
		"type":      batch(arrow.PrimitiveTypes.Int32, func(b array.Builder) { b.(*array.Int32Builder).Append(1) }),
	} {
		require.ErrorIs(t, b.Scatter(in, 1, emit), ErrPartition, name)
		require.ErrorIs(t, b.Scatter(in, 2, emit), ErrPartition, name)
		in.Release()
	}
	other := New(mem, arrow.NewSchema([]arrow.Field{{Name: "x", Type: u32}}, nil), 1, 1)
	in := batch(u32, func(b array.Builder) { b.AppendNull() })
	defer in.Release()
	require.ErrorIs(t, other.Add(0, in, emit), ErrSchema)
	require.Zero(t, b.Bytes())
}

// Rows of several columns stay together: of all widths side by side, with nulls from some batch on, whatever memory there is.
func TestColumnsStayTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		partitions := rapid.SampledFrom([]int{packFrom - 1, packFrom, fanFrom, 1000}).Draw(t, "partitions")
		target := rapid.SampledFrom([]int64{1, 300, 5000, 1 << 20}).Draw(t, "target")
		kinds := rapid.SliceOfN(rapid.SampledFrom(types[:14]), 1, 9).Draw(t, "types") // fixed widths, and text
		hot := rapid.IntRange(1, partitions).Draw(t, "partitions that get rows")
		var fields []arrow.Field
		for i, dt := range kinds {
			fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: dt, Nullable: true})
		}
		b := New(mem, arrow.NewSchema(fields, nil), partitions, target)
		want, got := make([]string, partitions), make([]string, partitions)
		row := func(cols []arrow.Array, i int) (s string) {
			for _, c := range cols {
				s += value(c, i) + "|"
			}
			return s + "\n"
		}
		emit := func(p int, batch arrow.RecordBatch) error {
			defer batch.Release()
			for i := range int(batch.NumRows()) {
				got[p] += row(batch.Columns(), i)
			}
			return nil
		}
		for range rapid.IntRange(1, 8).Draw(t, "batches") {
			n := rapid.SampledFrom([]int{1, 50, 600}).Draw(t, "rows")
			nulls := rapid.Bool().Draw(t, "nulls")
			var cols []arrow.Array
			for _, dt := range kinds {
				cols = append(cols, randomArray(mem, dt, n, r, nulls))
			}
			parts := make([]uint32, n)
			for i := range parts {
				parts[i] = uint32(r.IntN(hot))
				want[parts[i]] += row(cols, i)
			}
			in := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, int64(n))
			releaseAll(cols)
			require.NoError(t, b.ScatterTo(in, parts, emit))
			in.Release()
			if rapid.Bool().Draw(t, "less memory") {
				target = max(1, target/3)
				b.SetTarget(target)
			}
		}
		require.NoError(t, b.Flush(emit))
		require.Zero(t, b.Bytes())
		require.Equal(t, want, got)
		b.Release()
		mem.AssertSize(t, 0)
	})
}

// What is held is counted, and within what targets allow: whether rows go to all partitions alike or nearly all to one.
func TestPackIsBounded(t *testing.T) {
	const partitions, target, rows = packFrom, 64 << 10, 2048
	for _, hot := range []int{0, 90} { // percent of the rows that go to one partition
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		r := rand.New(rand.NewPCG(uint64(hot), 1))
		var fields []arrow.Field
		var cols []arrow.Array
		for i := range 5 {
			fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int64, Nullable: true})
			cols = append(cols, randomArray(mem, fields[i].Type, rows, r, i == 4))
		}
		in := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rows)
		releaseAll(cols)
		whole := mem.CurrentAlloc()
		b := New(mem, in.Schema(), partitions, target)
		got := int64(0)
		drop := func(_ int, batch arrow.RecordBatch) error {
			got += batch.NumRows()
			batch.Release()
			return nil
		}
		parts := make([]uint32, rows)
		for range 50 {
			for i := range parts {
				if parts[i] = uint32(r.IntN(partitions)); r.IntN(100) < hot {
					parts[i] = 3
				}
			}
			require.NoError(t, b.ScatterTo(in, parts, drop))
			held := int64(mem.CurrentAlloc() - whole)
			require.LessOrEqual(t, b.Bytes(), int64(partitions*target))
			require.LessOrEqual(t, held, b.Bytes()+1024, "what is held is counted")
		}
		require.NoError(t, b.Flush(drop))
		require.Equal(t, int64(50*rows), got)
		b.Release()
		in.Release()
		mem.AssertSize(t, 0)
	}
}
