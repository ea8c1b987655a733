package core

import (
	"cmp"
	"fmt"
	"slices"
)

// TaskInfo is where a task, a call or the making of an actor stands.
type TaskInfo struct {
	ID      ID
	Job     JobID
	Name    string
	Kind    Kind
	State   string // "WAITING" for arguments, "QUEUED" for a place, "RUNNING", "BLOCKED" while it waits for a value
	Node    NodeID // when it is on one
	Attempt int32
	Why     string // what it waits for
}

// Tasks lists up to limit tasks that have not ended, by id.
func (c *Core) Tasks(limit int) (list []TaskInfo) {
	for _, j := range c.jobs {
		for _, t := range j.open.all(isOpen) {
			list = append(list, c.info(t))
		}
	}
	slices.SortFunc(list, func(a, b TaskInfo) int { return cmp.Compare(a.ID, b.ID) })
	return list[:min(len(list), limit)]
}

func (c *Core) info(t *task) TaskInfo {
	i := TaskInfo{
		ID: t.spec.ID, Job: t.job.id, Name: cmp.Or(t.spec.Opt.Name, t.spec.Func), Kind: t.spec.Kind, Attempt: t.attempt,
	}
	switch {
	case t.state == taskRunning && t.blocked:
		i.State, i.Why = "BLOCKED", "a value that it gets"
	case t.state == taskRunning:
		i.State = "RUNNING"
	case t.state == taskWaiting:
		i.State, i.Why = "WAITING", c.missingArg(t)
	case t.spec.Kind == KindCall:
		i.State, i.Why = "QUEUED", t.actor.blocker(t)
	default:
		i.State, i.Why = "QUEUED", c.obstacle(t)
	}
	if t.bucket != nil {
		i.Node = t.bucket.node.id
	} else if t.state == taskRunning && t.actor != nil && t.actor.node != nil {
		i.Node = t.actor.node.id
	}
	return i
}

// ActorInfo is where an actor stands.
type ActorInfo struct {
	ID       ID
	Job      JobID
	Name     string // by which it is found; may be ""
	Class    string
	State    string // "PENDING" before it was made, "ALIVE", "RESTARTING"
	Node     NodeID // when alive
	Restarts int
	Calls    int // that are not done
	Why      string
}

// Actors lists up to limit actors that are not dead, by id.
func (c *Core) Actors(limit int) (list []ActorInfo) {
	for _, id := range sortedKeys(c.actors) {
		a := c.actors[id]
		if a.id != id || a.state == actorDead || len(list) >= limit {
			continue // id is a further handle
		}
		i := ActorInfo{
			ID: id, Job: a.job.id, Name: a.task.spec.Opt.Name, Class: a.task.spec.Func, State: "ALIVE", Restarts: a.restarts, Calls: a.pending,
		}
		switch {
		case a.node != nil:
			i.Node = a.node.id
		case a.state == actorPending:
			if i.State = "PENDING"; a.restarts > 0 {
				i.State = "RESTARTING"
			}
			t := c.info(a.task)
			i.Node = t.Node
			if i.Why = t.Why; t.State == "RUNNING" {
				i.Why = "its constructor, which runs"
			}
		}
		list = append(list, i)
	}
	return list
}

// ActorNodes lists the nodes on which actors live that may be called straight.
func (c *Core) ActorNodes() (ids []NodeID) {
	for _, n := range c.order {
		if len(n.actors) > 0 && len(c.told) > 0 {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// OnNode says whether a task has a place.
func (c *Core) OnNode(id ID) bool {
	t := c.tasks[id]
	return t != nil && t.state == taskRunning
}

func (c *Core) missingArg(t *task) string {
	for k := range t.spec.Args {
		if o := c.objects[t.spec.Args[k].Ref]; o != nil && o.state != ready {
			if o.producer != nil {
				return fmt.Sprintf("argument %d, which %s %x makes", k, o.producer.spec.Func, o.producer.spec.ID)
			}
			return fmt.Sprintf("argument %d", k)
		}
	}
	return ""
}

// blocker says why a call has not begun.
func (a *actor) blocker(t *task) string {
	if a.state == actorPending {
		return "its actor, which is being made"
	}
	for _, l := range a.lanes {
		if i := slices.Index(l.calls, t); i > 0 {
			return fmt.Sprintf("%d calls of the same caller before it, the first of which waits for an argument", i)
		}
	}
	return ""
}

// obstacle says why a queued task has no place.
func (c *Core) obstacle(t *task) string {
	d := &t.spec.Opt.Demand
	if t.gang != nil {
		return t.gang.waits(c)
	}
	if d.Group != 0 {
		if g := c.groups[d.Group]; g != nil && !g.placed {
			return "its placement group, which has no place yet"
		}
		return "room in its placement group for " + d.String()
	}
	if d.Node != "" && !d.Soft {
		return "room for " + d.String()
	}
	could, labels := false, false
	for _, n := range c.order {
		if n.main.cpu > 0 && matches(n.labels, d.Labels) {
			labels = true
			could = could || n.main.could(d)
		}
	}
	switch {
	case !labels && d.Labels != "":
		return "a node with " + d.Labels + "; there is none"
	case !could:
		return "a node that has " + d.String() + "; there is none"
	}
	return "room for " + d.String()
}
