package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/credit"
)

func smallCluster(t *testing.T, n int) *cluster {
	return newCluster(t, n, Config{MemoryLimit: 256 << 10, BatchBytes: 16 << 10}, objectstore.Config{MemoryLimit: 16 << 20})
}

// within runs f and fails when it takes long.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("still running after %v", d)
	}
}

// Some readers leave early: the others still get all their rows. All leave: producers stop with ErrClosed.
func TestEarlyClose(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range Modes {
		for n := range 4 {
			all, route := n&1 != 0, Route{Kind: []RouteKind{ByColumn, ToAll}[n>>1]}
			t.Run(fmt.Sprintf("%s/all=%v/route=%d", mode, all, route.Kind), func(t *testing.T) {
				c.t = t
				j := c.job()
				w := workload{mode: mode, producers: 3, partitions: 4, route: route, batches: 20, rows: 500, width: 5, abort: -1,
					stopAfter: map[int]int{0: 0, 1: 100}}
				if all {
					w.stopAfter[2], w.stopAfter[3] = 0, 1
				}
				within(t, time.Minute, func() {
					o := c.run(context.Background(), j, w)
					for i, err := range o.writeErrs {
						require.NoError(t, err, "producer %d", i)
					}
					for p := range w.partitions {
						require.NoError(t, o.readErrs[p])
						if _, early := w.stopAfter[p]; !early {
							require.Equal(t, o.want[p], o.got[p], "partition %d", p)
						}
					}
				})
				// Nothing is left even while the job still runs, but for files and the job itself.
				require.Eventually(t, func() bool {
					for i, s := range c.svcs {
						st := s.Stats()
						if st.Bytes != 0 || st.Channels != 0 || st.Writers != 0 || c.nodes[i].Store().Stats().Objects != 0 {
							return false
						}
					}
					return true
				}, time.Minute, 5*time.Millisecond, "%s", c)
				j.Finish(nil)
				c.empty()
			})
		}
	}
}

// Once every reader has closed, a writer that goes on is told.
func TestWriteAfterAllClosed(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range []Mode{Streaming, ObjectStore} {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			defer c.empty()
			defer j.Finish(nil)
			e := c.edge(j, mode, 1, 2)
			w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
			require.NoError(t, err)
			for p := range 2 {
				r, err := c.reader(context.Background(), e, p, testSchema)
				require.NoError(t, err)
				r.Close()
			}
			b := testBatch(c.mem, 0, 1000, 2, 5)
			defer b.Release()
			require.Eventually(t, func() bool { return errors.Is(w.Write(b), ErrClosed) }, time.Minute, time.Millisecond)
			_, err = w.Close()
			require.NoError(t, err)
		})
	}
}

// A reader that closed before any producer came: late producers are told, in every order.
func TestLateProducer(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			e := c.edge(j, mode, 2, 2)
			for p := range 2 {
				r, err := c.reader(context.Background(), e, p, testSchema)
				require.NoError(t, err)
				r.Close()
			}
			b := testBatch(c.mem, 0, 1000, 2, 5)
			for i := range 2 {
				w, err := c.writer(context.Background(), e, i, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
				require.NoError(t, err)
				for range 10 {
					if err := w.Write(b); err != nil {
						require.ErrorIs(t, err, ErrClosed)
					}
				}
				_, err = w.Close()
				require.NoError(t, err)
			}
			b.Release()
			j.Finish(nil)
			c.empty()
		})
	}
}

// A producer's failure reaches every reader, which names it.
func TestAbort(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			w := workload{mode: mode, producers: 3, partitions: 3, batches: 8, rows: 500, width: 5, abort: 1}
			within(t, time.Minute, func() {
				o := c.run(context.Background(), j, w)
				for p := range w.partitions {
					require.ErrorIs(t, o.readErrs[p], ErrProducer)
					require.ErrorContains(t, o.readErrs[p], "producer-1")
					require.ErrorContains(t, o.readErrs[p], "it was told to")
					t.Log(o.readErrs[p])
				}
			})
			j.Finish(nil)
			c.empty()
		})
	}
}

// The end of the tasks' context wakes everything that waits, and nothing is left.
func TestCancel(t *testing.T) {
	c := smallCluster(t, 2)
	why := errors.New("enough")
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
			w := workload{mode: mode, producers: 2, partitions: 3, batches: 3000, rows: 200, width: 5, abort: -1,
				slow: map[int]time.Duration{0: 10 * time.Millisecond}}
			within(t, time.Minute, func() {
				o := c.run(ctx, j, w)
				for _, err := range append(o.writeErrs, o.readErrs...) {
					require.Error(t, err)
				}
				require.ErrorIs(t, errors.Join(o.readErrs...), why)
			})
			j.Finish(why)
			c.empty()
		})
	}
}

