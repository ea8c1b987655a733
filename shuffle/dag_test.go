package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/actors"
	"manta/objectstore"
)

// dag is a plan of stages, all of whose tasks run at once over the real exchanges. Rows have an id, and the oracle knows
// how often each id comes to each task.
type dag struct {
	stages []*dagStage
	edges  []*dagEdge
}

type dagStage struct {
	tasks   int
	inputs  []*dagEdge
	outputs []*dagEdge
	batches int // of a scan, for each task
	rows    int // of a batch
	width   int // of a row
	reads   reading
	stop    int // if not 0, a task leaves after so many rows
	first   int // id of a scan's first row
	number  int
	nodes   []actors.NodeID // of the tasks
}

type dagEdge struct {
	from, to *dagStage
	mode     Mode
	all      bool // to all tasks, else by id
	skewed   bool
	edge     *Edge
}

// reading is the order in which a task reads its inputs.
type reading uint8

const (
	inOrder   reading = iota // each to its end, the first one first
	contrary                 // the same, odd tasks the last one first
	inTurn                   // a batch of each
	readKinds                // number of kinds
)

// waits is the planner's rule for edges that must take all of their rows although nobody reads any.
func (e *dagEdge) waits() bool { return len(e.from.outputs) > 1 || e.all && e.to.tasks > 1 }

func (d *dag) add(s *dagStage, from ...*dagStage) *dagStage {
	d.stages = append(d.stages, s)
	for _, f := range from {
		e := &dagEdge{from: f, to: s, mode: Streaming}
		d.edges = append(d.edges, e)
		f.outputs, s.inputs = append(f.outputs, e), append(s.inputs, e)
	}
	return s
}

// partition is where a row goes.
func (e *dagEdge) partition(id int) int {
	if e.skewed && id%8 != 0 {
		return 0
	}
	return id / 8 % e.to.tasks
}

// oracle is how often each id comes to each task of a stage.
func (s *dagStage) oracle() []map[int]int {
	out := make([]map[int]int, s.tasks)
	for i := range out {
		out[i] = map[int]int{}
	}
	for i := range s.tasks {
		for n := range s.batches * s.rows {
			out[i][s.first+i*s.batches*s.rows+n]++
		}
	}
	for _, e := range s.inputs {
		for _, ids := range e.from.oracle() {
			for id, n := range ids {
				for i := range out {
					if e.all || e.partition(id) == i {
						out[i][id] += n
					}
				}
			}
		}
	}
	return out
}

// dagRun is a dag on its way.
type dagRun struct {
	c      *cluster
	job    *actors.Job
	ctx    context.Context
	cancel context.CancelCauseFunc
	// victim dies once it has read or made so many batches.
	victim     *dagStage
	victimTask int
	after      int

	mu  sync.Mutex
	got map[*dagStage][]map[int]int // of the stages without outputs
	err map[*dagStage][]error
}

var errKilled = errors.New("killed")

// run runs all tasks to their end.
func (c *cluster) runDag(ctx context.Context, j *actors.Job, d *dag, prepare func(*dagRun)) *dagRun {
	r := &dagRun{c: c, job: j, got: map[*dagStage][]map[int]int{}, err: map[*dagStage][]error{}}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	for n, s := range d.stages {
		s.number = n
		for i := range s.tasks {
			s.nodes = append(s.nodes, c.nodes[(n+i)%len(c.nodes)].ID())
		}
	}
	for _, e := range d.edges {
		e.edge = c.edge(j, e.mode, e.from.tasks, e.to.tasks)
		e.edge.Producers, e.edge.Consumers = e.from.nodes, e.to.nodes
	}
	if prepare != nil {
		prepare(r)
	}
	var all sync.WaitGroup
	for _, s := range d.stages {
		r.got[s], r.err[s] = make([]map[int]int, s.tasks), make([]error, s.tasks)
	}
	for _, s := range d.stages {
		for i := range s.tasks {
			all.Go(func() {
				got, err := r.task(s, i)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.got[s][i], r.err[s][i] = got, err
			})
		}
	}
	all.Wait()
	return r
}

