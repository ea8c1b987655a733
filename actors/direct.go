package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"manta/actors/core"
	"manta/actors/route"
)

// direct makes a node's calls of actors, by the head or straight to the actor's node: the shell around package route. The head's own node
// has none: what it calls is one message away in any case.
type direct struct {
	rt *engine

	mu    sync.Mutex              // comes before engine.mu
	r     *route.Router           // guarded by mu
	open  map[core.ID]*directCall // guarded by mu; those that the head does not know of
	self  []any                   // guarded by mu; for actors and callers on this node, in order
	busy  bool                    // guarded by mu; somebody delivers them
	early map[core.ID]*core.Where // guarded by mu; by actor, the newest, of nodes that this one has not heard of
}

// directCall is a call that the head does not know of.
type directCall struct {
	e    *entry // of its result
	args []core.Arg
	held []*entry // of the actor's handle, and of references in arguments: until the head has the call, or it ends
}

func newDirect(rt *engine) *direct {
	return &direct{rt: rt, r: route.New(), open: make(map[core.ID]*directCall), early: make(map[core.ID]*core.Where)}
}

// plainCall says whether a call may go straight to its actor: it is made once, its arguments are small values.
func plainCall(s *core.Spec) bool {
	if s.Stream || s.Opt.Retries != 0 || s.Opt.RetryApp {
		return false
	}
	for i := range s.Args {
		v := s.Args[i].Val
		if v == nil || v.Node != "" || len(v.Contains) > 0 {
			return false
		}
	}
	return true
}

// call makes a call.
func (d *direct) call(s *core.Spec, e, actor *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	rt := d.rt
	rt.mu.Lock()
	ended := e.ready // with its job
	actor.called = true
	rt.mu.Unlock()
	if ended {
		return
	}
	d.r.Call(s, plainCall(s))
	outs := d.r.Take()
	if len(outs) == 1 && outs[0].To == "" && outs[0].Call == s {
		rt.send(&core.Submit{Spec: s})
		return
	}
	rt.mu.Lock()
	e.local = true
	k := &directCall{e: e, args: s.Args}
	k.hold(actor)
	for i := range s.Args {
		k.hold(rt.entries[s.Args[i].Ref])
		if v := s.Args[i].Val; v != nil {
			for _, id := range v.Contains {
				k.hold(rt.entries[id])
			}
		}
	}
	rt.mu.Unlock()
	d.open[s.ID] = k
	d.do(outs)
}

// hold keeps an object of which there is a handle. It runs under engine.mu.
func (k *directCall) hold(e *entry) {
	if e != nil {
		e.handles++
		k.held = append(k.held, e)
	}
}

// do carries out what the router says. It runs under mu.
func (d *direct) do(outs []route.Out) {
	rt := d.rt
	for _, o := range outs {
		switch {
		case o.Call != nil && o.To == "":
			rt.send(&core.Submit{Spec: o.Call})
			if k := d.open[o.Call.ID]; k != nil { // it has waited, or came back
				delete(d.open, o.Call.ID)
				rt.mu.Lock()
				k.e.local = false
				rt.mu.Unlock()
				d.letGo(k)
			}
		case o.Call != nil:
			d.post(NodeID(o.To), &core.Call{Spec: o.Call, Incarnation: o.Incarnation})
		case o.Fence != 0:
			d.post(NodeID(o.To), &core.Fence{Number: o.Fence})
		case o.Stop != 0:
			d.post(NodeID(o.To), &core.Stop{ID: o.Stop, Reason: "cancelled"})
		case o.Canceled:
			d.end(o.Fail, &core.Answer{Failure: toFailure(fmt.Errorf("%w: cancelled", context.Canceled), nil)}, "")
		case o.Fail != 0:
			cause := &NodeDeadError{Node: NodeID(o.Node)}
			f := toFailure(fmt.Errorf("%w: %w", ErrActorDead, cause), nil)
			f.System, f.At = true, o.Node
			d.end(o.Fail, &core.Answer{Failure: f}, "")
		}
	}
}

