package shuffle

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore"
)

var storingModes = []Mode{ObjectStore, Disk, Concat}

// after makes a job that takes another one's place, with all that it keeps of an edge; it ends the first.
func (c *cluster) after(first *actors.Job, e *Edge) (*actors.Job, []Output) {
	next, err := c.nodes[0].NewJob(context.Background(), actors.JobSpec{Name: "next", After: first})
	require.NoError(c.t, err)
	var all []Output
	for _, n := range c.nodes {
		var here []Output
		for i, at := range e.Producers {
			if at == n.ID() {
				here = append(here, Output{e.ID, i})
			}
		}
		got, err := c.svcs[0].Adopt(context.Background(), n.ID(), first.ID(), next.ID(), here)
		require.NoError(c.t, err)
		all = append(all, got...)
	}
	first.Finish(nil)
	return next, all
}

// serve hands out what the producers of an edge keep, and reads some partitions of it.
func (c *cluster) serve(ctx context.Context, e *Edge, partitions []int, got [][]string) error {
	var wg sync.WaitGroup
	errs := make([]error, len(e.Producers)+len(e.Consumers))
	for i, at := range e.Producers {
		wg.Go(func() {
			s := c.service(at)
			w, err := s.Serve(taskOn(ctx, s, e, fmt.Sprintf("server-%d", i)), e, i, partitions)
			if err == nil {
				_, err = w.Close()
			}
			errs[i] = err
		})
	}
	o := &outcome{got: got, readers: make([]Counters, len(e.Consumers))}
	for _, p := range partitions {
		wg.Go(func() { errs[len(e.Producers)+p] = c.consume(ctx, e, workload{}, p, o) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What was written to its end is there for the next job, and for the one after it, though it was read: for readers on other
// nodes than before, and for a part of them.
func TestKeptForTheNextJob(t *testing.T) {
	for _, mode := range storingModes {
		for _, route := range []Route{{Kind: ByColumn}, {Kind: ToAll}, {Kind: To, Partition: 1}} {
			t.Run(fmt.Sprintf("%s %d", mode, route.Kind), func(t *testing.T) {
				c := newCluster(t, 3, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
				j := c.job()
				w := workload{mode: mode, producers: 4, partitions: 3, route: route, batches: 5, rows: 100, width: 3, abort: -1, keep: true}
				var o *outcome
				within(t, time.Minute, func() { o = c.run(context.Background(), j, w) })
				for p := range w.partitions {
					require.NoError(t, o.readErrs[p])
					require.Equal(t, o.want[p], o.got[p])
				}
				e := c.edge(j, mode, w.producers, w.partitions)
				e.ID--
				for round, partitions := range [][]int{{0, 1, 2}, {1}} {
					next, adopted := c.after(j, e)
					require.Len(t, adopted, w.producers)
					j, e.Job = next, next.ID()
					slices.Reverse(e.Consumers)
					got := make([][]string, w.partitions)
					within(t, time.Minute, func() { require.NoError(t, c.serve(context.Background(), e, partitions, got), round) })
					for _, p := range partitions {
						sort.Strings(got[p])
						require.Equal(t, o.want[p], got[p])
					}
				}
				j.Finish(nil)
				c.empty()
			})
		}
	}
}

// What is not whole is not handed over: of a producer that failed, or of which a reader did not want all.
func TestOnlyWholeOutputsAreKept(t *testing.T) {
	for _, mode := range storingModes {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
			for _, w := range []workload{
				{abort: 0, keep: true}, {abort: -1, keep: true, stopAfter: map[int]int{0: 0}}, {abort: -1},
			} {
				w.mode, w.producers, w.partitions, w.route, w.batches, w.rows = mode, 1, 2, Route{Kind: ByColumn}, 50, 200
				if w.stopAfter != nil {
					w.slow = map[int]time.Duration{}
				}
				j := c.job()
				e := c.edge(j, mode, w.producers, w.partitions)
				if w.stopAfter != nil { // gone before the first row
					in, err := c.reader(context.Background(), e, 0, testSchema)
					require.NoError(t, err)
					in.Close()
				}
				o := &outcome{want: make([][]string, 2), writers: make([]Counters, 1)}
				within(t, time.Minute, func() { require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{})) })
				next, adopted := c.after(j, e)
				require.Empty(t, adopted)
				e.Job = next.ID()
				s := c.service(e.Producers[0])
				_, err := s.Serve(taskOn(context.Background(), s, e, "server"), e, 0, []int{0})
				require.ErrorIs(t, err, ErrEdge)
				next.Finish(nil)
				c.empty()
			}
		})
	}
}

// Memory that is needed goes to what is not read yet: of what was read nothing is spilled to be kept.
func TestKeptUntilMemoryIsShort(t *testing.T) {
	c := newCluster(t, 2, Config{MemoryLimit: 4 << 20, BatchBytes: 16 << 10}, objectstore.Config{MemoryLimit: 4 << 20})
	j := c.job()
	w := workload{mode: ObjectStore, producers: 2, partitions: 2, route: Route{Kind: ByColumn}, batches: 20, rows: 500, width: 8, abort: -1, keep: true}
	adoptable := func() (n int) {
		for _, s := range c.svcs {
			n += s.Stats().Kept
		}
		return n
	}
	kept := 0
	for range 12 {
		within(t, time.Minute, func() {
			o := c.run(context.Background(), j, w)
			for p := range w.partitions {
				require.NoError(t, o.readErrs[p])
				require.Equal(t, o.want[p], o.got[p])
			}
		})
		kept = max(kept, adoptable())
	}
	require.Greater(t, kept, 4, "it keeps more than the last edge's")
	require.Less(t, adoptable(), 24)
	for _, n := range c.nodes {
		require.Zero(t, n.Store().Stats().BytesSpilled)
	}
	j.Finish(nil)
	c.empty()
}

// A writer takes the place of what is kept under its number, and a job that has ended has nothing.
func TestKeptIsReplaced(t *testing.T) {
	for _, mode := range storingModes {
		c := newCluster(t, 1, Config{MemoryLimit: 8 << 20}, objectstore.Config{MemoryLimit: 64 << 20})
		j := c.job()
		e := c.edge(j, mode, 1, 1)
		w := workload{mode: mode, producers: 1, partitions: 1, route: Route{Kind: ByColumn}, batches: 2, rows: 100, abort: -1, keep: true}
		o := &outcome{want: make([][]string, 1), writers: make([]Counters, 1)}
		require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}))
		next, adopted := c.after(j, e)
		require.Len(t, adopted, 1)
		none, err := c.svcs[0].Adopt(context.Background(), c.nodes[0].ID(), j.ID(), next.ID(), adopted)
		require.NoError(t, err)
		require.Empty(t, none)
		e.Job = next.ID()
		o = &outcome{want: make([][]string, 1), got: make([][]string, 1), writers: make([]Counters, 1), readers: make([]Counters, 1)}
		require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}))
		require.NoError(t, c.consume(context.Background(), e, w, 0, o))
		require.Equal(t, len(o.want[0]), len(o.got[0]))
		require.Equal(t, 1, c.svcs[0].Stats().Kept)
		next.Finish(nil)
		c.empty()
	}
}

// What was chosen to make room, and is handed over meanwhile, stays; and what has gone is not handed over.
func TestGivenUpOrHandedOver(t *testing.T) {
	c := newCluster(t, 1, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
	j := c.job()
	w := workload{mode: ObjectStore, producers: 1, partitions: 1, route: Route{Kind: ByColumn}, batches: 2, rows: 100, abort: -1, keep: true}
	e := c.edge(j, w.mode, 1, 1)
	o := &outcome{want: make([][]string, 1), got: make([][]string, 1), writers: make([]Counters, 1), readers: make([]Counters, 1)}
	require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}))
	require.NoError(t, c.consume(context.Background(), e, w, 0, o))
	chosen := c.svcs[0].leastNeeded()
	require.NotNil(t, chosen)
	next, adopted := c.after(j, e)
	require.Len(t, adopted, 1)
	chosen.dispense()
	require.True(t, chosen.isWhole())

	to, err := c.svcs[0].job(next.ID())
	require.NoError(t, err)
	chosen.giveUp()
	require.ErrorIs(t, chosen.changeOwner(nil, to), ErrEdge)
	next.Finish(nil)
	c.empty()
}
