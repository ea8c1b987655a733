package core

import "slices"

type actorState uint8

const (
	actorPending actorState = iota // not made yet, or being made again
	actorAlive
	actorDead
)

// actor is the order of an actor's calls, and its life.
type actor struct {
	id       ID
	job      *job
	task     *task // that makes it
	node     *node // when alive
	state    actorState
	restarts int // so far
	name     string
	handles  int
	closing  bool // no handle is left: it ends after the calls it has
	lanes    []*lane
	inflight chain[task] // calls that have begun, in order
	pending  int         // calls that are not done
	seq      uint64
	why      *Failure // dead
	told     []*node  // that have a handle and know where it lives
}

// lane is one caller's calls that have not begun, in order.
type lane struct {
	job    *job
	caller ID
	alone  bool // one call that is made again, for its lost result: those of its caller may wait for just that
	calls  []*task
}

func actorName(j *job, opt *Options) string {
	if opt.Detached {
		return "\x00" + opt.Name
	}
	return string(j.id) + "\x00" + opt.Name
}

// newActor takes a submitted creation. It is false when there is nothing to make.
func (c *Core) newActor(n *node, t *task) bool {
	opt := t.spec.Opt
	a := &actor{id: t.spec.ID, job: t.job, task: t, handles: 1}
	if opt.Name != "" {
		a.name = actorName(t.job, opt)
		if old := c.names[a.name]; old != nil {
			if opt.GetOrMake {
				c.alias(old, t.spec.ID)
				t.actor = old
				t.spec = &Spec{ID: t.spec.ID, Job: t.spec.Job, Kind: KindTask, Results: 1, Func: t.spec.Func, Opt: opt, Parent: t.spec.Parent, Args: t.spec.Args}
				c.finish(t, []Value{{}}, nil)
				return false
			}
			t.actor = &actor{state: actorDead}
			c.finish(t, nil, &Failure{Text: "an actor named " + opt.Name + " exists", Kinds: []string{FailNameTaken}})
			return false
		}
		c.names[a.name] = a
	}
	t.actor = a
	c.actors[a.id] = a
	return true
}

func (c *Core) alias(a *actor, id ID) {
	a.handles++
	a.closing = false
	c.actors[id] = a
}

// lookup gives a handle of an actor by its name.
func (c *Core) lookup(n *node, j *job, s *Spec) {
	o := c.newObject(j, s.ID, n)
	o.wanted = []*node{n}
	a := c.names[string(j.id)+"\x00"+s.Opt.Name]
	if a == nil {
		a = c.names["\x00"+s.Opt.Name]
	}
	if a == nil {
		c.resolve(o, nil, &Failure{Text: "no actor is named " + s.Opt.Name, Kinds: []string{FailNotFound}})
		return
	}
	c.alias(a, s.ID)
	c.resolve(o, &Value{}, nil)
}

// created takes note that the actor lives.
func (c *Core) created(t *task) {
	a := t.actor
	a.node, a.state = t.bucket.node, actorAlive
	a.node.actors[a.id] = a
	c.settleCreation(t)
	if o := c.objects[a.id]; o != nil && o.state == pending {
		c.resolve(o, &Value{}, nil)
	}
	for _, l := range slices.Clone(a.lanes) {
		c.pump(a, l)
	}
	c.endIdle(a)
}

// settleCreation ends the task that made an actor; of what it used it keeps what the actor was said to need.
func (c *Core) settleCreation(t *task) {
	if !t.spec.Opt.Demand.reserved() {
		c.leaveNode(t)
	} else {
		delete(t.bucket.node.tasks, t.spec.ID)
	}
	t.state, t.open, t.failures = taskEnded, false, 0
	t.job.open.remove(t, isOpen)
	t.job.done++
	c.noKid(t)
	if t.spec.Opt.Restarts == 0 {
		c.unpinArgs(t)
		c.letArgsGo(t)
	}
}

// reserved says whether an actor keeps what it was placed by. The default, one CPU, only spreads actors over nodes.
func (d *Demand) reserved() bool {
	return d.CPU != 1000 || d.Memory > 0 || d.Custom != "" || d.Group != 0
}

