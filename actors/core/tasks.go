package core

import (
	"fmt"
)

type taskState uint8

const (
	taskWaiting taskState = iota // for arguments
	taskQueued                   // for a place, or for its actor
	taskRunning                  // on its node
	taskEnded
)

type task struct {
	spec     *Spec
	job      *job
	class    *class // when queued
	next     *task  // in its class
	bucket   *bucket
	actor    *actor // of a call, or the one it makes
	gang     *gang  // it starts with; nil: alone
	attempt  int32  // the current one
	failures int    // of attempts, since it was last wanted
	rebuilds int
	deps     int32 // arguments that are not ready
	live     int32 // results that exist
	state    taskState
	open     bool
	kept     bool  // ended, and kept as lineage
	weight   int64 // of what it keeps, when kept
	blocked  bool
	argsGone bool // arguments were let go: it cannot run again
	pinned   bool // its arguments are
	ofJob    chained[task]
	ofParent chained[task]
	ofActor  chained[task]
	stopping bool // it was cancelled: no more attempts
}

func (c *Core) submit(n *node, s *Spec) {
	j := c.jobs[s.Job]
	if s.Kind == KindCreate && s.Opt.Detached {
		j = c.jobs[DetachedJob]
	}
	if j == nil || j.closed {
		f := &Failure{Text: fmt.Sprintf("job %s has ended", s.Job), Kinds: []string{FailJobEnded}}
		for i := range s.Results {
			c.send(n, &Ready{ID: s.ID + ID(i), Failure: f})
		}
		if s.Stream {
			c.send(n, &Items{Stream: s.ID, End: true, Failure: f})
		}
		return
	}
	switch s.Kind {
	case KindLookup:
		c.lookup(n, j, s)
		return
	case KindGroup:
		c.makeGroup(n, j, s)
		return
	case KindOpen:
		o := c.newObject(j, s.ID, n)
		o.state = ready
		c.openStream(o, s, nil, n)
		return
	}
	t := &task{spec: s, job: j, open: true}
	c.tasks[s.ID] = t
	j.open.add(t, isOpen)
	j.tasks++
	if s.Parent != 0 {
		kids := c.kids[s.Parent]
		if kids == nil {
			kids = new(chain[task])
			c.kids[s.Parent] = kids
		}
		kids.add(t, isKid)
	}
	for i := range s.Results {
		o := c.result(j, s.ID+ID(i), n)
		o.producer = t
		t.live++
	}
	if s.Stream {
		o := c.newObject(j, s.ID, n)
		o.producer, o.state = t, ready
		t.live++
		c.openStream(o, s, t, nil)
	}
	c.useArgs(t, 1)
	c.pinArgs(t)
	if s.Kind == KindTask && s.Opt.Gang != 0 && !c.joinGang(t) {
		return
	}
	switch s.Kind {
	case KindCreate:
		if !c.newActor(n, t) {
			return
		}
	case KindCall:
		if !c.admitCall(t) {
			return
		}
		c.tellWhere(n, t.actor)
	}
	c.prepare(t)
}

// useArgs counts, or no longer counts, the task as a user of its arguments.
func (c *Core) useArgs(t *task, n int32) {
	for i := range t.spec.Args {
		if ref := t.spec.Args[i].Ref; ref != 0 {
			if o := c.objects[ref]; o != nil {
				if o.users += n; n < 0 {
					c.collect(o)
				}
			}
		}
	}
}

func (c *Core) pinArgs(t *task) {
	if t.pinned {
		return
	}
	t.pinned = true
	for i := range t.spec.Args {
		a := &t.spec.Args[i]
		if o := c.objects[a.Ref]; a.Ref != 0 && o != nil {
			o.refs.Pin()
		} else if a.Val != nil {
			c.pinAll(a.Val.Contains)
		}
	}
}

func (c *Core) unpinArgs(t *task) {
	if !t.pinned {
		return
	}
	t.pinned = false
	for i := range t.spec.Args {
		a := &t.spec.Args[i]
		if o := c.objects[a.Ref]; a.Ref != 0 && o != nil {
			c.unpin(o)
		} else if a.Val != nil {
			c.unpinAll(a.Val.Contains)
		}
	}
}

// prepare waits for the arguments that are not there, and queues the task when all are.
func (c *Core) prepare(t *task) {
	t.state, t.deps = taskWaiting, 0
	for i := range t.spec.Args {
		ref := t.spec.Args[i].Ref
		if ref == 0 {
			continue
		}
		o := c.objects[ref]
		switch {
		case o == nil:
			c.finish(t, nil, &Failure{Text: "an argument is not held any more", Kinds: []string{FailObjectLost}})
			return
		case o.state == ready && o.failure != nil:
			c.finish(t, nil, o.failure)
			return
		case o.state != ready:
			t.deps++
			o.waiting = append(o.waiting, t)
		}
	}
	if t.deps > 0 {
		for i := range t.spec.Args { // once all are counted: what cannot be had resolves at once
			if o := c.objects[t.spec.Args[i].Ref]; o != nil && o.state == lost && t.open {
				c.rebuild(o)
			}
		}
		return
	}
	if t.spec.Kind == KindCall {
		c.callReady(t)
		return
	}
	if t.gang != nil {
		c.gangReady(t)
		return
	}
	c.enqueue(t, t.attempt > 0)
}

