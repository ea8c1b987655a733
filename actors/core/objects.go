package core

import (
	"cmp"
	"maps"
	"slices"

	"manta/objectstore/refcount"
)

type objectState uint8

const (
	pending objectState = iota // will be ready
	ready                      // value or failure is set
	lost                       // had a value
)

type object struct {
	id       ID
	job      *job
	state    objectState
	refs     refcount.Refs[*node] // pins: open tasks' arguments, values that refer to it
	users    int32                // tasks, open or kept, that have it as an argument
	value    *Value
	failure  *Failure
	producer *task // nil: nothing makes it again
	why      string
	promise  *node // pending: this node will tell what it is
	waiting  []*task
	wanted   []*node
	ofJob    chained[object]
}

func sortedKeys[V any](m map[ID]V) []ID { return slices.Sorted(maps.Keys(m)) }

func (c *Core) newObject(j *job, id ID, holder *node) *object {
	o := &object{id: id, job: j}
	o.refs.Hold(holder)
	c.objects[id] = o
	j.objects.add(o, ofJob)
	return o
}

// put makes an object of a value.
func (c *Core) put(n *node, m *Put) {
	j := c.jobs[m.Job]
	why := "it was made by Put, which nothing can do again"
	if m.For != "" {
		n, why = c.nodes[m.For], "it was made by a call of an actor, which is not made again"
	}
	o := c.objects[m.ID]
	if j == nil || j.closed || n == nil || o != nil && o.promise == nil {
		if !m.Pending {
			c.freeValue(&m.Value)
		}
		return
	}
	if o == nil {
		o = c.newObject(j, m.ID, n)
		o.why = why
	}
	if m.Pending {
		o.promise = n
		return
	}
	o.promise = nil
	if m.For != "" {
		o.wanted = append(o.wanted, n)
	}
	if m.Failure == nil {
		c.pinAll(m.Value.Contains)
	}
	c.resolve(o, &m.Value, m.Failure)
}

// result makes the object of a task's or call's result; or finds it, if it was promised.
func (c *Core) result(j *job, id ID, n *node) *object {
	o := c.objects[id]
	if o == nil || o.promise != n {
		o = c.newObject(j, id, n)
	}
	o.promise = nil
	if !slices.Contains(o.wanted, n) {
		o.wanted = append(o.wanted, n)
	}
	return o
}

func (c *Core) hold(n *node, id ID) {
	if o := c.objects[id]; o != nil {
		o.refs.Hold(n)
	}
}

func (c *Core) unhold(n *node, id ID) {
	if o := c.objects[id]; o != nil {
		o.refs.Release(n)
		if a := c.actors[id]; a != nil {
			a.told = slices.DeleteFunc(a.told, func(t *node) bool { return t == n })
		}
		c.collect(o)
	}
}

func (c *Core) want(n *node, id ID) {
	o := c.objects[id]
	switch {
	case o == nil:
		c.send(n, &Ready{ID: id, Failure: &Failure{Text: "nobody holds the value any more", Kinds: []string{FailObjectLost}}})
	case o.state == ready:
		c.tell(n, o)
	default:
		if !slices.Contains(o.wanted, n) {
			o.wanted = append(o.wanted, n)
		}
		if o.state == lost {
			c.rebuild(o)
		}
	}
}

func (c *Core) tell(n *node, o *object) {
	r := &Ready{ID: o.id, Failure: o.failure}
	if o.value != nil {
		r.Value = *o.value
	}
	c.send(n, r)
}

func (c *Core) reportLost(n *node, m *Lost) {
	o := c.objects[m.ID]
	if o != nil && o.state == ready && o.failure == nil && o.value.Node == m.Node && m.Node != "" {
		c.lose(o)
	}
	c.want(n, m.ID)
}

// lose takes note that the object's value is gone.
func (c *Core) lose(o *object) {
	o.state = lost
	c.freeValue(o.value) // if the node lives after all
	c.unpinAll(o.value.Contains)
	o.value = nil
	if len(o.waiting) > 0 || len(o.wanted) > 0 {
		c.rebuild(o)
	}
}

// resolve gives the object its value or failure and wakes who waits.
func (c *Core) resolve(o *object, v *Value, f *Failure) {
	o.state, o.value, o.failure = ready, v, f
	if f != nil {
		o.value = nil
	}
	for _, n := range o.wanted {
		c.tell(n, o)
	}
	o.wanted = nil
	waiting := o.waiting
	o.waiting = nil
	for _, t := range waiting {
		if t.deps--; t.deps == 0 && t.state == taskWaiting {
			c.prepare(t)
		}
	}
	c.collect(o)
}

func (c *Core) unpin(o *object) {
	o.refs.Unpin()
	c.collect(o)
}

func (c *Core) pinAll(ids []ID) {
	for _, id := range ids {
		if o := c.objects[id]; o != nil {
			o.refs.Pin()
		}
	}
}

func (c *Core) unpinAll(ids []ID) {
	for _, id := range ids {
		if o := c.objects[id]; o != nil {
			c.unpin(o)
		}
	}
}

// collect frees the object's value when nobody keeps it, and the object when nothing needs it.
func (c *Core) collect(o *object) {
	if o.refs.Kept() || c.objects[o.id] != o {
		return
	}
	if a := c.actors[o.id]; a != nil {
		c.dropHandle(a, o.id)
	}
	if s := c.streams[o.id]; s != nil {
		c.closeStream(s)
	}
	c.endGroup(o.id)
	if o.state == pending && (o.promise != nil || o.producer != nil && o.producer.open) {
		return // it comes, and then goes
	}
	if v := o.value; v != nil && (o.users == 0 || v.Node != "") {
		o.value, o.state = nil, lost
		c.freeValue(v)
		c.unpinAll(v.Contains)
	}
	if o.users > 0 {
		return
	}
	delete(c.objects, o.id)
	o.job.objects.remove(o, ofJob)
	if t := o.producer; t != nil {
		o.producer = nil
		c.loseResult(t)
	}
}

func (c *Core) freeValue(v *Value) {
	if v.Node != "" {
		c.send(c.nodes[v.Node], &Free{Key: v.Key})
	}
}

// rebuild has a lost value made again, or fails the object with the reason why it cannot be.
func (c *Core) rebuild(o *object) {
	t := o.producer
	switch {
	case t == nil:
		c.giveUp(o, cmp.Or(o.why, "what made it is not known any more"))
	case t.open: // on its way
		o.state = pending
	case t.gang != nil:
		c.giveUp(o, "a gang's task made it, and those are not run again one by one")
	case t.spec.Kind == KindCall && (t.spec.Opt.Retries == 0 || t.actor.state == actorDead):
		c.giveUp(o, "an actor made it, and its calls are not tried again")
	case t.spec.Opt.Retries >= 0 && t.rebuilds >= t.spec.Opt.Retries:
		c.giveUp(o, "the task that makes it has no retries left")
	default:
		t.rebuilds++
		o.state = pending
		c.reopen(t)
	}
}

func (c *Core) giveUp(o *object, why string) {
	o.state = pending
	c.resolve(o, nil, &Failure{Text: "value is lost: " + why, Kinds: []string{FailObjectLost}})
}