// The end of a job ends its readers and writers, and refuses what comes later.
func TestJobEnds(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			e := c.edge(j, mode, 2, 2)
			opts := WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema}
			w, err := c.writer(context.Background(), e, 0, opts)
			require.NoError(t, err)
			r, err := c.reader(context.Background(), e, 0, testSchema)
			require.NoError(t, err)
			errs := make(chan error, 2)
			go func() {
				var err error
				for err == nil {
					var b arrow.RecordBatch
					if b, err = r.Next(); err == nil {
						b.Release()
					}
				}
				r.Close()
				errs <- err
			}()
			go func() {
				b := testBatch(c.mem, 0, 1000, 2, 5)
				defer b.Release()
				for {
					if err := w.Write(b); err != nil {
						w.Abort(err)
						errs <- err
						return
					}
					time.Sleep(100 * time.Microsecond)
				}
			}()
			time.Sleep(10 * time.Millisecond)
			j.Finish(nil)
			within(t, time.Minute, func() {
				for range 2 {
					require.ErrorIs(t, <-errs, ErrJobEnded)
				}
			})
			_, err = c.writer(context.Background(), e, 1, opts)
			require.ErrorIs(t, err, ErrJobEnded)
			_, err = c.reader(context.Background(), e, 1, testSchema)
			require.ErrorIs(t, err, ErrJobEnded)
			c.empty()
		})
	}
}

// A job may end on the producers' node first: what its readers elsewhere cannot get any more is not lost, the job is over.
func TestJobEndsElsewhereFirst(t *testing.T) {
	c := smallCluster(t, 2)
	for _, mode := range []Mode{ObjectStore, Disk} {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			e := c.edge(j, mode, 1, 1)
			require.NotEqual(t, e.Producers[0], e.Consumers[0])
			r, err := c.reader(context.Background(), e, 0, testSchema)
			require.NoError(t, err)
			w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Kind: To}, Schema: testSchema})
			require.NoError(t, err)
			b := testBatch(c.mem, 0, 1000, 2, 5)
			for range 40 { // many more than a reader fetches ahead
				require.NoError(t, w.Write(b))
			}
			b.Release()
			_, err = w.Close()
			require.NoError(t, err)

			c.service(e.Producers[0]).JobEnded(j.ID())
			for _, n := range c.nodes {
				if n.ID() == e.Producers[0] {
					n.Store().ReleaseOwner(string(j.ID()))
				}
			}
			within(t, time.Minute, func() {
				for err == nil {
					var got arrow.RecordBatch
					if got, err = r.Next(); err == nil {
						got.Release()
					}
				}
			})
			require.ErrorIs(t, err, ErrJobEnded)
			r.Close()
			j.Finish(nil)
			c.empty()
		})
	}
}

// A dead node fails the channels from and to it, by name.
func TestNodeDead(t *testing.T) {
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c := smallCluster(t, 3)
			j := c.job()
			e := c.edge(j, mode, 3, 3)
			opts := WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema}
			gone := c.nodes[2].ID()
			errs := make(chan error, 4)
			for i := range 2 { // producers and readers of the nodes that stay
				w, err := c.writer(context.Background(), e, i, opts)
				require.NoError(t, err)
				go func() {
					b := testBatch(c.mem, 0, 1000, 3, 5)
					defer b.Release()
					var err error
					for n := 0; err == nil && n < 200; n++ {
						err = w.Write(b)
						time.Sleep(100 * time.Microsecond)
					}
					if err == nil {
						_, err = w.Close()
					}
					w.Abort(err)
					errs <- err
				}()
			}
			for p := range 3 {
				if e.Consumers[p] == gone {
					continue
				}
				r, err := c.reader(context.Background(), e, p, testSchema)
				require.NoError(t, err)
				go func() {
					for {
						b, err := r.Next()
						if err != nil {
							r.Close()
							errs <- err
							return
						}
						b.Release()
					}
				}()
			}
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, c.nodes[2].Close())
			c.nodes[2] = nil
			within(t, time.Minute, func() {
				for range 4 {
					err := <-errs
					require.Error(t, err)
					require.ErrorContains(t, err, string(gone))
				}
			})
			j.Finish(errors.New("a node died"))
			c.empty()
		})
	}
}

// An edge to a node that is already dead is an error, and leaves nothing behind.
func TestWriterToDeadNode(t *testing.T) {
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c := smallCluster(t, 3)
			j := c.job()
			e := c.edge(j, mode, 3, 3)
			gone := c.nodes[2].ID()
			require.NoError(t, c.nodes[2].Close())
			c.nodes[2] = nil
			require.Eventually(t, func() bool { return c.svcs[0].deadError(gone) != nil }, time.Minute, time.Millisecond)

			w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
			if err == nil { // the mode finds out when it has something to say
				b := testBatch(c.mem, 0, 1000, 3, 5)
				for err == nil {
					err = w.Write(b)
					if err == nil {
						_, err = w.Close()
					}
				}
				b.Release()
				w.Abort(err)
			}
			require.ErrorContains(t, err, string(gone))
			j.Finish(errors.New("a node died"))
			c.empty()
		})
	}
}