// values gives the arguments' values; false if one has gone meanwhile.
func (c *Core) values(t *task) ([]Value, bool) {
	if len(t.spec.Args) == 0 {
		return nil, true
	}
	vs := make([]Value, len(t.spec.Args))
	var inline int64
	for i := range t.spec.Args {
		a := &t.spec.Args[i]
		if a.Ref == 0 {
			vs[i] = *a.Val
			inline += int64(len(a.Val.Data))
			continue
		}
		o := c.objects[a.Ref]
		if o == nil || o.state != ready || o.failure != nil {
			return nil, false
		}
		if inline += int64(len(o.value.Data)); inline > MaxInline && len(o.value.Data) > 0 {
			vs[i] = Value{Size: Asked}
			continue
		}
		vs[i] = *o.value
	}
	return vs, true
}

func (c *Core) start(t *task, b *bucket) {
	vs, ok := c.values(t)
	if !ok {
		c.prepare(t)
		return
	}
	t.state, t.bucket, t.class = taskRunning, b, nil
	b.enter(t)
	b.node.tasks[t.spec.ID] = t
	m := &Start{Spec: t.spec, Attempt: t.attempt, Args: vs}
	if t.spec.Kind == KindCreate {
		m.Actor = t.actor.id
	}
	m.Places = c.places(b.node, vs)
	c.aim(m, b.node)
	c.send(b.node, m)
}

// leaveNode gives back what an attempt uses.
func (c *Core) leaveNode(t *task) {
	if t.bucket == nil {
		return
	}
	b := t.bucket
	if t.blocked {
		t.blocked = false
		b.blocked -= t.spec.Opt.CPU
	}
	delete(b.node.tasks, t.spec.ID)
	b.leave(t)
	t.bucket = nil
}

// current finds the attempt that a node speaks of.
func (c *Core) current(n *node, id ID, attempt int32) *task {
	t := c.tasks[id]
	if t == nil || t.state != taskRunning || t.attempt != attempt {
		return nil
	}
	if t.bucket != nil && t.bucket.node != n || t.bucket == nil && (t.actor == nil || t.actor.node != n) {
		return nil
	}
	return t
}

func (c *Core) blocked(n *node, m *Blocked) {
	t := c.current(n, m.ID, m.Attempt)
	if t == nil || t.bucket == nil || t.blocked == m.On {
		return
	}
	t.blocked = m.On
	if m.On {
		t.bucket.blocked += t.spec.Opt.CPU
	} else {
		t.bucket.blocked -= t.spec.Opt.CPU
	}
}

func (c *Core) returned(n *node, m *Returned) {
	if t := c.current(n, m.ID, m.Attempt); t != nil && t.spec.Kind == KindTask {
		c.leaveNode(t)
		t.attempt++
		c.stat(t).add(10_000_000) // it stood behind slow ones
		c.prepare(t)
	}
}

func (c *Core) stat(t *task) *funcStat {
	st := c.stats[t.spec.Func]
	if st == nil {
		st = &funcStat{}
		c.stats[t.spec.Func] = st
	}
	return st
}

func (c *Core) done(n *node, m *Done) {
	t := c.current(n, m.ID, m.Attempt)
	if t == nil {
		for i := range m.Results {
			c.freeValue(&m.Results[i])
		}
		return
	}
	if m.Failure != nil {
		m.Failure.At = n.id
	}
	if m.Failure != nil && t.gang == nil && m.Failure.Lost != 0 && c.objects[m.Failure.Lost] != nil {
		// An argument has gone with a node that is not known to be dead yet, or was freed there.
		o := c.objects[m.Failure.Lost]
		if o.state == ready && o.failure == nil && o.value.Node != "" && o.value.Node == m.Failure.LostAt {
			c.lose(o)
		}
		c.detach(t)
		t.attempt++
		if t.spec.Kind == KindCall {
			c.requeueCall(t)
		}
		c.prepare(t)
		return
	}
	if t.spec.Kind != KindCall && m.Failure == nil {
		c.stat(t).add(m.Nanos)
	}
	if m.Failure != nil {
		c.attemptFailed(t, m.Failure)
		return
	}
	if t.spec.Kind == KindCreate {
		for i := range m.Results { // an actor is no value
			c.freeValue(&m.Results[i])
		}
		c.created(t)
		return
	}
	c.detach(t)
	c.finish(t, m.Results, nil)
}

// detach takes an attempt off its node or actor.
func (c *Core) detach(t *task) {
	if t.spec.Kind == KindCall {
		c.callOver(t)
		return
	}
	c.leaveNode(t)
}

// attemptFailed tries again, or lets the task fail.
func (c *Core) attemptFailed(t *task, f *Failure) {
	c.detach(t)
	opt := t.spec.Opt
	if (f.System || f.Retry) && t.gang == nil && (opt.Retries < 0 || t.failures < opt.Retries) && !t.job.closed && !t.stopping {
		t.failures++
		t.attempt++
		if t.spec.Kind == KindCall {
			c.requeueCall(t)
		}
		c.prepare(t)
		return
	}
	c.finish(t, nil, f)
}

