package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors"
	"manta/planner/kernel"
	"manta/planner/wire"
	"manta/shuffle"
	"manta/shuffle/rows"
)

// run is one query on its way: the coordinator, on the head.
//
// It plans, starts every task of every stage at once, hands the rows of the last
// stage to the client as they come, and ends the job in one way or another. The
// order in which tasks work is not its business: a task that lacks input or
// credit waits in its exchange, without a slot. A query that loses a node starts
// again; see restart.go and takeover.go.
type run struct {
	service *Service
	req     *wire.QueryRequest
	mode    shuffle.Mode
	stream  grpc.ServerStreamingServer[wire.QueryEvent]
	sending sync.Mutex // orders events: progress comes from other goroutines
	started time.Time
	out     outbox
	columns []byte // the result's schema, as the client knows it
	lost    []loss // of each attempt before this one that lost a node

	asWritten error // of tasks, because of which the query runs as it is written

	attempt
}

// attempt is one try to run the query. Each is a job of its own, so nothing of
// one is visible in the next, but what was handed over.
type attempt struct {
	*takenOver // nil: it runs from the beginning

	cancel     context.CancelCauseFunc // of the job's context
	survivors  *survivors
	nodes      []actors.NodeInfo
	slots      []actors.NodeID // one for each slot, nodes taking turns
	whole      actors.NodeInfo // the node of a query that is not distributed
	partitions int
	query      *prepared
	job        *actors.Job
	planTime   time.Duration
	tasks      []*stageTask
}

// stageTask is a task that has been submitted.
type stageTask struct {
	stage  int
	index  int
	node   actors.NodeID
	served bool // it hands out what is kept
	task   *actors.Task

	// The attempt's survivors guard these until all tasks have ended:
	ended     bool
	cancelled bool            // on its own
	stats     *wire.TaskStats // once it has ended well
	err       error
}

func (s *Service) newRun(req *wire.QueryRequest, stream grpc.ServerStreamingServer[wire.QueryEvent]) (*run, error) {
	if req.Options == nil {
		req.Options = &wire.QueryOptions{}
	}
	m, err := parseMode(req.Options.Shuffle)
	if err != nil {
		return nil, err
	}
	if err := checkDistribute(req.Options.Distribute); err != nil {
		return nil, err
	}
	if req.Options.Partitions > maxPartitions {
		return nil, fmt.Errorf("planner: %d partitions asked for; at most %d", req.Options.Partitions, maxPartitions)
	}
	if strings.TrimSpace(req.Sql) == "" {
		return nil, errors.New("planner: the query is empty")
	}
	r := &run{service: s, req: req, mode: m, stream: stream, started: time.Now()}
	r.out.limit, r.out.send = min(maxHeld, s.config.memory/8), r.send
	return r, nil
}

// run runs the query until its end; ctx is the client's call.
func (r *run) run(ctx context.Context) error {
	for next := (&attempt{}); next != nil; {
		r.attempt = *next
		var err error
		if next, err = r.try(ctx); err != nil {
			return err
		}
	}
	return nil
}

// try makes one attempt. If it fails, and the query starts again, it gives the next one.
func (r *run) try(ctx context.Context) (next *attempt, err error) {
	if r.job == nil {
		begun, err := r.begin(ctx, nil)
		if err != nil {
			return r.again(ctx, err)
		}
		r.attempt = *begun
	}
	var failed error
	defer func() {
		if stopped := r.job.Stopped(); failed != nil && stopped != nil {
			failed = stopped // while it was found out what is left, perhaps
		} else if failed != nil && ctx.Err() != nil && (severity(failed) != ofItsOwn || status.Code(failed) == codes.Canceled) {
			failed = clientLeft{} // whatever else the attempt had lost
		}
		r.job.Finish(failed)
		r.cancel(nil)
	}()
	if failed = r.once(); failed == nil {
		return nil, nil
	}
	return r.again(ctx, failed)
}

// clientLeft is what the list of jobs says of a query whose client cancelled it, or is gone.
type clientLeft struct{}

func (clientLeft) Error() string        { return "the client left" }
func (clientLeft) Is(target error) bool { return target == context.Canceled }

// jobGrace is how long the job of an attempt that lost a node is there for the next one to take over what it keeps.
const jobGrace = taskGrace + settleFor + adoptWithin

// begin makes the job of an attempt, in the place of the job of the one before, if there is one.
func (r *run) begin(ctx context.Context, after *actors.Job) (*attempt, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{cancel: cancel}
	s := &survivors{
		node: r.service.node, cancel: cancel,
		mayRestart: func() bool { return ctx.Err() == nil && !r.out.opened.Load() && len(r.lost) < maxRestarts },
	}
	a.survivors = s
	spec := actors.JobSpec{Name: r.jobName(), After: after, Grace: jobGrace, NodeLost: func(err error) { go s.fail(err) }}
	var err error
	if a.job, err = r.service.node.NewJob(ctx, spec); err != nil {
		cancel(nil)
		return nil, err
	}
	return a, nil
}

