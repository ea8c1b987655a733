package shuffle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore"
)

// The hazards by their numbers in the project's notes, as the real exchanges meet them. Each ends well, and does not when its
// counter-measure is switched off. Package credit has those of the protocol itself: H6, H12, H13, H14, and others in small.

// errTestOver ends what is stuck.
var errTestOver = errors.New("the test is over")

// ends runs f, which must come to its end by itself.
func ends(t *testing.T, f func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require.NoError(t, f(ctx))
}

// goesWrong runs f until it fails, or does not come to an end until its context does. One of many runs must: without its
// counter-measure a hazard may happen, and does not happen each time.
func goesWrong(t *testing.T, f func(context.Context) error) {
	t.Helper()
	for range 50 {
		if err := limited(f, 500*time.Millisecond); err != nil { // many times what it takes when it does end; on a slow machine this shows less
			return
		}
	}
	require.Fail(t, "all goes well without the counter-measure")
}

// limited runs f, and ends its context after that time. It returns f's error.
func limited(f func(context.Context) error, limit time.Duration) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	timer := time.AfterFunc(limit, func() { cancel(errTestOver) })
	defer timer.Stop()
	return f(ctx)
}

func switchOff(t *testing.T, h hazard) {
	t.Helper()
	switchedOff[h].Store(true)
	t.Cleanup(func() { switchedOff[h].Store(false) })
}

// dagEnds runs a plan on a cluster with little memory.
func dagEnds(t *testing.T, make func() *dag) func(context.Context) error {
	c := smallCluster(t, 2)
	return func(ctx context.Context) error {
		j := c.job()
		defer j.Finish(nil)
		d := make()
		r := c.runDag(ctx, j, d, nil)
		for _, errs := range r.err {
			if err := errors.Join(errs...); err != nil {
				return err
			}
		}
		return d.check(r)
	}
}

// twoSides is a join of two scans, each many times the memory.
func twoSides(reads reading, tasks int) *dag {
	d := &dag{}
	left := d.add(&dagStage{tasks: 2, batches: 30, rows: 300, width: 40})
	right := d.add(&dagStage{tasks: 2, batches: 30, rows: 300, width: 40, first: 1 << 20})
	d.add(&dagStage{tasks: tasks, reads: reads}, left, right)
	return d
}

// diamond is a scan that feeds both sides of a join.
func diamond(second Mode) *dag {
	d := &dag{}
	from := d.add(&dagStage{tasks: 1, batches: 30, rows: 300, width: 40})
	d.add(&dagStage{tasks: 1, reads: inOrder}, from, from)
	d.edges[1].mode = second
	return d
}

func TestH1Diamond(t *testing.T) {
	ends(t, dagEnds(t, func() *dag { return diamond(ObjectStore) }))
	goesWrong(t, dagEnds(t, func() *dag { return diamond(Streaming) }))
}

// What no plan should let happen the watchdog resolves.
func TestWatchdogResolvesADiamond(t *testing.T) {
	run := func(t *testing.T) (*cluster, func(context.Context) error) {
		c := newCluster(t, 1, Config{MemoryLimit: 256 << 10, BatchBytes: 16 << 10, StallAfter: 40 * time.Millisecond}, objectstore.Config{})
		return c, func(ctx context.Context) error {
			j := c.job()
			defer j.Finish(nil)
			d := diamond(Streaming)
			r := c.runDag(ctx, j, d, nil)
			if err := r.err[d.stages[1]][0]; err != nil {
				return err
			}
			return d.check(r)
		}
	}
	c, f := run(t)
	ends(t, f)
	st := c.svcs[0].Stats()
	require.Positive(t, st.Stalls)
	require.Positive(t, st.Spilled)
	switchOff(t, standstill)
	_, f = run(t)
	goesWrong(t, f)
}

// Every reader hears of every producer's end, whichever of them have no rows for it.
func TestH2EmptyChannels(t *testing.T) {
	run := func(mask int) func() *dag {
		return func() *dag {
			d := &dag{}
			var scans []*dagStage
			for i := range 2 {
				scans = append(scans, d.add(&dagStage{tasks: 2, batches: mask >> i & 1, rows: 8, first: i << 20}))
			}
			d.add(&dagStage{tasks: 2, reads: inOrder}, scans...)
			return d
		}
	}
	for mask := range 4 {
		ends(t, dagEnds(t, run(mask))) // ids below 8 all go to the one partition, too
	}
	switchOff(t, empty)
	goesWrong(t, dagEnds(t, run(1)))
}

func TestH3OutOfStep(t *testing.T) {
	for _, reads := range []reading{contrary, inTurn} {
		ends(t, dagEnds(t, func() *dag { return twoSides(reads, 2) }))
	}
	switchOff(t, disorder)
	goesWrong(t, dagEnds(t, func() *dag { return twoSides(contrary, 2) }))
}