// task is one task. It gives the ids that it read.
func (r *dagRun) task(s *dagStage, i int) (got map[int]int, err error) {
	got = map[int]int{}
	svc, name := r.c.service(s.nodes[i]), fmt.Sprintf("task %d of stage %d", i, s.number)
	var outs []*Writer
	var ins []*Reader
	defer func() {
		for _, in := range ins {
			in.Close()
		}
		for _, out := range outs {
			if err == nil {
				_, err = out.Close()
			}
			if err != nil {
				out.Abort(err)
			}
		}
	}()
	opened := false
	defer func() {
		if !opened { // it tells the ends of edges that it has not opened nothing; that is for a coordinator
			r.cancel(err)
		}
	}()
	for _, e := range s.outputs {
		route := Route{Kind: ByColumn, Column: 3}
		if e.all {
			route = Route{Kind: ToAll}
		}
		out, err := svc.Writer(taskOn(r.ctx, svc, e.edge, name), e.edge, i, WriterOptions{Columns: 3, Route: route, Schema: testSchema})
		if err != nil {
			return got, err
		}
		outs = append(outs, out)
	}
	for _, e := range s.inputs {
		in, err := svc.Reader(taskOn(r.ctx, svc, e.edge, name), e.edge, i, testSchema)
		if err != nil {
			return got, err
		}
		ins = append(ins, in)
	}
	opened = true
	steps := 0
	pass := func(b arrow.RecordBatch) (more bool, err error) {
		if steps++; s == r.victim && i == r.victimTask && steps > r.after {
			return false, errKilled
		}
		for n, out := range outs {
			err := r.write(out, s.outputs[n], b)
			if err != nil && !errors.Is(err, ErrClosed) {
				return false, err
			}
			more = more || err == nil
		}
		return more || len(outs) == 0, nil
	}
	for n := range s.batches {
		b := testBatch(r.c.mem, s.first+(i*s.batches+n)*s.rows, s.rows, 1, s.width)
		more, err := pass(b)
		b.Release()
		if err != nil || !more {
			return got, err
		}
	}
	rows := 0
	return got, s.read(ins, i, func(b arrow.RecordBatch) (bool, error) {
		for _, id := range b.Column(0).(*array.Int64).Int64Values() {
			got[int(id)]++
			rows++
		}
		more, err := pass(b)
		return more && (s.stop == 0 || rows < s.stop), err
	})
}