// admitCall puts a call in line.
func (c *Core) admitCall(t *task) bool {
	a := c.actors[t.spec.Actor]
	if a == nil {
		t.actor = &actor{state: actorDead}
		c.finish(t, nil, &Failure{Text: "the actor's handle is not held any more", Kinds: []string{FailNotFound}})
		return false
	}
	t.actor = a
	a.pending++
	switch limit := a.task.spec.Opt.MaxPending; {
	case a.state == actorDead:
		c.finish(t, nil, a.why)
		return false
	case limit > 0 && a.pending > limit:
		c.finish(t, nil, &Failure{Text: "the actor has too many pending calls", Kinds: []string{FailPending}})
		return false
	}
	l := a.lane(t)
	l.calls = append(l.calls, t)
	return true
}

// tellWhere tells a node that calls the actor where it lives. One that has a name may be called through several handles, by one caller in
// turn, and what bounds its pending calls must see them all: these are called by the head.
func (c *Core) tellWhere(n *node, a *actor) {
	if a.told == nil || !slices.Contains(a.told, n) {
		if w, ok := c.where(n, a); ok {
			c.send(n, &w)
		}
	}
}

func (c *Core) where(n *node, a *actor) (w Where, ok bool) {
	if a.state != actorAlive || a.name != "" || a.task.spec.Opt.MaxPending > 0 {
		return w, false
	}
	if !slices.Contains(a.told, n) {
		a.told = append(a.told, n)
	}
	c.told[n.id] = struct{}{}
	return Where{Actor: a.id, Node: a.node.id, Incarnation: a.task.attempt}, true
}

// maxPlaces bounds the places in one message.
const maxPlaces = 1000

// places tells where the actors live of which values have handles.
func (c *Core) places(n *node, vs []Value) (list []Where) {
	for i := range vs {
		for _, id := range vs[i].Contains {
			if a := c.actors[id]; a != nil && len(list) < maxPlaces {
				if w, ok := c.where(n, a); ok {
					list = append(list, w)
				}
			}
		}
	}
	return list
}

func (a *actor) lane(t *task) *lane {
	if !a.task.spec.Opt.AnyOrder {
		for _, l := range a.lanes {
			if !l.alone && l.job == t.job && l.caller == t.spec.Parent {
				return l
			}
		}
	}
	l := &lane{job: t.job, caller: t.spec.Parent, alone: a.task.spec.Opt.AnyOrder}
	a.lanes = append(a.lanes, l)
	return l
}

// requeueCall puts a call that is to be made again before those that have not begun. Several are put back last first.
func (c *Core) requeueCall(t *task) {
	a := t.actor
	l := a.lane(t)
	l.calls = append([]*task{t}, l.calls...)
}

func (a *actor) dropLane(l *lane) {
	a.lanes = slices.DeleteFunc(a.lanes, func(o *lane) bool { return o == l })
}

// callReady has a call begin if it is its turn.
func (c *Core) callReady(t *task) {
	t.state = taskQueued
	for _, l := range t.actor.lanes {
		if len(l.calls) > 0 && l.calls[0] == t {
			c.pump(t.actor, l)
			return
		}
	}
}

func (c *Core) pump(a *actor, l *lane) {
	for a.state == actorAlive && len(l.calls) > 0 && l.calls[0].state == taskQueued {
		t := l.calls[0]
		vs, ok := c.values(t)
		if !ok {
			c.prepare(t)
			continue
		}
		l.calls = l.calls[1:]
		a.seq++
		t.state = taskRunning
		t.deps = 0
		a.inflight.add(t, inFlight)
		m := &Start{Spec: t.spec, Attempt: t.attempt, Args: vs, Actor: a.id}
		m.Places = c.places(a.node, vs)
		c.aim(m, a.node)
		c.send(a.node, m)
	}
	if len(l.calls) == 0 {
		a.dropLane(l)
	}
}

// callOver ends an attempt of a call.
func (c *Core) callOver(t *task) { t.actor.inflight.remove(t, inFlight) }

// callEnded ends a call.
func (c *Core) callEnded(t *task) {
	a := t.actor
	if a.task == nil {
		return // it never had an actor
	}
	a.inflight.remove(t, inFlight)
	a.pending--
	for _, l := range a.lanes {
		if i := slices.Index(l.calls, t); i >= 0 {
			l.calls = slices.Delete(l.calls, i, i+1)
			t.state = taskEnded
			if i == 0 {
				c.pump(a, l)
			}
			break
		}
	}
	c.endIdle(a)
}

