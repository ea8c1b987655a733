package planner

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/planner/dist"
	"manta/planner/kernel"
	"manta/planner/wire"
	"manta/shuffle"
)

// taskSpec is a stage task to be submitted.
type taskSpec struct {
	actors.TaskSpec
	stage  int
	index  int
	served bool
}

// nodeOf is the node of one task of a stage: tasks of partitioned stages are
// spread over all slots, and single stages take turns. One that does not run
// again is where its rows are.
func (r *run) nodeOf(s *dist.Stage, task int) actors.NodeID {
	if r.takenOver != nil {
		if node, ok := r.home(r.graph(), s, task); ok {
			return node
		}
	}
	if s.Tasks == 1 {
		task = s.ID
	}
	return r.slots[task%len(r.slots)]
}

// edge describes an exchange to the nodes.
func (r *run) edge(e *dist.Edge) *shuffle.Edge {
	out := &shuffle.Edge{Job: r.job.ID(), ID: uint32(e.ID), Mode: r.choose(e).mode}
	for i := range e.From.Tasks {
		if e.Writes(i) {
			out.Producers = append(out.Producers, r.nodeOf(e.From, i))
		}
	}
	if e.To == nil {
		out.Consumers = []actors.NodeID{r.service.node.ID()}
		return out
	}
	for i := range e.To.Tasks {
		out.Consumers = append(out.Consumers, r.nodeOf(e.To, i))
	}
	return out
}

// resultEdge is the exchange from the last stage to this coordinator.
func (r *run) resultEdge() *shuffle.Edge {
	if r.query.plan != nil {
		return r.edge(r.query.plan.Result)
	}
	return &shuffle.Edge{
		Job: r.job.ID(), Mode: shuffle.Streaming,
		Producers: []actors.NodeID{r.whole.ID},
		Consumers: []actors.NodeID{r.service.node.ID()},
	}
}

// specs gives every task of the query, producers first.
func (r *run) specs() ([]taskSpec, error) {
	if r.query.plan == nil {
		return r.fallbackSpec()
	}
	var out []taskSpec
	for _, s := range r.query.plan.Stages {
		for i := range s.Tasks {
			task, err := r.stageTask(s, i)
			if err != nil {
				return nil, err
			}
			if task == nil {
				continue
			}
			arg, err := proto.Marshal(task)
			if err != nil {
				return nil, fmt.Errorf("planner: stage task: %w", err)
			}
			out = append(out, taskSpec{stage: s.ID, index: i, served: task.Serve, TaskSpec: actors.TaskSpec{
				Name: fmt.Sprintf("stage %d task %d", s.ID, i), Func: stageFunc, Arg: arg, Node: r.nodeOf(s, i),
			}})
		}
	}
	return out, nil
}

// stageTask describes one task of a stage, or is nil if it has nothing to do.
func (r *run) stageTask(s *dist.Stage, i int) (*wire.StageTask, error) {
	if !r.takenOver.runs(s, i) {
		return r.servingTask(s, i)
	}
	q := r.query
	f, err := s.Fragment(i, q.fragmentNames(string(r.job.ID()), i), q.plan.Partitions)
	if err != nil {
		return nil, fmt.Errorf("planner: stage %d: %w", s.ID, err)
	}
	task := &wire.StageTask{Stage: uint32(s.ID), Index: uint32(i), Sql: f.SQL, Types: f.Types, Files: q.pins(f.Files), Setup: append([]string{q.session}, s.Setup()...)}
	for _, in := range f.Inputs {
		edge, err := r.edge(in.Edge).MarshalBinary()
		if err != nil {
			return nil, err
		}
		task.Inputs = append(task.Inputs, &wire.Input{
			View: in.View, Edge: edge, Partition: uint32(i), Types: in.Edge.TravelTypes(),
		})
	}
	for _, e := range s.Outputs {
		if !e.Writes(i) {
			continue
		}
		out, err := r.output(e, f, i)
		if err != nil {
			return nil, err
		}
		task.Outputs = append(task.Outputs, out)
	}
	return task, nil
}