// read gives all batches of all inputs, in the stage's order, until take has enough.
func (s *dagStage) read(ins []*Reader, task int, take func(arrow.RecordBatch) (bool, error)) error {
	left := append([]*Reader(nil), ins...)
	for turn := 0; len(left) > 0; turn++ {
		at := 0
		switch {
		case s.reads == inTurn:
			at = turn % len(left)
		case s.reads == contrary && task%2 == 1:
			at = len(left) - 1
		}
		b, err := left[at].Next()
		if err == io.EOF {
			left = append(left[:at:at], left[at+1:]...)
			continue
		}
		if err != nil {
			return err
		}
		more, err := take(b)
		b.Release()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// write writes the data columns of a batch.
func (r *dagRun) write(out *Writer, e *dagEdge, b arrow.RecordBatch) error {
	p := array.NewUint32Builder(r.c.mem)
	defer p.Release()
	for _, id := range b.Column(0).(*array.Int64).Int64Values() {
		p.Append(uint32(e.partition(int(id))))
	}
	data := array.NewRecordBatch(testSchema, b.Columns()[:3], b.NumRows())
	defer data.Release()
	routed := withColumn(data, p.NewArray())
	defer routed.Release()
	return out.Write(routed)
}

// check says what is wrong with the outcome. A task that says it has read all must have: whatever was killed elsewhere.
func (d *dag) check(r *dagRun) error {
	for n, s := range d.stages {
		if len(s.outputs) > 0 {
			continue
		}
		want := s.oracle()
		for i, got := range r.got[s] {
			if err := r.err[s][i]; err != nil {
				if r.victim == nil {
					return fmt.Errorf("task %d of stage %d: %w", i, n, err)
				}
				continue
			}
			complete := !d.stops()
			for id, times := range got {
				if times > want[i][id] {
					return fmt.Errorf("task %d of stage %d got row %d %d times, not %d", i, n, id, times, want[i][id])
				}
			}
			if complete && len(got) != len(want[i]) {
				return fmt.Errorf("task %d of stage %d got %d rows, not %d", i, n, len(got), len(want[i]))
			}
			for id, times := range want[i] {
				if complete && got[id] != times {
					return fmt.Errorf("task %d of stage %d got row %d %d times, not %d", i, n, id, got[id], times)
				}
			}
		}
	}
	return nil
}

func (d *dag) stops() bool {
	for _, s := range d.stages {
		if s.stop > 0 {
			return true
		}
	}
	return false
}

// randomDag draws a plan: series, diamonds, several readers, skew, early leaves.
func randomDag(t *rapid.T) *dag {
	d := &dag{}
	next := 0
	for range rapid.IntRange(1, 3).Draw(t, "scans") {
		s := &dagStage{
			tasks: rapid.IntRange(1, 3).Draw(t, "tasks"), batches: rapid.IntRange(0, 12).Draw(t, "batches"),
			rows: rapid.SampledFrom([]int{1, 7, 100, 300}).Draw(t, "rows"), width: rapid.SampledFrom([]int{0, 5, 40}).Draw(t, "width"), first: next,
		}
		next += s.tasks * s.batches * s.rows
		d.add(s)
	}
	stage := func() *dagStage {
		s := &dagStage{tasks: rapid.IntRange(1, 3).Draw(t, "tasks"), reads: reading(rapid.IntRange(0, int(readKinds)-1).Draw(t, "reads"))}
		if rapid.IntRange(0, 5).Draw(t, "stops") == 0 {
			s.stop = rapid.IntRange(1, 500).Draw(t, "stop")
		}
		return s
	}
	for range rapid.IntRange(0, 3).Draw(t, "stages") {
		inputs := rapid.IntRange(1, 2).Draw(t, "inputs")
		var from []*dagStage
		for range inputs {
			from = append(from, d.stages[rapid.IntRange(0, len(d.stages)-1).Draw(t, "input")])
		}
		d.add(stage(), from...)
	}
	var unread []*dagStage
	for _, s := range d.stages {
		if len(s.outputs) == 0 {
			unread = append(unread, s)
		}
	}
	d.add(stage(), unread...)
	for _, e := range d.edges {
		e.all = rapid.IntRange(0, 5).Draw(t, "all") == 0
		e.skewed = rapid.IntRange(0, 2).Draw(t, "skewed") == 0
	}
	for _, e := range d.edges {
		switch {
		case e.waits():
			e.mode = rapid.SampledFrom([]Mode{ObjectStore, Disk, Concat}).Draw(t, "mode")
		case rapid.IntRange(0, 4).Draw(t, "other mode") == 0:
			e.mode = rapid.SampledFrom(Modes).Draw(t, "mode")
		}
	}
	return d
}

// TestRandomDags: every plan gives what the oracle says, with any window and when a task dies at any step, and none needs
// the watchdog.
func TestRandomDags(t *testing.T) {
	var clusters []*cluster
	for _, memory := range []int64{32 << 10, 256 << 10, 8 << 20} {
		clusters = append(clusters, newCluster(t, 2, Config{MemoryLimit: memory, BatchBytes: 16 << 10}, objectstore.Config{MemoryLimit: 16 << 20}))
	}
	rapid.Check(t, func(t *rapid.T) {
		c := clusters[rapid.IntRange(0, len(clusters)-1).Draw(t, "window")]
		d := randomDag(t)
		kill := rapid.IntRange(0, 3).Draw(t, "kill") == 0
		victim, task, after := 0, 0, math.MaxInt
		if kill {
			victim = rapid.IntRange(0, len(d.stages)-1).Draw(t, "victim")
			task = rapid.IntRange(0, d.stages[victim].tasks-1).Draw(t, "task")
			after = rapid.IntRange(0, 20).Draw(t, "after")
		}
		j, err := c.nodes[0].NewJob(context.Background(), actors.JobSpec{Name: "dag"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r := c.runDag(ctx, j, d, func(r *dagRun) {
			if kill {
				r.victim, r.victimTask, r.after = d.stages[victim], task, after
			}
		})
		j.Finish(nil)
		if ctx.Err() != nil {
			t.Fatalf("stuck: %v", r.err)
		}
		if err := d.check(r); err != nil {
			t.Fatal(err)
		}
		for _, s := range c.svcs {
			if n := s.Stats().Stalls; n != 0 {
				t.Fatalf("the watchdog counted %d", n)
			}
		}
	})
	for _, c := range clusters {
		c.empty()
	}
	require.NotEmpty(t, clusters)
}