// once runs the attempt until its tasks have ended, and sends the end of the rows if it went well.
func (r *run) once() error {
	if err := r.prepareTasks(); err != nil {
		return err
	}
	if hook := r.service.planned; hook != nil {
		hook(r)
	}
	ended, err := r.submit()
	if hook := r.service.submitted; hook != nil {
		hook(r)
	}
	if err == nil {
		err = r.deliver()
	}
	if err != nil {
		r.survivors.fail(err)
	}
	<-ended
	r.survivors.stop(nil)
	if err = r.firstFailure(err); err != nil {
		return err
	}
	if err = r.out.open(); err != nil {
		return err
	}
	return r.send(&wire.QueryEvent{Event: &wire.QueryEvent_Finished{Finished: r.finished()}})
}

// maxJobName is how much of a query's text its job shows.
const maxJobName = 120

func (r *run) jobName() string {
	name := r.req.Options.Label
	if name == "" {
		name = strings.Join(strings.Fields(r.req.Sql), " ")
	}
	if runes := []rune(name); len(runes) > maxJobName {
		name = string(runes[:maxJobName]) + "…"
	}
	if n := len(r.lost); n > 0 {
		name += fmt.Sprintf(" (restart %d)", n)
	}
	return name
}

// prepareTasks chooses the nodes and plans the query for them.
func (r *run) prepareTasks() error {
	if err := r.place(); err != nil {
		return err
	}
	if r.takenOver != nil { // the plan stays, so that tasks do what they did before
		r.partitions = r.query.plan.Partitions
		return r.checkTasks()
	}
	began := time.Now()
	var err error
	if r.query, err = r.service.prepare(r.job.Context(), r.req, r.placement()); err != nil {
		return err
	}
	r.planTime = time.Since(began)
	return r.checkTasks()
}

// maxTasks bounds a query's tasks on one node: each may hold a thread while it
// waits, and a process that reaches Go's limit of 10,000 threads ends.
const maxTasks = 2000

// checkTasks refuses a query with more tasks than a node can hold.
func (r *run) checkTasks() error {
	if r.query.plan == nil {
		return nil
	}
	tasks := map[actors.NodeID]int{}
	for _, s := range r.query.plan.Stages {
		for i := range s.Tasks {
			tasks[r.nodeOf(s, i)]++
		}
	}
	for node, n := range tasks {
		if n > maxTasks {
			return fmt.Errorf("planner: %s of %d partitions are %d tasks for node %s, and %d are the most; use fewer partitions",
				counted(len(r.query.plan.Stages), "stage"), r.partitions, n, node, maxTasks)
		}
	}
	return nil
}

// place lists the slots of the nodes that are alive, nodes taking turns, so that
// neighbouring partitions are on different nodes.
func (r *run) place() error {
	most := 0
	for _, n := range r.service.node.Nodes() {
		if n.State == actors.NodeAlive && n.CPUs > 0 {
			r.nodes = append(r.nodes, n)
			most = max(most, n.CPUs)
		}
	}
	for i := range most {
		for _, n := range r.nodes {
			if i < n.CPUs {
				r.slots = append(r.slots, n.ID)
			}
		}
	}
	if len(r.slots) == 0 {
		return errors.New("planner: no node takes tasks; start one with manta worker")
	}
	r.whole = wholeNode(r.nodes)
	r.partitions = int(r.req.Options.Partitions)
	if r.partitions == 0 {
		r.partitions = min(len(r.slots), maxPartitions)
	}
	return nil
}

// submit starts every task, as one gang. The channel is closed when all of them have ended: the first that fails ends the
// attempt, soon or once nothing of it goes on.
func (r *run) submit() (ended <-chan struct{}, err error) {
	done := make(chan struct{})
	var all sync.WaitGroup
	defer func() {
		go func() {
			all.Wait()
			close(done)
		}()
	}()
	specs, err := r.specs()
	if err != nil {
		return done, err
	}
	gang := make([]actors.TaskSpec, len(specs))
	for i := range specs {
		gang[i] = specs[i].TaskSpec
	}
	tasks, err := r.job.SubmitAll(gang)
	if err != nil {
		return done, err
	}
	for i, task := range tasks {
		r.tasks = append(r.tasks, &stageTask{stage: specs[i].stage, index: specs[i].index, node: specs[i].Node, served: specs[i].served, task: task})
	}
	if r.query.plan != nil {
		r.survivors.follow(r.graph(), r.takenOver, r.tasks)
	}
	progress := &progress{run: r, total: len(r.tasks)}
	for _, t := range r.tasks {
		all.Go(func() {
			stats, err := t.wait(r.job.Context())
			r.survivors.ended(t, stats, err)
			progress.ended()
		})
	}
	return done, nil
}