// servingTask describes one that hands out what a task of a stage has stored, to those who read it in this attempt.
func (r *run) servingTask(s *dist.Stage, i int) (*wire.StageTask, error) {
	task := &wire.StageTask{Stage: uint32(s.ID), Index: uint32(i), Serve: true}
	g := r.graph()
	for _, o := range r.decision.Serve {
		e := g.edges[o.Edge]
		if e.From != s || o.Task != i {
			continue
		}
		edge, err := r.edge(e).MarshalBinary()
		if err != nil {
			return nil, err
		}
		out := &wire.Output{Edge: edge, Producer: uint32(producer(e, i))}
		for reader := range e.To.Tasks {
			if r.runs(e.To, reader) {
				out.Readers = append(out.Readers, uint32(reader))
			}
		}
		task.Outputs = append(task.Outputs, out)
	}
	if len(task.Outputs) == 0 {
		return nil, nil
	}
	return task, nil
}

// output describes an edge to the task that writes it.
func (r *run) output(e *dist.Edge, f *dist.Fragment, task int) (*wire.Output, error) {
	edge, err := r.edge(e).MarshalBinary()
	if err != nil {
		return nil, err
	}
	out := &wire.Output{Edge: edge, Producer: uint32(producer(e, task)), Route: wire.RouteKind_TO}
	for _, c := range e.Keep {
		out.Columns = append(out.Columns, uint32(c))
	}
	switch e.Kind {
	case dist.Hash, dist.Range:
		out.Route, out.Column = wire.RouteKind_BY_COLUMN, uint32(f.Routing[e])
	case dist.Broadcast:
		out.Route = wire.RouteKind_TO_ALL
	case dist.Forward:
		out.Partition = uint32(task)
	case dist.Gather, dist.Pin: // to partition 0
	}
	return out, nil
}

// wholeTask is the name of a task that is a query of its own.
const wholeTask = "the whole query"

// fallbackSpec is the only task of a query that runs as it is written.
func (r *run) fallbackSpec() ([]taskSpec, error) {
	edge, err := r.resultEdge().MarshalBinary()
	if err != nil {
		return nil, err
	}
	columns := make([]uint32, len(r.query.types))
	for i := range columns {
		columns[i] = uint32(i)
	}
	conn, err := r.service.exec.Connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	arg, err := proto.Marshal(&wire.StageTask{
		Sql: r.query.sql, Setup: append([]string{kernel.NoRangeMergeJoin}, r.query.setup...),
		Outputs: []*wire.Output{{Edge: edge, Columns: columns, Route: wire.RouteKind_TO}}, Types: r.wholeTypes(conn), Whole: true,
	})
	if err != nil {
		return nil, fmt.Errorf("planner: stage task: %w", err)
	}
	return []taskSpec{{TaskSpec: actors.TaskSpec{Name: wholeTask, Func: stageFunc, Arg: arg, Node: r.whole.ID}}}, nil
}

// pins lists what files must be like for the plan to hold.
func (q *prepared) pins(paths []string) []*wire.FilePin {
	var out []*wire.FilePin
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if f, ok := q.files[path]; ok && !remote(path) {
			out = append(out, &wire.FilePin{Path: path, Size: f.Size, ModifiedNanos: f.Mtime})
		}
	}
	return out
}

// resultSchema is the schema of the rows as the last stage sends them, with the query's own column names.
func (r *run) resultSchema() (*arrow.Schema, error) {
	conn, err := r.service.exec.Connect()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	schema, err := r.rowsSchema(conn)
	if err != nil {
		return nil, err
	}
	fields := slices.Clone(schema.Fields())
	for i := range fields {
		fields[i].Name = r.query.names[i]
	}
	return arrow.NewSchema(fields, nil), nil
}

