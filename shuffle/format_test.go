package shuffle

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore/block"
	"manta/shuffle/shufflepb"
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

// A block that is not one batch is an error: none would be taken for the end, and of two one would be lost.
func TestFormatOfOneBatch(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	f := newFormat(labels)
	require.Nil(t, f.layout)
	batch, _, err := array.RecordFromJSON(mem, labels, strings.NewReader(`[{"d": "a"}]`))
	require.NoError(t, err)
	defer batch.Release()
	for n := range 3 {
		b, err := block.Encode(mem, labels, 0, slices.Repeat([]arrow.RecordBatch{batch}, n)...)
		require.NoError(t, err)
		data := mem.Allocate(len(b.Bytes()))
		copy(data, b.Bytes())
		b.Free()
		got, err := f.decode(mem, data)
		if n == 1 {
			require.NoError(t, err)
			require.True(t, array.RecordEqual(batch, got))
			got.Release()
			continue
		}
		require.ErrorIs(t, err, block.ErrCorrupt, n)
	}
}

// What comes of an object with another sum than it left with is not used.
func TestObjectSums(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	far := &farBlocks{
		e: &Edge{Producers: []actors.NodeID{"n"}}, streams: map[actors.NodeID]*farStream{"n": {wire: newWire(here)}},
	}
	defer here.Close()
	data := []byte("some bytes")
	go func() {
		w := newWire(there)
		for _, sum := range []uint32{sumOf(data), sumOf(data) + 1} {
			f, err := w.recv()
			if err != nil {
				return
			}
			_, _ = w.text(int(f.size))
			part := frame{kind: framePart, a: uint64(len(data)), sum: sum}
			_ = w.send(outgoing{f: part, block: share(data, nil)})
		}
	}()
	q := queuedRef{ref: &shufflepb.Ref{Object: make([]byte, 16), Size: int64(len(data))}}
	fetch := func() error {
		var sum digest
		return far.fetch(q, &sum, func(w *wire, n int64) error { return w.readBlock(make([]byte, n), &sum) })
	}
	require.NoError(t, fetch())
	require.ErrorIs(t, fetch(), ErrCorrupt)
}