// A node that closes does not wait for readers that do not answer.
func TestCloseWithoutAnswers(t *testing.T) {
	var c *cluster
	var e *Edge
	writing := make(chan struct{})
	task := func(tc *actors.TaskContext, _ []byte) ([]byte, error) {
		w, err := c.service(tc.Node.ID()).Writer(tc, e, 0, WriterOptions{Columns: 3, Route: Route{Kind: To}, Schema: testSchema})
		if err != nil {
			return nil, err
		}
		close(writing)
		<-tc.Done()
		w.Abort(context.Cause(tc))
		return nil, context.Cause(tc)
	}
	c = newCluster(t, 2, Config{farewell: time.Hour}, objectstore.Config{}, func(c *actors.Config) {
		c.Faults = actors.NewFaults(1, actors.Fault{Kind: "Refs", Lose: 1})
		c.Tasks = map[string]actors.TaskFunc{"write": task}
	})
	j := c.job()
	e = c.edge(j, ObjectStore, 2, 2)
	e.Producers[0], e.Consumers[0] = c.nodes[1].ID(), c.nodes[0].ID()
	_, err := j.Submit(actors.TaskSpec{Name: "write", Func: "write", Node: c.nodes[1].ID()})
	require.NoError(t, err)
	<-writing
	node := c.nodes[1]
	begin := time.Now()
	require.NoError(t, node.Close())
	require.Less(t, time.Since(begin), 15*time.Second, "a message is given up after 20")
	c.nodes[1] = nil
	j.Finish(errors.New("a node closed"))
}

// A row larger than all memory limits passes in every mode.
func TestHugeRow(t *testing.T) {
	c := newCluster(t, 2, Config{MemoryLimit: 1 << 20}, objectstore.Config{MemoryLimit: 64 << 20})
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			j := c.job()
			e := c.edge(j, mode, 2, 2)
			schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
			text := strings.Repeat("0123456789", 2<<20)
			produce := func(i int) error {
				w, err := c.writer(context.Background(), e, i, WriterOptions{Columns: 1, Route: Route{Kind: ToAll}, Schema: schema})
				if err != nil {
					return err
				}
				b := array.NewRecordBuilder(c.mem, schema)
				defer b.Release()
				for _, s := range []string{"small", text, "after"} {
					b.Field(0).(*array.StringBuilder).Append(s)
				}
				batch := b.NewRecordBatch()
				defer batch.Release()
				if err := w.Write(batch); err != nil {
					w.Abort(err)
					return err
				}
				_, err = w.Close()
				return err
			}
			lengths := make([]map[int]int, 2)
			consume := func(p int) error {
				r, err := c.reader(context.Background(), e, p, schema)
				if err != nil {
					return err
				}
				defer r.Close()
				lengths[p] = map[int]int{}
				for {
					b, err := r.Next()
					if err == io.EOF {
						return nil
					}
					if err != nil {
						return err
					}
					for i := range int(b.NumRows()) {
						lengths[p][len(b.Column(0).(*array.String).Value(i))]++
					}
					b.Release()
				}
			}
			var g errgroup.Group
			for i := range 2 {
				g.Go(func() error { return produce(i) })
				g.Go(func() error { return consume(i) })
			}
			within(t, time.Minute, func() { require.NoError(t, g.Wait()) })
			for p := range 2 {
				require.Equal(t, map[int]int{5: 4, len(text): 2}, lengths[p])
			}
			j.Finish(nil)
			c.empty()
		})
	}
}

// One slow reader of one exchange does not hold up another exchange over the same link.
func TestSlowReader(t *testing.T) {
	c := smallCluster(t, 2)
	j := c.job()
	slow := make(chan *outcome, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		slow <- c.run(ctx, j, workload{mode: Streaming, producers: 2, partitions: 2, batches: 5000, rows: 500, width: 5, abort: -1,
			slow: map[int]time.Duration{0: time.Hour, 1: time.Hour}})
	}()
	time.Sleep(20 * time.Millisecond)
	within(t, time.Minute, func() {
		o := c.run(context.Background(), j, workload{mode: Streaming, producers: 2, partitions: 2, batches: 50, rows: 500, width: 5, abort: -1})
		c.verify(o)
	})
	for _, s := range c.svcs { // each of two edges has four channels, with a reserve
		require.LessOrEqual(t, s.Stats().Peak, s.Stats().Limit+8*credit.MinWindow)
	}
	cancel()
	within(t, time.Minute, func() { <-slow })
	j.Finish(nil)
	c.empty()
}
