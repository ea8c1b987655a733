package actors

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"manta/actors/core"
	"manta/actors/internal/wire"
	"manta/actors/scheduler"
)

// RunInfo describes a task, a call, or the making of an actor that has not ended.
type RunInfo struct {
	ID      string `json:"id"`
	Job     JobID  `json:"job"`
	Name    string `json:"name"`
	State   string `json:"state"` // WAITING for arguments, QUEUED for a place or a CPU, RUNNING, BLOCKED while it waits for others
	Node    NodeID `json:"node,omitempty"`
	Attempt int    `json:"attempt"`
	Why     string `json:"why,omitempty"` // what it waits for
}

// ActorInfo describes an actor that is not dead.
type ActorInfo struct {
	ID       string `json:"id"`
	Job      JobID  `json:"job"`
	Name     string `json:"name,omitempty"` // by which it is found
	Class    string `json:"class"`
	State    string `json:"state"` // PENDING, ALIVE, RESTARTING
	Node     NodeID `json:"node,omitempty"`
	Restarts int    `json:"restarts"`
	Calls    int    `json:"pending_calls"` // that are not done
	Why      string `json:"why,omitempty"` // what it waits for
}

// Tasks lists up to limit tasks and calls that have not ended, with what they wait for. Empty on a node that is not the head.
func (n *Node) Tasks(ctx context.Context, limit int) []RunInfo {
	if n.engine.brain == nil {
		return nil
	}
	var list []core.TaskInfo
	nodes := make(map[NodeID]bool)
	n.engine.brain.do(func(c *core.Core) {
		list = c.Tasks(limit)
		for _, id := range c.ActorNodes() {
			nodes[NodeID(id)] = true
		}
	})
	for _, t := range list {
		if t.Node != "" {
			nodes[NodeID(t.Node)] = true
		}
	}
	stands, straight := n.standings(ctx, nodes)
	out := make([]RunInfo, len(list))
	for i, t := range list {
		out[i] = RunInfo{
			ID: idText(t.ID), Job: JobID(t.Job), Name: t.Name, State: t.State, Node: NodeID(t.Node), Attempt: int(t.Attempt), Why: t.Why,
		}
		if s := stands[attemptKey{t.ID, t.Attempt}]; s != nil && t.State == "RUNNING" {
			out[i].State, out[i].Why = s.State, s.Why
		}
	}
	for _, s := range straight {
		out = append(out, RunInfo{ID: idText(core.ID(s.Id)), Job: JobID(s.Job), Name: s.Name, State: s.State, Node: s.node, Why: s.Why})
	}
	slices.SortFunc(out, func(a, b RunInfo) int { return cmp.Compare(a.ID, b.ID) })
	return out[:min(len(out), limit)]
}

// Actors lists up to limit actors that are not dead. Empty on a node that is not the head.
func (n *Node) Actors(ctx context.Context, limit int) []ActorInfo {
	if n.engine.brain == nil {
		return nil
	}
	var list []core.ActorInfo
	nodes := make(map[NodeID]bool)
	n.engine.brain.do(func(c *core.Core) {
		list = c.Actors(limit)
		for _, id := range c.ActorNodes() {
			nodes[NodeID(id)] = true
		}
	})
	_, straight := n.standings(ctx, nodes)
	calls := make(map[core.ID]int)
	for _, s := range straight {
		calls[core.ID(s.Actor)]++
	}
	out := make([]ActorInfo, len(list))
	for i, a := range list {
		out[i] = ActorInfo{
			ID: idText(a.ID), Job: JobID(a.Job), Name: a.Name, Class: a.Class, State: a.State, Node: NodeID(a.Node),
			Restarts: a.Restarts, Calls: a.Calls + calls[a.ID], Why: a.Why,
		}
	}
	return out
}

// standWait is how long a node may take to say how its attempts stand. What one that does not answer has counts as running.
const standWait = 2 * time.Second

// straightCall is a call that went straight to its actor, on a node.
type straightCall struct {
	*wire.Stand
	node NodeID
}

