package shuffle

import (
	"context"
	"fmt"
	"io"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Two readers read two edges, each many times the memory, in opposite orders: as tasks do of which one finds nothing to
// join in the one input, and the other in the other.
func TestReadersOutOfStep(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		for _, kind := range []RouteKind{ByColumn, ToAll} {
			t.Run(fmt.Sprintf("nodes=%d/route=%d", nodes, kind), func(t *testing.T) {
				c := smallCluster(t, nodes)
				j := c.job()
				w := workload{mode: Streaming, producers: 2, partitions: 2, route: Route{Kind: kind}, batches: 40, rows: 500, width: 5, abort: -1}
				within(t, 60*time.Second, func() { outOfStep(t, c, [2]*Edge{c.edge(j, Streaming, 2, 2), c.edge(j, Streaming, 2, 2)}, w) })
				var spilled int64
				for _, s := range c.svcs {
					st := s.Stats()
					spilled += st.Spilled
					require.LessOrEqual(t, st.Peak, st.Limit*3/2, "%+v", st)
				}
				require.Positive(t, spilled)
				j.Finish(nil)
				c.empty()
			})
		}
	}
}

func outOfStep(t *testing.T, c *cluster, edges [2]*Edge, w workload) {
	var outs [2]*outcome
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(context.Background())
	for n, e := range edges {
		o := &outcome{want: make([][]string, 2), got: make([][]string, 2), writers: make([]Counters, w.producers)}
		outs[n] = o
		for i := range w.producers {
			g.Go(func() error { return c.produce(ctx, e, w, i, o, &mu) })
		}
	}
	for p := range w.partitions {
		g.Go(func() error {
			var ins [2]*Reader
			for n, e := range edges {
				in, err := c.reader(ctx, e, p, testSchema)
				if err != nil {
					return err
				}
				defer in.Close()
				ins[n] = in
			}
			for _, n := range []int{p, 1 - p} {
				for {
					b, err := ins[n].Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						return err
					}
					outs[n].got[p] = append(outs[n].got[p], rowsOf(b)...)
					b.Release()
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for _, o := range outs {
		for p := range o.want {
			sort.Strings(o.want[p])
			sort.Strings(o.got[p])
		}
		require.Equal(t, o.want, o.got)
	}
}

// A reader that takes nothing until the others have everything keeps nobody waiting, and only its own rows go to disk.
func TestReaderFarBehind(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint("nodes=", nodes), func(t *testing.T) {
			const partitions = 8
			c := smallCluster(t, nodes)
			j := c.job()
			e := c.edge(j, Streaming, 2, partitions)
			w := workload{mode: Streaming, producers: 2, partitions: partitions, route: Route{Kind: ByColumn}, batches: 60, rows: 800, width: 5, abort: -1}
			o := &outcome{want: make([][]string, partitions), got: make([][]string, partitions), writers: make([]Counters, 2)}
			var mu sync.Mutex
			g, ctx := errgroup.WithContext(context.Background())
			for i := range w.producers {
				g.Go(func() error { return c.produce(ctx, e, w, i, o, &mu) })
			}
			var others sync.WaitGroup
			others.Add(partitions - 1)
			var bytes int64 // of the slow one
			for p := range partitions {
				g.Go(func() error {
					in, err := c.reader(ctx, e, p, testSchema)
					if err != nil {
						return err
					}
					defer in.Close()
					if p == 0 {
						others.Wait()
					} else {
						defer others.Done()
					}
					for {
						b, err := in.Next()
						if err == io.EOF {
							break
						}
						if err != nil {
							return err
						}
						o.got[p] = append(o.got[p], rowsOf(b)...)
						b.Release()
					}
					if p == 0 {
						bytes = in.Close().Bytes
					}
					return nil
				})
			}
			within(t, 60*time.Second, func() { require.NoError(t, g.Wait()) })
			for p := range o.want {
				sort.Strings(o.want[p])
				sort.Strings(o.got[p])
			}
			require.Equal(t, o.want, o.got)
			var spilled int64
			for _, s := range c.svcs {
				spilled += s.Stats().Spilled
			}
			require.Positive(t, spilled)
			require.Less(t, spilled, 2*bytes, "rows of others went to disk")
			j.Finish(nil)
			c.empty()
		})
	}
}