// end gives a call that the head does not know of its result. What was kept for it here the head cannot free. It runs under mu.
func (d *direct) end(id core.ID, m *core.Answer, from NodeID) {
	k := d.open[id]
	if k == nil {
		return
	}
	delete(d.open, id)
	d.rt.settleCall(k.e, m, from)
	d.letGo(k)
	for _, a := range k.args {
		if a.Val != nil && NodeID(a.Val.Node) == d.rt.n.id {
			d.rt.free(a.Val.Key)
		}
	}
}

// letGo gives back what a call has held. It runs under mu.
func (d *direct) letGo(k *directCall) {
	for _, e := range k.held {
		if e.letGo() {
			d.dropped(e.id)
		}
	}
}

// settleCall takes the answer of a call.
func (rt *engine) settleCall(e *entry, m *core.Answer, from NodeID) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if m.AtHead {
		if e.local = false; !e.ready {
			e.awaits = from
		}
		return
	}
	if !e.local { // somebody was told of it
		rt.post(&core.Put{ID: e.id, Job: core.JobID(e.s.job), Value: m.Value, Failure: m.Failure})
	}
	e.settle(&m.Value, m.Failure)
}

// share makes an object known to the head, if it is not, as its reference is about to travel. It gives its id.
func (e *entry) share() core.ID {
	if e.s == nil || e.id == 0 || e.s.rt.direct == nil {
		return e.id
	}
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if e.local {
		e.local = false
		m := &core.Put{ID: e.id, Job: core.JobID(e.s.job), Pending: !e.ready, Failure: e.failure}
		if e.ready && e.failure == nil {
			m.Value = *e.value
		}
		rt.post(m)
	}
	return e.id
}

// post sends a message to an actor's or a caller's node. It runs under mu.
func (d *direct) post(to NodeID, m any) {
	if to != d.rt.n.id {
		d.rt.n.links.send(to, m)
		return
	}
	d.self = append(d.self, m)
	if !d.busy {
		d.busy = d.rt.n.background.goRun(d.deliver)
	}
}

// deliver takes what this node sends to itself, in order, until nothing is left.
func (d *direct) deliver() {
	for {
		d.mu.Lock()
		msgs := d.self
		if d.self = nil; len(msgs) == 0 {
			d.busy = false
			d.mu.Unlock()
			return
		}
		d.mu.Unlock()
		for _, m := range msgs {
			d.receive(d.rt.n.id, m)
		}
	}
}

// receive takes a message of another node that is not the head, or of this one.
func (d *direct) receive(from NodeID, msg any) {
	switch m := msg.(type) {
	case *core.Call:
		d.rt.startCall(from, m)
	case *core.Stop:
		d.rt.stop(m, from)
	case *core.Fence:
		d.reply(from, &core.Fenced{Number: m.Number})
	case *core.Answer:
		d.mu.Lock()
		defer d.mu.Unlock()
		if m.Missed {
			d.r.Missed(m.ID, core.NodeID(from))
			d.do(d.r.Take())
		} else if d.r.Answered(m.ID, core.NodeID(from)) {
			d.end(m.ID, m, from)
		}
	case *core.Fenced:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.r.Fenced(m.Number, core.NodeID(from))
		d.do(d.r.Take())
	}
}

func (d *direct) reply(to NodeID, m any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.post(to, m)
}

// byHead takes note that an object is ready, as the head says: it may be a call's result.
func (d *direct) byHead(id core.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r.Answered(id, "")
}

// where takes note of where an actor lives.
func (d *direct) where(m *core.Where) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.learn(m)
}

// learn is where; it runs under mu.
func (d *direct) learn(m *core.Where) {
	rt := d.rt
	delete(d.early, m.Actor)
	if NodeID(m.Node) == rt.n.member.head {
		return
	}
	info, heard := rt.n.peers.get(NodeID(m.Node))
	if info.State == NodeDead {
		return // it says so only once
	}
	rt.mu.Lock()
	e := rt.entries[m.Actor]
	if e != nil {
		e.called = true
	}
	rt.mu.Unlock()
	switch {
	case e == nil:
	case !heard:
		d.early[m.Actor] = m
		rt.n.refreshSoon()
	default:
		d.r.Where(m.Actor, m.Node, m.Incarnation)
	}
}

// nodes takes note of a new list of nodes.
func (d *direct) nodes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range slices.Collect(maps.Values(d.early)) {
		d.learn(m)
	}
}