// standings asks nodes for those of their tasks that do not run, though they have a place; and for calls that went straight to actors there.
func (n *Node) standings(ctx context.Context, nodes map[NodeID]bool) (stands map[attemptKey]*wire.Stand, straight []straightCall) {
	ctx, cancel := context.WithTimeout(ctx, standWait)
	defer cancel()
	var mu sync.Mutex
	var all sync.WaitGroup
	stands = make(map[attemptKey]*wire.Stand)
	for id := range nodes {
		all.Go(func() {
			list := n.standingOn(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			for _, s := range list {
				if s.Actor != 0 {
					straight = append(straight, straightCall{s, id})
				} else {
					stands[attemptKey{core.ID(s.Id), s.Attempt}] = s
				}
			}
		})
	}
	all.Wait()
	return stands, straight
}

func (n *Node) standingOn(ctx context.Context, id NodeID) []*wire.Stand {
	if id == n.id {
		return n.engine.standing(maxStands)
	}
	conn, err := n.Conn(id)
	if err != nil {
		return nil
	}
	reply, err := wire.NewPeerClient(conn).Standing(ctx, &wire.StandingRequest{Limit: maxStands})
	if err != nil {
		return nil
	}
	return reply.Attempts
}

// maxStands bounds what a node tells of its attempts at once.
const maxStands = 100_000

func (s *peerServer) Standing(_ context.Context, r *wire.StandingRequest) (*wire.StandingReply, error) {
	return &wire.StandingReply{Attempts: s.n.engine.standing(min(int(r.Limit), maxStands))}, nil
}

// standing tells of attempts here that do not run, and of calls that came straight.
func (rt *engine) standing(limit int) (list []*wire.Stand) {
	type at struct {
		a      *attempt
		slot   string
		queued bool
	}
	rt.mu.Lock()
	all := make([]at, 0, len(rt.attempts))
	ahead := 0
	for _, a := range rt.attempts {
		all = append(all, at{a, a.slot, a.queued})
		if a.queued {
			ahead++
		}
	}
	rt.mu.Unlock()
	for _, x := range all {
		stand := &wire.Stand{Id: uint64(x.a.m.Spec.ID), Attempt: x.a.m.Attempt, State: "QUEUED"}
		state := rt.n.runner.slots.state(x.slot)
		switch {
		case x.queued:
			stand.Why = fmt.Sprintf("a CPU of its node, with %d others", ahead-1)
		case x.a.inst != nil && x.a.m.Spec.Kind == core.KindCall:
			before := x.a.inst.before(x.a)
			if x.a.from != "" {
				stand.State = "RUNNING"
				stand.Job, stand.Name, stand.Actor = string(x.a.s.job), cmp.Or(x.a.m.Spec.Opt.Name, x.a.m.Spec.Func), uint64(x.a.m.Actor)
			}
			if before < 0 && x.a.from == "" {
				continue
			} else if before < 0 {
				break
			}
			stand.State, stand.Why = "QUEUED", fmt.Sprintf("its actor, which is busy; %d calls are before it", before)
		case state == scheduler.Queued:
			stand.Why = "a CPU of its node"
		case state == scheduler.Waiting:
			stand.State, stand.Why = "BLOCKED", "a value that it gets"
			if x.a.m.Spec.Opt.Gang != 0 {
				stand.Why = "input or credit, from or for the tasks it works with"
			}
		default:
			continue
		}
		if list = append(list, stand); len(list) == limit {
			break
		}
	}
	return list
}

// before counts the calls that wait before one in its lane; -1 when it does not wait.
func (i *instance) before(a *attempt) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.lanes[a.m.Spec.Opt.Lane]; l != nil {
		return slices.Index(l.queue, a)
	}
	return -1
}

// state tells where a task is; Gone if it has nothing to do with slots.
func (s *slots) state(id string) scheduler.TaskState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots.State(id)
}

func (s *headServer) ListTasks(ctx context.Context, r *wire.ListRequest) (*wire.ListTasksReply, error) {
	if _, err := s.head(); err != nil {
		return nil, err
	}
	reply := &wire.ListTasksReply{}
	for _, t := range s.n.Tasks(ctx, int(r.Limit)) {
		reply.Tasks = append(reply.Tasks, &wire.RunInfo{
			Id: t.ID, Job: string(t.Job), Name: cleanText(t.Name), State: t.State, Node: string(t.Node), Attempt: int32(t.Attempt), Why: cleanText(t.Why),
		})
	}
	return reply, nil
}

func (s *headServer) ListActors(ctx context.Context, r *wire.ListRequest) (*wire.ListActorsReply, error) {
	if _, err := s.head(); err != nil {
		return nil, err
	}
	reply := &wire.ListActorsReply{}
	for _, a := range s.n.Actors(ctx, int(r.Limit)) {
		reply.Actors = append(reply.Actors, &wire.ActorInfo{
			Id: a.ID, Job: string(a.Job), Name: cleanText(a.Name), Class: a.Class, State: a.State, Node: string(a.Node),
			Restarts: int64(a.Restarts), PendingCalls: int64(a.Calls), Why: cleanText(a.Why),
		})
	}
	return reply, nil
}
