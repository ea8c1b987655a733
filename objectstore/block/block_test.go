package block

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func sample(mem memory.Allocator) arrow.RecordBatch {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "i", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(mem, schema)
	defer b.Release()
	for i := range 100 {
		if i%7 == 0 {
			for _, f := range b.Fields() {
				f.AppendNull()
			}
			continue
		}
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("row")
		_ = b.Field(2).(*array.BinaryDictionaryBuilder).AppendString([]string{"a", "b"}[i%2])
		l := b.Field(3).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Int32Builder).Append(int32(i))
	}
	return b.NewRecordBatch()
}

func TestRoundTrip(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := sample(mem)
	defer b.Release()
	part := b.NewSlice(13, 57)
	defer part.Release()
	buf, err := Encode(mem, b.Schema(), 0, b, part)
	require.NoError(t, err)
	freed := 0
	r, err := Decode(buf.Bytes(), b.Schema(), func() { freed++; buf.Free() })
	require.NoError(t, err)
	one, err := r.Next()
	require.NoError(t, err)
	two, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
	r.Close()
	require.Zero(t, freed, "batches are held")
	require.True(t, array.RecordEqual(b, one))
	one.Release()
	require.True(t, array.RecordEqual(part, two))
	require.Zero(t, freed)
	two.Release()
	require.Equal(t, 1, freed)
}

func TestDecodeRefuses(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	b := sample(mem)
	defer b.Release()
	buf, err := Encode(mem, b.Schema(), 0, b)
	require.NoError(t, err)
	defer buf.Free()
	other := arrow.NewSchema(b.Schema().Fields()[:1], nil)
	freed := 0
	_, err = Decode(buf.Bytes(), other, func() { freed++ })
	require.ErrorIs(t, err, ErrSchema)
	require.Equal(t, 1, freed)

	// Cut anywhere, or flip a byte after the schema (peers are trusted that far; Arrow's reader allocates what a schema
	// claims): an error or a batch, never a panic. What is cut is also always freed.
	good := buf.Bytes()
	var freedNow int
	try := func(data []byte) (err error) {
		freedNow = 0
		r, err := Decode(data, b.Schema(), func() { freedNow++ })
		if err != nil {
			return err
		}
		defer r.Close()
		for {
			x, err := r.Next()
			if err != nil {
				return err
			}
			x.Release()
		}
	}
	for n := 0; n < len(good)-8; n += 5 {
		require.NotErrorIs(t, try(append([]byte(nil), good[:n]...)), io.EOF, "cut at %d", n)
		require.Equal(t, 1, freedNow, "cut at %d", n)
	}
	schemaEnd := 8 + int(binary.LittleEndian.Uint32(good[4:]))
	for n := schemaEnd; n < len(good); n += 41 {
		bad := append([]byte(nil), good...)
		bad[n] ^= 0x41
		_ = try(bad)
	}
}

func TestPool(t *testing.T) {
	p := NewPool()
	for _, n := range []int{0, 1, 8192, 8193, 16384, 16385, 20_480, 20_481, 100_000, 1 << 20, 1<<20 + 1, 32 << 20, 33 << 20} {
		b := p.Allocate(n)
		require.Len(t, b, n)
		for i := range b {
			b[i] = byte(i)
		}
		want := append([]byte(nil), b...)
		b = p.Reallocate(n*2, b)
		require.Len(t, b, n*2)
		require.True(t, bytes.Equal(want, b[:n]), "%d bytes keep their content", n)
		p.Free(b)
	}
}

// No more than a quarter of a pooled buffer is unused.
func TestPoolSizes(t *testing.T) {
	p := NewPool()
	for n := 1<<minBits - 1; n <= 1<<maxBits; n += n/11 + 1 {
		b := p.Allocate(n)
		require.Len(t, b, n)
		require.LessOrEqual(t, cap(b), max(1<<minBits, n+n/4+1))
		require.True(t, pooled(cap(b)), "%d bytes come back to the pool", n)
		p.Free(b)
	}
}