// taskGrace is how long a task may take to end once the query is over.
const taskGrace = 15 * time.Second

// wait waits for the task's end, for a while even after the query's.
func (t *stageTask) wait(ctx context.Context) (*wire.TaskStats, error) {
	result, err := t.task.Wait(ctx)
	if ctx.Err() != nil {
		grace, cancel := context.WithTimeout(context.Background(), taskGrace)
		defer cancel()
		result, err = t.task.Wait(grace)
	}
	if err != nil {
		return nil, err
	}
	stats := &wire.TaskStats{}
	if err := decode(result, stats); err != nil {
		return nil, err
	}
	return stats, nil
}

// deliver sends the columns at once, and the rows through the outbox as they come.
func (r *run) deliver() error {
	schema, err := r.resultSchema()
	if err != nil {
		return err
	}
	shown := kernel.FromLosslessSchema(schema)
	head, err := encode(shown)
	if err != nil {
		return err
	}
	if r.columns == nil {
		r.columns = head
	} else if !bytes.Equal(r.columns, head) {
		return errors.New("planner: the query started again, and its files have other columns than before; run it again")
	}
	event := &wire.Started{Job: string(r.job.ID()), Names: r.query.names, Types: r.query.types, Schema: head}
	if err := r.send(&wire.QueryEvent{Event: &wire.QueryEvent_Started{Started: event}}); err != nil {
		return err
	}
	reader, err := r.service.shuffle.Reader(r.job.TaskContext(), r.resultEdge(), 0, schema)
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		b, err := reader.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		err = r.sendRows(shown, b)
		b.Release()
		if err != nil {
			return err
		}
	}
}

// maxBlock bounds an event with rows, far below what an RPC can hold.
const maxBlock = 8 << 20

// sendRows sends the rows of a batch (borrowed), in pieces if they are many.
func (r *run) sendRows(schema *arrow.Schema, b arrow.RecordBatch) error {
	plain, err := kernel.FromLossless(b)
	if err != nil {
		return err
	}
	defer plain.Release()
	block, err := encode(schema, plain)
	if err != nil {
		return err
	}
	if len(block) > maxBlock && b.NumRows() > 1 && !rows.HasUnion(b.Schema()) {
		half := b.NumRows() / 2
		for _, cut := range [][2]int64{{0, half}, {half, b.NumRows()}} {
			piece := b.NewSlice(cut[0], cut[1])
			err := r.sendRows(schema, piece)
			piece.Release()
			if err != nil {
				return err
			}
		}
		return nil
	}
	for len(block) > maxBlock { // one row that is larger, or what cannot be cut
		if err := r.out.put(&wire.QueryEvent{Event: &wire.QueryEvent_Part{Part: block[:maxBlock]}}); err != nil {
			return err
		}
		block = block[maxBlock:]
	}
	return r.out.put(&wire.QueryEvent{Event: &wire.QueryEvent_Block{Block: block}})
}

// encode makes an Arrow IPC stream.
func encode(schema *arrow.Schema, batches ...arrow.RecordBatch) ([]byte, error) {
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			return nil, fmt.Errorf("planner: rows of the result: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("planner: rows of the result: %w", err)
	}
	return buf.Bytes(), nil
}

func (r *run) send(event *wire.QueryEvent) error {
	r.sending.Lock()
	defer r.sending.Unlock()
	// A client that reads slowly, or not at all, must not keep other queries from starting.
	slow := time.AfterFunc(slowClient, r.job.Park)
	defer slow.Stop()
	return r.stream.Send(event)
}

// slowClient is how long a client may take to receive an event before its job counts no more among those that run at once.
const slowClient = time.Second

// progress tells the client how many tasks have ended.
type progress struct {
	run   *run
	total int

	mu   sync.Mutex
	done int       // guarded by mu
	last time.Time // guarded by mu: when the client was told
}

// tellEvery is the least time between two progress events.
const tellEvery = 100 * time.Millisecond

func (p *progress) ended() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	if now := time.Now(); now.Sub(p.last) >= tellEvery {
		p.last = now
		// A client that is gone ends the query by other means.
		_ = p.run.send(&wire.QueryEvent{Event: &wire.QueryEvent_Progress{
			Progress: &wire.Progress{Tasks: uint32(p.total), TasksDone: uint32(p.done)},
		}})
	}
}
