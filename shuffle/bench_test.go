package shuffle

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"golang.org/x/sync/errgroup"

	"manta/actors"
	"manta/objectstore"
	"manta/objectstore/block"
)

// A hash shuffle of 8 INT64 columns in batches of 2,048 rows: two producers, few partitions or many, on one node or on two.
func BenchmarkShuffle(b *testing.B) {
	for _, partitions := range []int{16, 1024} {
		b.Run(fmt.Sprintf("partitions=%d", partitions), func(b *testing.B) { benchmarkShuffle(b, partitions) })
	}
}

func benchmarkShuffle(b *testing.B, partitions int) {
	const producers, rows, batches = 2, 2048, 512 // 64 MiB an iteration and producer
	var fields []arrow.Field
	for i := range 8 {
		fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int64})
	}
	schema := arrow.NewSchema(fields, nil)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(append(fields, arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32}), nil))
	defer rb.Release()
	r := rand.New(rand.NewPCG(1, 2))
	for range rows {
		for i := range 8 {
			rb.Field(i).(*array.Int64Builder).Append(r.Int64())
		}
		rb.Field(8).(*array.Uint32Builder).Append(uint32(r.IntN(partitions)))
	}
	in := rb.NewRecordBatch()
	defer in.Release()
	for _, nodes := range []int{1, 2} {
		for _, mode := range Modes {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, mode), func(b *testing.B) {
				c := newCluster(b, nodes, Config{Allocator: block.NewPool()}, objectstore.Config{MemoryLimit: 1 << 30})
				b.SetBytes(producers * batches * rows * 64)
				for b.Loop() {
					j := c.job()
					e := &Edge{Job: j.ID(), ID: 1, Mode: mode}
					for i := range producers {
						e.Producers = append(e.Producers, c.nodes[i%nodes].ID())
					}
					for p := range partitions {
						e.Consumers = append(e.Consumers, c.nodes[p%nodes].ID())
					}
					if err := c.pass(j, e, in, schema, batches); err != nil {
						b.Fatal(err)
					}
					j.Finish(nil)
				}
				var peak int64
				for _, s := range c.svcs {
					peak = max(peak, s.Stats().Peak)
				}
				b.ReportMetric(float64(peak)/(1<<20), "peakMiB")
			})
		}
	}
}

// pass sends the same batch many times through an exchange.
func (c *cluster) pass(j *actors.Job, e *Edge, in arrow.RecordBatch, schema *arrow.Schema, batches int) error {
	g, ctx := errgroup.WithContext(context.Background())
	for i := range e.Producers {
		g.Go(func() error {
			w, err := c.writer(ctx, e, i, WriterOptions{Columns: 8, Route: Route{Column: 8}, Schema: schema})
			if err != nil {
				return err
			}
			for range batches {
				if err := w.Write(in); err != nil {
					w.Abort(err)
					return err
				}
			}
			_, err = w.Close()
			return err
		})
	}
	for p := range e.Consumers {
		g.Go(func() error {
			r, err := c.reader(ctx, e, p, schema)
			if err != nil {
				return err
			}
			defer r.Close()
			for {
				b, err := r.Next()
				if err == io.EOF {
					return nil
				}
				if err != nil {
					return err
				}
				b.Release()
			}
		})
	}
	return g.Wait()
}
