package planner

import (
	"sync"
	"time"

	"manta/actors"
	"manta/planner/regions"
	"manta/planner/wire"
)

// An attempt that has lost a node cannot succeed, but its tasks need not all run again: those that lack nothing go on, and
// what they store is handed over with the rest. The next attempt begins when the last of them has ended.

// survivors follows the tasks of an attempt to their ends, and ends it when there is nothing to wait for. Its methods are for
// any goroutine.
type survivors struct {
	node   *actors.Node
	cancel func(error) // of the attempt
	// mayRestart says whether another attempt may follow.
	mayRestart func() bool

	mu    sync.Mutex
	graph *graph     // guarded by mu, like all below, and what tasks say of their end; nil: nothing would be handed over
	from  *takenOver // of the attempt
	tasks map[regions.Task]*stageTask
	lost  error // why the attempt cannot succeed, once only those go on that are of use
	over  bool
	since time.Time // the tasks were submitted
	bound *time.Timer
}

// Tasks go on for up to patienceTimes as long as their attempt had run before, and patienceLeast at least. They wait for
// nothing that is lost, and to begin again takes longer than to go on, so this is for what nobody has thought of.
const (
	patienceTimes = 4
	patienceLeast = time.Minute
)

// follow begins to follow the attempt's tasks.
func (s *survivors) follow(g *graph, from *takenOver, tasks []*stageTask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.graph, s.from, s.tasks = time.Now(), g, from, map[regions.Task]*stageTask{}
	for _, t := range tasks {
		s.tasks[regions.Task{Stage: t.stage, Index: t.index}] = t
	}
}

// ended notes what a task has come to.
func (s *survivors) ended(t *stageTask, stats *wire.TaskStats, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.ended, t.stats, t.err = true, stats, err
	switch {
	case t.cancelled: // on its own, and nobody waits for it
	case err != nil:
		s.failed(err)
	case s.lost != nil:
		s.settle()
	}
}

// fail notes that the attempt cannot succeed.
func (s *survivors) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(err)
}

// failed runs under mu.
func (s *survivors) failed(err error) {
	switch {
	case s.over:
	case s.graph == nil, s.lost == nil && !brokenStream(err), s.lost != nil && severity(err) == ofItsOwn:
		s.end(err)
	default:
		if s.lost == nil {
			s.lost = err
			s.bound = time.AfterFunc(max(patienceLeast, patienceTimes*time.Since(s.since)), func() { s.stop(err) })
		}
		s.settle()
	}
}

// why says why the attempt cannot succeed, if that is because a node or the touch between two was lost.
func (s *survivors) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// stop ends the attempt; without an error, when its tasks have ended.
func (s *survivors) stop(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(err)
}

// end runs under mu.
func (s *survivors) end(err error) {
	if s.over {
		return
	}
	s.over = true
	if s.bound != nil {
		s.bound.Stop()
	}
	if err != nil {
		s.cancel(err)
	}
}

// settle cancels the tasks that are not to go on, and the attempt when none is. It runs under mu.
func (s *survivors) settle() {
	if s.over {
		return
	}
	// A node that is silent may come back, so its tasks may go on, and what it keeps counts. But the next attempt is not begun
	// with it, unless it has come back by then: see left.
	dead := s.dead()
	kept := s.stored(func(n actors.NodeID) bool { return !dead[n] })
	goOn := regions.GoOn(s.graph.plan, func(o regions.Output) bool { _, ok := kept[o]; return ok }, func(t regions.Task) regions.State {
		return s.state(t, dead)
	})
	if len(goOn) == 0 || !s.mayRestart() {
		s.end(s.lost)
		return
	}
	for key, t := range s.tasks {
		if !t.ended && !t.cancelled && !t.served && !goOn[key] {
			t.cancelled = true
			t.task.Cancel()
		}
	}
}

// state is how far a task has come. One that hands out what is kept stands for the one that stored it. It runs under mu.
func (s *survivors) state(key regions.Task, dead map[actors.NodeID]bool) regions.State {
	t := s.tasks[key]
	switch {
	case t == nil: // it ran before, and nobody reads it now
		return regions.Ended
	case t.ended && t.err == nil:
		return regions.Ended
	case dead[t.node]:
		return regions.Lost
	case t.ended, t.cancelled:
		return regions.Gone
	case t.served: // it waits for nobody
		return regions.Ended
	}
	return regions.Running
}

// dead are the nodes of tasks that are.
func (s *survivors) dead() map[actors.NodeID]bool {
	dead := map[actors.NodeID]bool{}
	for _, t := range s.tasks {
		dead[t.node] = true
	}
	for _, n := range s.node.Nodes() {
		if n.State != actors.NodeDead {
			delete(dead, n.ID)
		}
	}
	return dead
}

// left lists what an attempt whose tasks have ended leaves behind, and where.
func (s *survivors) left() map[regions.Output]actors.NodeID {
	alive := map[actors.NodeID]bool{}
	for _, n := range s.node.Nodes() {
		alive[n.ID] = n.State == actors.NodeAlive
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored(func(n actors.NodeID) bool { return alive[n] })
}

// stored lists what there is on some of the nodes, and where: the outputs of tasks that have come to their end, and those that
// were handed over to the attempt and that it does not make again. It runs under mu.
func (s *survivors) stored(on func(actors.NodeID) bool) map[regions.Output]actors.NodeID {
	all := map[regions.Output]actors.NodeID{}
	add := func(o regions.Output, node actors.NodeID) {
		if on(node) {
			all[o] = node
		}
	}
	if s.from != nil {
		for o, node := range s.from.kept {
			add(o, node)
		}
	}
	kept := map[uint32]bool{}
	for _, t := range s.tasks {
		if !t.ended || t.err != nil || t.served {
			continue
		}
		clear(kept)
		for _, o := range t.stats.Outputs {
			kept[o.Edge] = o.Kept
		}
		for i, e := range s.graph.edges {
			if e.From.ID == t.stage && kept[uint32(e.ID)] {
				add(regions.Output{Edge: i, Task: t.index}, actors.NodeID(t.stats.Node))
			}
		}
	}
	return all
}