// A producer that starts after its reader has left is told so.
func TestH4ReaderLeavesFirst(t *testing.T) {
	c := smallCluster(t, 2)
	f := func(ctx context.Context) error {
		j := c.job()
		defer j.Finish(nil)
		e := c.edge(j, Streaming, 1, 1)
		r, err := c.reader(ctx, e, 0, testSchema)
		if err != nil {
			return err
		}
		r.Close()
		w, err := c.writer(ctx, e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
		if err != nil {
			return err
		}
		err = c.writeUntil(w, ErrClosed)
		w.Abort(err)
		return err
	}
	ends(t, f)
	switchOff(t, leaving)
	goesWrong(t, f)
}

// writeUntil writes until it gets one of the errors, which is then none, or another.
func (c *cluster) writeUntil(w *Writer, want ...error) error {
	for n := 0; ; n++ {
		b := testBatch(c.mem, n*300, 300, 1, 5)
		err := w.Write(b)
		b.Release()
		switch {
		case slices.ContainsFunc(want, func(want error) bool { return errors.Is(err, want) }):
			return nil
		case err != nil:
			return err
		}
	}
}

// A producer whose reader's node is gone hears of it.
func TestH5ReaderIsLost(t *testing.T) {
	f := func(ctx context.Context) error {
		c := smallCluster(t, 2)
		j := c.job()
		defer j.Finish(nil)
		e := c.edge(j, Streaming, 1, 1)
		r, err := c.reader(context.Background(), e, 0, testSchema)
		if err != nil {
			return err
		}
		w, err := c.writer(ctx, e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
		if err != nil {
			return err
		}
		written := make(chan error, 1)
		go func() { written <- c.writeUntil(w, ErrPeer, actors.ErrNodeDead) }()
		for w.job.activity.writers.Load() == 0 { // it waits; if not yet for good, its next write fails by itself
			time.Sleep(time.Millisecond)
		}
		err = c.nodes[1].Close()
		c.nodes[1] = nil
		r.Close()
		err = errors.Join(err, <-written)
		w.Abort(err)
		return err
	}
	ends(t, f)
	switchOff(t, lostPeer)
	goesWrong(t, f)
}

// What an ended attempt still sends is refused.
func TestH7LateComer(t *testing.T) {
	c := smallCluster(t, 1)
	late := func() error {
		j := c.job()
		e := c.edge(j, Streaming, 1, 1)
		j.Finish(nil)
		w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
		if err == nil {
			w.Abort(nil)
			c.svcs[0].JobEnded(e.Job)
		}
		return err
	}
	require.ErrorIs(t, late(), ErrJobEnded)
	switchOff(t, lateComer)
	require.NoError(t, late())
}

// Broadcast and hashed edges on the way to the same tasks, which read them in opposite orders.
func TestH8Broadcast(t *testing.T) {
	plan := func(mode Mode) func() *dag {
		return func() *dag {
			d := twoSides(contrary, 2)
			d.edges[0].all, d.edges[0].mode = true, mode
			return d
		}
	}
	ends(t, dagEnds(t, plan(ObjectStore)))
	switchOff(t, disorder)
	goesWrong(t, dagEnds(t, plan(Streaming)))
}

// One slot, and a reader that has it before its producers.
func TestH9FewSlots(t *testing.T) {
	run := func(t *testing.T) func(context.Context) error {
		svc := NewService(Config{MemoryLimit: 256 << 10, BatchBytes: 16 << 10})
		c := &cluster{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
		cfg := actors.Config{DataDir: t.TempDir(), CPUs: 1, MemoryBytes: 1 << 30, InProcess: actors.NewHub(), Services: []actors.Service{svc}}
		svc.cfg.Allocator = c.mem
		cfg.Tasks = pipelineTasks(&svc, c.mem)
		n, err := actors.Start(context.Background(), cfg)
		require.NoError(t, err)
		c.nodes, c.svcs = []*actors.Node{n}, []*Service{svc}
		t.Cleanup(c.close)
		return func(ctx context.Context) error {
			j, err := n.NewJob(ctx, actors.JobSpec{Name: "few slots"})
			if err != nil {
				return err
			}
			defer func() { j.Finish(err) }()
			left, right, result := c.edge(j, Streaming, 1, 1), c.edge(j, Streaming, 1, 1), c.edge(j, Streaming, 1, 1)
			pack := func(e *Edge) []byte {
				data, err := e.MarshalBinary()
				require.NoError(t, err)
				return data
			}
			r, err := svc.Reader(j.TaskContext(), result, 0, testSchema)
			if err != nil {
				return err
			}
			defer r.Close()
			for i, arg := range []stageArg{{In: [][]byte{pack(left), pack(right)}, Out: pack(result)}, {Out: pack(left), Batches: 30}, {Out: pack(right), Batches: 30}} {
				raw, err := json.Marshal(arg)
				require.NoError(t, err)
				spec := actors.TaskSpec{Name: fmt.Sprint(i), Func: "source", Arg: raw, Node: n.ID()}
				if i == 0 {
					spec.Func = "stage"
				}
				if _, err := j.Submit(spec); err != nil {
					return err
				}
				if i == 0 { // it has the slot, and waits for input
					require.Eventually(t, func() bool { return svc.Stats().Readers == 3 }, time.Minute, time.Millisecond)
				}
			}
			rows := int64(0)
			for {
				b, err := r.Next()
				if err != nil {
					if rows == 2*30*100 {
						return nil
					}
					return err
				}
				rows += b.NumRows()
				b.Release()
			}
		}
	}
	ends(t, run(t))
	switchOff(t, fewSlots)
	goesWrong(t, run(t))
}

// What is parked can be read while its file is written. H3's test is the one with the counter-measure on.
func TestH10Spilling(t *testing.T) {
	switchOff(t, spilling)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.Error(t, dagEnds(t, func() *dag { return twoSides(contrary, 2) })(ctx))
}

// The loop that receives never waits for a reader: else a side that is read later would be in the way of all that
// follows it on the connection.
func TestH11Behind(t *testing.T) {
	plan := func() *dag { return twoSides(inOrder, 1) }
	ends(t, dagEnds(t, plan))
	switchOff(t, behind)
	goesWrong(t, dagEnds(t, plan))
}