// cancel cancels a call; false if the head knows of it.
func (d *direct) cancel(id core.ID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	ok := d.r.Cancel(id)
	d.do(d.r.Take())
	return ok
}

// cancelFor cancels a call of which the head has the promise only, for another node. If the call went to the head meanwhile so does this.
func (d *direct) cancelFor(m *core.Cancel) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.r.Cancel(m.ID) {
		d.do(d.r.Take())
	} else if d.r.ByHead(m.ID) {
		d.rt.send(m)
	}
}

// stopCalls cancels the calls that a task made, and what they have submitted.
func (d *direct) stopCalls(parent core.ID) {
	d.mu.Lock()
	ids := d.r.Children(parent)
	msgs := make([]any, len(ids))
	for i, id := range ids {
		d.r.Cancel(id)
		msgs[i] = &core.Cancel{ID: id, Recursive: true}
	}
	d.do(d.r.Take())
	d.mu.Unlock()
	d.rt.send(msgs...)
}

// nodeDead fails the calls that a node had. Of results that it put at the head it is asked whether they came there.
func (d *direct) nodeDead(node NodeID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r.NodeDead(core.NodeID(node))
	d.do(d.r.Take())
	d.rt.mu.Lock()
	defer d.rt.mu.Unlock()
	for _, e := range d.rt.entries {
		if e.awaits == node && !e.ready {
			d.rt.post(&core.Want{ID: e.id})
		}
	}
}

// drop takes note that no handle of an actor is left here.
func (d *direct) drop(actors ...core.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range actors {
		d.dropped(id)
	}
}

// dropped is drop, unless a handle has come meanwhile. It runs under mu.
func (d *direct) dropped(id core.ID) {
	d.rt.mu.Lock()
	e := d.rt.entries[id]
	if e != nil {
		e.called = true // its last one is the one that counts
	}
	d.rt.mu.Unlock()
	if e == nil {
		delete(d.early, id)
		d.r.Drop(id)
	}
}

// endJob forgets a job's calls; their results have failed.
func (d *direct) endJob(job JobID, actors []core.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r.EndJob(core.JobID(job))
	for id, k := range d.open {
		if k.e.s.job == job {
			delete(d.open, id)
			d.letGo(k)
		}
	}
	for _, id := range actors {
		d.dropped(id)
	}
}

// idle says whether nothing is kept.
func (d *direct) idle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) == 0 && d.r.Idle()
}

// startCall begins a call that came straight.
func (rt *engine) startCall(from NodeID, m *core.Call) {
	s := m.Spec
	if s.Kind != core.KindCall || s.Stream || s.Results != 1 {
		rt.direct.reply(from, &core.Answer{ID: s.ID, Failure: &core.Failure{Text: "actors: what is no plain call came straight"}})
		return
	}
	start := &core.Start{Spec: s, Args: make([]core.Value, len(s.Args)), Actor: s.Actor}
	for i := range s.Args {
		if s.Args[i].Val == nil {
			rt.direct.reply(from, &core.Answer{ID: s.ID, Failure: &core.Failure{Text: "actors: a call without a value as argument came straight"}})
			return
		}
		start.Args[i] = *s.Args[i].Val
	}
	rt.begin(start, from, m.Incarnation)
}

// answerCall tells the caller of a call that came straight how it ended. What is no small value without references the head gets, for the
// caller: it is to know of what lies in stores.
func (a *attempt) answerCall(m *core.Done) {
	answer := &core.Answer{ID: m.ID, Failure: m.Failure}
	switch {
	case m.Failure != nil:
		m.Failure.At = core.NodeID(a.rt.n.id)
	case len(m.Results) != 1:
		answer.Failure = &core.Failure{Text: fmt.Sprintf("%s gave %d results, not one", a.m.Spec.Func, len(m.Results))}
	case m.Results[0].Node != "" || len(m.Results[0].Contains) > 0:
		answer.AtHead = true
		a.rt.send(&core.Put{ID: m.ID, Job: a.m.Spec.Job, Value: m.Results[0], For: core.NodeID(a.from)})
	default:
		answer.Value = m.Results[0]
	}
	a.rt.direct.reply(a.from, answer)
}
