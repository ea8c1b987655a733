package planner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"manta/actors"
	"manta/planner/dist"
	"manta/planner/regions"
	"manta/shuffle"
)

// A query that starts again does not begin from nothing when tasks of it have come to their end: what they have stored, on
// nodes that are left, is handed over to the next attempt's job, and only those tasks run again that package regions names.
// The plan stays what it was, with its modes and its splits, so that a task that runs again does what it did before; the
// tasks of nodes that are gone go to others. In the place of a task that does not run again, and whose rows are to be
// read, a task on its node hands out what is kept.

// takenOver is what an attempt has from the one before it. Of an attempt from the beginning it is nil.
type takenOver struct {
	kept     map[regions.Output]actors.NodeID // outputs that are the attempt's job's, and where
	decision *regions.Decision
}

// runs says whether a task of the plan runs in the attempt.
func (o *takenOver) runs(s *dist.Stage, task int) bool {
	return o == nil || o.decision.Run[regions.Task{Stage: s.ID, Index: task}]
}

// home is the node that keeps what a task has stored.
func (o *takenOver) home(g *graph, s *dist.Stage, task int) (actors.NodeID, bool) {
	if o.runs(s, task) {
		return "", false
	}
	for _, e := range s.Outputs {
		if node, ok := o.kept[regions.Output{Edge: g.index[e], Task: task}]; ok {
			return node, true
		}
	}
	return "", false
}

// graph is a plan as package regions sees it.
type graph struct {
	plan  *regions.Plan
	edges []*dist.Edge // by their number there
	index map[*dist.Edge]int
}

// graph makes it, once for a plan.
func (r *run) graph() *graph {
	if r.query.graph != nil {
		return r.query.graph
	}
	g := &graph{plan: &regions.Plan{}, index: map[*dist.Edge]int{}}
	for _, s := range r.query.plan.Stages {
		g.plan.Stages = append(g.plan.Stages, regions.Stage{Tasks: s.Tasks, Stable: s.Stable()})
		for _, e := range s.Outputs {
			to := regions.Result
			if e.To != nil {
				to = e.To.ID
			}
			g.index[e] = len(g.edges)
			g.edges = append(g.edges, e)
			g.plan.Edges = append(g.plan.Edges, regions.Edge{From: s.ID, To: to, Stored: r.choose(e).mode != shuffle.Streaming, Only: e.Source})
		}
	}
	r.query.graph = g
	return g
}

// decide says what runs again when these outputs are kept.
func (g *graph) decide(kept map[regions.Output]actors.NodeID) *regions.Decision {
	return regions.Decide(g.plan, func(o regions.Output) bool { _, ok := kept[o]; return ok })
}

// notMadeAgain are the outputs of tasks that do not run again.
func (g *graph) notMadeAgain(kept map[regions.Output]actors.NodeID, d *regions.Decision) map[regions.Output]actors.NodeID {
	left := maps.Clone(kept)
	maps.DeleteFunc(left, func(o regions.Output, _ actors.NodeID) bool {
		return d.Run[regions.Task{Stage: g.plan.Edges[o.Edge].From, Index: o.Task}]
	})
	return left
}

// takeOver makes the attempt that follows one that failed: one that has what of it is of use, or one from the beginning.
// No task of the failed one runs any more, and its job has not been finished.
func (r *run) takeOver(ctx context.Context) *attempt {
	fresh := &attempt{}
	if r.query == nil || r.query.plan == nil || r.job == nil {
		return fresh
	}
	g, kept := r.graph(), r.survivors.left()
	d := g.decide(kept)
	if len(d.Serve) == 0 {
		return fresh
	}
	next, err := r.begin(ctx, r.job)
	if err != nil {
		return fresh // it will meet the error again
	}
	kept = r.adopt(ctx, next.job.ID(), g.notMadeAgain(kept, d))
	if d = g.decide(kept); len(d.Serve) > 0 {
		kept = g.notMadeAgain(kept, d) // more than before, when a node did not hand over all
		next.query, next.takenOver = r.query, &takenOver{kept: kept, decision: d}
		r.spare(ctx, next.job.ID(), next.takenOver)
	}
	return next
}

// adoptWithin bounds how long a node may take to hand over what it keeps.
const adoptWithin = 5 * time.Second

// adopt hands outputs over to the next job, and gives those for which it went well.
func (r *run) adopt(ctx context.Context, to actors.JobID, kept map[regions.Output]actors.NodeID) map[regions.Output]actors.NodeID {
	g := r.graph()
	var mu sync.Mutex
	adopted := map[regions.Output]actors.NodeID{}
	g.tell(ctx, kept, func(ctx context.Context, node actors.NodeID, outputs map[shuffle.Output]regions.Output) {
		there, err := r.service.shuffle.Adopt(ctx, node, r.job.ID(), to, slices.Collect(maps.Keys(outputs)))
		if err != nil {
			r.service.config.log.Warn("a node did not hand over what it keeps", "job", r.job.ID(), "node", node, "error", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, o := range there {
			adopted[outputs[o]] = node
		}
	})
	return adopted
}

// spare tells the nodes which outputs of a job they keep only for the job after it. That one of them does not hear of it costs
// no more than the disk's time.
func (r *run) spare(ctx context.Context, job actors.JobID, o *takenOver) {
	g, idle := r.graph(), maps.Clone(o.kept)
	for _, served := range o.decision.Serve {
		delete(idle, served)
	}
	g.tell(ctx, idle, func(ctx context.Context, node actors.NodeID, outputs map[shuffle.Output]regions.Output) {
		if err := r.service.shuffle.Spare(ctx, node, job, slices.Collect(maps.Keys(outputs))); err != nil {
			r.service.config.log.Warn("a node does not know what it can spare", "job", job, "node", node, "error", err)
		}
	})
}

// tell has something done for each node's outputs, all at once, within adoptWithin.
func (g *graph) tell(ctx context.Context, outputs map[regions.Output]actors.NodeID, do func(context.Context, actors.NodeID, map[shuffle.Output]regions.Output)) {
	ctx, cancel := context.WithTimeout(ctx, adoptWithin)
	defer cancel()
	at := map[actors.NodeID]map[shuffle.Output]regions.Output{}
	for o, node := range outputs {
		if at[node] == nil {
			at[node] = map[shuffle.Output]regions.Output{}
		}
		at[node][shuffle.Output{Edge: uint32(g.edges[o.Edge].ID), Producer: producer(g.edges[o.Edge], o.Task)}] = o
	}
	var all sync.WaitGroup
	for node, outputs := range at {
		all.Go(func() { do(ctx, node, outputs) })
	}
	all.Wait()
}

// producer is the number of a task among those that write an edge.
func producer(e *dist.Edge, task int) int {
	if e.Source > 0 {
		return 0 // the edge's only one
	}
	return task
}