func (r *run) rowsSchema(conn *kernel.Conn) (*arrow.Schema, error) {
	ctx := r.job.Context()
	if r.query.travel != nil {
		return r.service.schemas.of(ctx, conn, r.query.travel)
	}
	if types := r.wholeTypes(conn); types != nil {
		return r.service.schemas.of(ctx, conn, types)
	}
	if err := makeTables(ctx, conn, r.query.setup); err != nil {
		return nil, err
	}
	return ofQuery(ctx, conn, r.query.sql)
}

// wholeTypes are the types of the query's own text, or nil when SQL cannot spell them.
func (r *run) wholeTypes(conn *kernel.Conn) []string {
	if _, err := r.service.schemas.of(r.job.Context(), conn, r.query.types); err != nil {
		return nil
	}
	return r.query.types
}

// finished sums up what the query's tasks did.
func (r *run) finished() *wire.Finished {
	st := &wire.Stats{
		Stages: 1, Distributed: r.query.plan != nil, Fallback: r.query.fallback,
		PlanNanos: int64(r.planTime), ElapsedNanos: int64(time.Since(r.started)), Restarts: uint32(len(r.lost)),
	}
	if p := r.query.plan; p != nil {
		st.Stages = uint32(len(p.Stages))
		if r.takenOver != nil {
			st.TasksKept = uint32(r.graph().plan.Tasks() - len(r.decision.Run))
		}
		st.ParallelScan = p.ParallelScan(func(path string) int64 { return r.query.files[path].Bytes() })
	}
	var sum shuffle.Counters
	result := r.resultEdge().ID
	stages := map[int]*wire.StageStats{}
	spilled, stalls := meter{}, meter{}
	for _, t := range r.tasks {
		if !t.served {
			st.Tasks++
		}
		t.stats.Index, t.stats.Served = uint32(t.index), t.served
		spilled.look(t.stats.Node, t.stats.StoreSpilledBefore, t.stats.StoreSpilledAfter)
		stalls.look(t.stats.Node, t.stats.StallsBefore, t.stats.StallsAfter)
		for _, o := range t.stats.Outputs {
			if r.query.plan != nil && o.Edge != result {
				sum.Add(countersFromWire(o.Counters))
			}
		}
		for _, in := range t.stats.Inputs {
			c := countersFromWire(in.Counters)
			sum.ControlMessages += c.ControlMessages
			sum.InputWait += c.InputWait
			sum.PeakQueued = max(sum.PeakQueued, c.PeakQueued)
		}
		st.PeakExchangeBytes = max(st.PeakExchangeBytes, t.stats.PeakExchangeBytes)
		st.PeakRssBytes = max(st.PeakRssBytes, t.stats.PeakRssBytes)
		stage := stages[t.stage]
		if stage == nil {
			stage = &wire.StageStats{Stage: uint32(t.stage)}
			stages[t.stage] = stage
			st.Stage = append(st.Stage, stage)
		}
		stage.Tasks = append(stage.Tasks, t.stats)
	}
	sum.BytesSpilled += spilled.total()
	st.Stalls = stalls.total()
	st.Exchange = countersToWire(sum)
	out := &wire.Finished{Stats: st}
	if r.req.Options.Analyze {
		out.Explain = r.restartsText() + r.explain(stages)
	}
	return out
}

// meter is how far counters of nodes, by node, went while a query ran: each at its first and last look.
type meter map[string][2]int64

func (m meter) look(node string, before, after int64) {
	span, seen := m[node]
	if !seen {
		span[0] = before
	}
	m[node] = [2]int64{min(span[0], before), max(span[1], after)}
}

func (m meter) total() (sum int64) {
	for _, span := range m {
		sum += span[1] - span[0]
	}
	return sum
}

func decode(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("planner: result of a stage task: %w", err)
	}
	return nil
}

// peakRSS is the highest resident memory of this process in bytes, or 0 where the system does not tell.
func peakRSS() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if !ok {
		return 0
	}
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0
	}
	return kib << 10
}