// finish ends the task with its results or its failure.
func (c *Core) finish(t *task, results []Value, f *Failure) {
	if t.state == taskEnded {
		return
	}
	if t.spec.Kind == KindCall {
		c.callEnded(t)
	}
	t.state = taskEnded
	t.open = false
	t.failures = 0
	t.job.open.remove(t, isOpen)
	t.job.done++
	c.noKid(t)
	if f != nil && t.gang != nil {
		c.failGang(t.gang, f)
	}
	if f != nil && t.spec.Kind == KindCreate {
		c.actorDies(t.actor, f)
	}
	inline := true
	t.live++ // it stays while its results are settled
	for i := range t.spec.Results {
		id := t.spec.ID + ID(i)
		o := c.objects[id]
		var v *Value
		rf := f
		if f == nil && i < len(results) {
			v = &results[i]
		} else if f == nil {
			rf = &Failure{Text: fmt.Sprintf("%s gave %d results, not %d", t.spec.Func, len(results), t.spec.Results)}
		}
		switch {
		case o == nil || o.state == ready: // not wanted, or made again for another result's sake
			if v != nil {
				c.freeValue(v)
			}
		default:
			if v != nil {
				c.pinAll(v.Contains)
				if v.Node != "" {
					inline = false
				}
				if v.Node != "" && c.nodes[v.Node] == nil {
					o.state = lost
					continue
				}
			}
			c.resolve(o, v, rf)
		}
	}
	if s := c.streams[t.spec.ID]; s != nil && t.spec.Stream {
		inline = false
		c.streamOver(s, f)
	}
	c.unpinArgs(t)
	if inline || f != nil { // nothing of it can be lost
		c.letArgsGo(t)
	}
	c.loseResult(t)
	if c.tasks[t.spec.ID] == t && !t.argsGone {
		c.keep(t)
	} else if c.tasks[t.spec.ID] == t {
		c.dropTask(t)
	}
}

func (c *Core) noKid(t *task) {
	if kids := c.kids[t.spec.Parent]; kids != nil {
		if kids.remove(t, isKid); kids.n == 0 {
			delete(c.kids, t.spec.Parent)
		}
	}
}

// letArgsGo ends the task's use as lineage.
func (c *Core) letArgsGo(t *task) {
	if !t.argsGone {
		t.argsGone = true
		c.useArgs(t, -1)
	}
}

// loseResult counts one object less that the task makes.
func (c *Core) loseResult(t *task) {
	if t.live--; t.live == 0 && !t.open {
		if t.spec.Kind == KindCreate && t.actor.state != actorDead {
			return // it may have to be made again
		}
		c.letArgsGo(t)
		c.dropTask(t)
	}
}

func (c *Core) dropTask(t *task) {
	if c.tasks[t.spec.ID] != t {
		return
	}
	delete(c.tasks, t.spec.ID)
	c.unkeep(t)
	for i := range max(t.spec.Results, 1) {
		if o := c.objects[t.spec.ID+ID(i)]; o != nil && o.producer == t {
			o.producer = nil
		}
	}
}

// reopen runs an ended task again.
func (c *Core) reopen(t *task) {
	c.unkeep(t)
	t.open, t.state = true, taskWaiting
	t.attempt++
	t.job.open.add(t, isOpen)
	t.job.done--
	c.pinArgs(t)
	if t.spec.Kind == KindCall {
		t.actor.pending++
		t.actor.lanes = append(t.actor.lanes, &lane{alone: true, calls: []*task{t}})
	}
	c.prepare(t)
}

// cancel ends a task, a call or a stream's source, and with recursive what it submitted.
func (c *Core) cancel(id ID, recursive bool, reason string) {
	t := c.tasks[id]
	if o := c.objects[id]; t == nil && o != nil && o.producer != nil { // a further result
		t = o.producer
		id = t.spec.ID
	}
	if t != nil && t.open {
		c.cancelTask(t, reason, FailCanceled)
	} else if o := c.objects[id]; o != nil && o.promise != nil { // of a call that went straight: who made it knows where it is
		c.send(o.promise, &Cancel{ID: id})
	}
	if !recursive {
		return
	}
	for _, n := range c.order {
		if _, ok := c.told[n.id]; ok {
			c.send(n, &StopCalls{Parent: id})
		}
	}
	if kids := c.kids[id]; kids != nil {
		for _, t := range kids.all(isKid) {
			c.cancel(t.spec.ID, true, reason)
		}
	}
}

func (c *Core) cancelTask(t *task, reason, kind string) {
	if t.state == taskRunning {
		n := (*node)(nil)
		if t.bucket != nil {
			n = t.bucket.node
		} else if t.actor != nil {
			n = t.actor.node
		}
		c.send(n, &Stop{ID: t.spec.ID, Attempt: t.attempt, Reason: reason})
		t.stopping = true
		return
	}
	c.finish(t, nil, &Failure{Text: reason, Kinds: []string{kind}})
}
