package shuffle

import (
	"context"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"manta/objectstore/block"
)

var labels = arrow.NewSchema([]arrow.Field{
	{Name: "d", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true},
}, nil)

// Rows of types that have no layout of bare buffers cross as well; a reader that expects other types gets an error that says so.
func TestFormats(t *testing.T) {
	for _, want := range []*arrow.Schema{labels, testSchema} {
		c := smallCluster(t, 2)
		j := c.job()
		e := c.edge(j, Streaming, 1, 1)
		ctx, cancel := context.WithCancel(context.Background())
		r, err := c.reader(ctx, e, 0, want)
		require.NoError(t, err)
		w, err := c.writer(ctx, e, 0, WriterOptions{Columns: 1, Route: Route{Kind: To}, Schema: labels})
		require.NoError(t, err)
		b := array.NewRecordBuilder(c.mem, labels)
		for range 1000 {
			require.NoError(t, b.Field(0).(*array.BinaryDictionaryBuilder).AppendString([]string{"a", "b"}[rand.IntN(2)]))
		}
		batch := b.NewRecordBatch()
		b.Release()
		require.NoError(t, w.Write(batch))
		_, _ = w.Close() // of a reader that failed at once, an error
		got, err := r.Next()
		if want == labels {
			require.NoError(t, err)
			require.True(t, array.RecordEqual(batch, got))
			got.Release()
			_, err = r.Next()
			require.ErrorIs(t, err, io.EOF)
		} else {
			require.ErrorIs(t, err, block.ErrSchema)
			require.ErrorContains(t, err, "producer 0")
		}
		batch.Release()
		r.Close()
		w.Abort(nil)
		cancel()
		j.Finish(nil)
		c.empty()
	}
}

// A checksum of parts notices what moves from one to another, and chunks of one part do not matter.
func TestPartSums(t *testing.T) {
	data := make([]byte, 3*sumChunk+100)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	sum := func(parts ...[]byte) uint32 { return (&shared{parts: parts}).checksum() }
	all := sum(data)
	require.Equal(t, sumOf(data), all)
	require.Equal(t, all, sum(data[:sumChunk], data[sumChunk:]))
	require.NotEqual(t, all, sum(data[:50], data[50:]))
	require.NotEqual(t, sum(data[:50], data[50:99]), sum(data[50:99], data[:50]))
}