// dropHandle takes one of the actor's handles away; without any it ends after the calls it has.
func (c *Core) dropHandle(a *actor, id ID) {
	delete(c.actors, id)
	a.handles--
	if a.handles == 0 && !a.task.spec.Opt.Detached {
		a.closing = true
		c.endIdle(a)
	}
}

func (c *Core) endIdle(a *actor) {
	if a.closing && a.pending == 0 && a.state == actorAlive {
		c.actorDies(a, &Failure{Text: "actor is dead: no handle of it is left", Kinds: []string{FailActorDead}})
	}
}

// actorLost takes note that the actor's process is gone, or was told to go.
func (c *Core) actorLost(a *actor, reason, kind string) {
	f := &Failure{Text: "actor is dead: " + reason, Kinds: []string{FailActorDead, kind}, System: true}
	if a.node != nil {
		delete(a.node.actors, a.id)
		a.node = nil
	}
	a.told = nil
	c.leaveNode(a.task)
	limit := a.task.spec.Opt.Restarts
	again := a.state == actorAlive && (limit < 0 || a.restarts < limit) && !a.job.closed && !a.closing
	if a.state == actorAlive {
		a.state = actorPending
	}
	calls := a.inflight.all(inFlight)
	slices.Reverse(calls)
	for _, t := range calls {
		a.inflight.remove(t, inFlight)
		opt := t.spec.Opt
		if again && (opt.Retries < 0 || t.failures < opt.Retries) && !t.stopping {
			t.failures++
			t.attempt++
			c.requeueCall(t)
			t.state = taskWaiting
			c.prepare(t)
			continue
		}
		c.finish(t, nil, f)
	}
	if !again {
		c.actorDies(a, f)
		return
	}
	a.restarts++
	t := a.task
	t.open, t.state = true, taskWaiting
	t.attempt++
	t.job.open.add(t, isOpen)
	t.job.done--
	c.prepare(t)
}

// actorDies ends the actor for good: its calls fail, its name is free.
func (c *Core) actorDies(a *actor, f *Failure) {
	if a == nil || a.state == actorDead {
		return
	}
	if !slices.Contains(f.Kinds, FailActorDead) {
		f = &Failure{Text: "actor is dead: " + f.Text, Kinds: append(slices.Clone(f.Kinds), FailActorDead), Detail: f.Detail, Stack: f.Stack}
	}
	if a.node != nil {
		delete(a.node.actors, a.id)
		c.send(a.node, &StopActor{Actor: a.id, Reason: f.Text})
	} else if b := a.task.bucket; b != nil { // it is being made
		c.send(b.node, &StopActor{Actor: a.id, Reason: f.Text})
	}
	a.state, a.why = actorDead, f
	a.node = nil
	c.leaveNode(a.task)
	if c.names[a.name] == a {
		delete(c.names, a.name)
	}
	for _, t := range a.inflight.all(inFlight) {
		c.finish(t, nil, f)
	}
	for len(a.lanes) > 0 {
		l := a.lanes[0]
		if len(l.calls) == 0 {
			a.dropLane(l)
			continue
		}
		c.finish(l.calls[0], nil, f)
	}
	t := a.task
	if t.open {
		c.finish(t, nil, f)
		return
	}
	c.unpinArgs(t)
	c.letArgsGo(t)
	if t.live == 0 {
		c.dropTask(t)
	}
}

// forgetActor ends an actor with its job.
func (c *Core) forgetActor(a *actor) {
	if a.node != nil {
		delete(a.node.actors, a.id)
	}
	c.leaveNode(a.task)
	if c.names[a.name] == a {
		delete(c.names, a.name)
	}
	a.state, a.why = actorDead, &Failure{Text: "actor is dead: its job has ended", Kinds: []string{FailActorDead, FailJobEnded}}
}

func (c *Core) kill(m *Kill) {
	a := c.actors[m.Actor]
	if a == nil || a.state == actorDead {
		return
	}
	f := &Failure{Text: "actor is dead: it was killed", Kinds: []string{FailActorDead}}
	if !m.Restart || a.state != actorAlive {
		c.actorDies(a, f)
		return
	}
	c.send(a.node, &StopActor{Actor: a.id, Reason: "it was killed"})
	c.actorLost(a, "it was killed", FailActorDead)
}
