package shuffle

import (
	"context"
	"fmt"
	"sort"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"manta/objectstore"
	"manta/shuffle/keys"
)

// Every route, in every mode, loses no row and keeps its promise about where rows go.
func TestRoutes(t *testing.T) {
	const producers, partitions, batches, rows = 2, 3, 4, 700
	c := newCluster(t, 2, Config{MemoryLimit: 4 << 20}, objectstore.Config{MemoryLimit: 32 << 20})
	ints := array.NewInt64Builder(memory.DefaultAllocator)
	ints.AppendValues([]int64{1500, 3000}, nil)
	cut := ints.NewArray()
	ints.Release()
	defer cut.Release()
	bounds := array.NewRecordBatch(arrow.NewSchema(testSchema.Fields()[:1], nil), []arrow.Array{cut}, 2)
	defer bounds.Release()
	for _, mode := range Modes {
		for name, route := range map[string]Route{
			"key":         {Kind: ByKey, Columns: []int{0, 1, 2}},
			"range":       {Kind: ByRange, Keys: []keys.Key{{Column: 0}}, Bounds: bounds},
			"round robin": {Kind: RoundRobin},
		} {
			t.Run(fmt.Sprintf("%s/%s", mode, name), func(t *testing.T) {
				c.t = t
				j := c.job()
				e := c.edge(j, mode, producers, partitions)
				var want []string
				got := make([][]string, partitions)
				g, ctx := errgroup.WithContext(context.Background())
				for i := range producers {
					var all []arrow.RecordBatch
					for n := range batches { // both producers send the same rows
						b := testBatch(c.mem, n*rows, rows, partitions, 1)
						want = append(want, rowsOf(b)...)
						all = append(all, b)
					}
					g.Go(func() error {
						w, err := c.writer(ctx, e, i, WriterOptions{Columns: 3, Route: route, Schema: testSchema})
						if err != nil {
							return err
						}
						for _, b := range all {
							err := w.Write(b)
							b.Release()
							if err != nil {
								return err
							}
						}
						_, err = w.Close()
						return err
					})
				}
				for p := range partitions {
					g.Go(func() error {
						o := &outcome{got: got, readers: make([]Counters, partitions)}
						return c.consume(ctx, e, workload{}, p, o)
					})
				}
				require.NoError(t, g.Wait())
				var out []string
				seen := map[string]int{}
				for p, rows := range got {
					out = append(out, rows...)
					for _, row := range rows {
						var i int
						_, err := fmt.Sscanf(row, "%d|", &i)
						require.NoError(t, err)
						if at, ok := seen[row]; ok && route.Kind != RoundRobin {
							require.Equal(t, at, p, row)
						}
						seen[row] = p
						if route.Kind == ByRange {
							require.Equal(t, min(i/1500, 2), p)
						}
					}
				}
				sort.Strings(want)
				sort.Strings(out)
				require.Equal(t, want, out)
				if route.Kind == RoundRobin {
					for p := range got {
						require.InDelta(t, len(want)/partitions, len(got[p]), dealt)
					}
				}
				j.Finish(nil)
				c.empty()
			})
		}
	}
	j := c.job()
	defer j.Finish(nil)
	e := c.edge(j, Streaming, 1, partitions)
	short := bounds.NewSlice(0, 1)
	defer short.Release()
	for _, route := range []Route{{Kind: ByKey}, {Kind: ByKey, Columns: []int{3}}, {Kind: ByRange}, {Kind: 99},
		{Kind: ByRange, Keys: []keys.Key{{Column: 0}}, Bounds: short}} {
		_, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: route, Schema: testSchema})
		require.Error(t, err)
	}
}
