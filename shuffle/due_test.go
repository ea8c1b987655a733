package shuffle

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"manta/objectstore"
	"manta/shuffle/credit"
)

func (s *Service) windowShare() (n int64) {
	s.usage.update(func(b *credit.Budget) { n = b.Share() })
	return n
}

// A node's memory is shared by all readers of an edge from the first on, and by none that will never come.
func TestReadersDue(t *testing.T) {
	const producers, partitions = 2, 8
	c := smallCluster(t, 1)
	s := c.svcs[0]
	whole := s.windowShare()
	each := s.cfg.MemoryLimit / 2 / (producers * partitions)
	require.Less(t, each, whole)
	j := c.job()
	for _, come := range []int{partitions, 1} { // the second edge's other readers never do
		e := c.edge(j, Streaming, producers, partitions)
		var ins []*Reader
		for p := range come {
			in, err := c.reader(context.Background(), e, p, testSchema)
			require.NoError(t, err)
			ins = append(ins, in)
			require.Equal(t, each, s.windowShare(), "after reader %d", p)
		}
		_, err := c.reader(context.Background(), e, 0, testSchema)
		require.ErrorIs(t, err, ErrEdge)
		for _, in := range ins {
			in.Close()
		}
	}
	require.Less(t, s.windowShare(), whole)
	j.Finish(nil)
	c.empty()
	require.Equal(t, whole, s.windowShare())
}

// Some readers take rows before the others are there. What goes to those does not go in small pieces then.
func TestReadersComeLate(t *testing.T) {
	const producers, partitions, first, each = 2, 64, 4, 4 << 20
	for _, nodes := range []int{1, 2} {
		t.Run(fmt.Sprint("nodes=", nodes), func(t *testing.T) {
			limit := int64(8 << 20 / nodes)
			c := newCluster(t, nodes, Config{MemoryLimit: limit, BatchBytes: 256 << 10}, objectstore.Config{MemoryLimit: 16 << 20})
			j := c.job()
			e := c.edge(j, Streaming, producers, partitions)
			g, ctx := errgroup.WithContext(context.Background())
			wrote := make([]Counters, producers)
			for i := range producers {
				g.Go(func() (err error) {
					out, err := c.writer(ctx, e, i, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
					if err != nil {
						return err
					}
					b := testBatch(c.mem, 0, 1<<12, partitions, 100)
					defer b.Release()
					for out.n.Bytes < each {
						if err := out.Write(b); err != nil {
							out.Abort(err)
							return err
						}
					}
					wrote[i], err = out.Close()
					return err
				})
			}
			late := make(chan struct{})
			early := make(chan struct{}, first)
			for p := range partitions {
				g.Go(func() error {
					if p >= first {
						<-late
					}
					in, err := c.reader(ctx, e, p, testSchema)
					if err != nil {
						return err
					}
					defer in.Close()
					for n := 0; ; n++ {
						b, err := in.Next()
						if err == io.EOF {
							return nil
						}
						if err != nil {
							return err
						}
						b.Release()
						if p < first && n == 0 {
							early <- struct{}{}
						}
					}
				})
			}
			within(t, 60*time.Second, func() {
				for range first {
					<-early
				}
				close(late)
				require.NoError(t, g.Wait())
			})
			var n Counters
			for _, w := range wrote {
				n.Add(w)
			}
			require.Greater(t, n.Bytes/n.Batches, int64(credit.MinWindow), "bytes of a batch, of %d", n.Batches)
			j.Finish(nil)
			c.empty()
		})
	}
}
