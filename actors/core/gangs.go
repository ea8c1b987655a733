package core

import (
	"fmt"
	"slices"
)

// gang is tasks that start together, because each waits for what others make: all of them have a place, or none begins.
// They begin whether or not their nodes have a free CPU. On its node a task gets a CPU in its turn, and gives it back while it waits.
type gang struct {
	id      ID
	job     *job
	size    int     // tasks that belong to it
	tasks   []*task // those that were submitted
	ready   int     // those of them whose arguments are there
	started bool
	failed  *Failure // it will not start
}

// joinGang counts a task that was just submitted. It is false when its gang has failed already.
func (c *Core) joinGang(t *task) bool {
	opt := t.spec.Opt
	g := c.gangs[opt.Gang]
	if g == nil {
		g = &gang{id: opt.Gang, job: t.job, size: int(opt.GangSize)}
		c.gangs[g.id] = g
	}
	t.gang = g
	g.tasks = append(g.tasks, t)
	if len(g.tasks) >= g.size { // nobody asks for it any more
		delete(c.gangs, g.id)
	}
	if g.failed != nil {
		c.finish(t, nil, g.failed)
		return false
	}
	return true
}

// gangReady takes note that a task's arguments are there. With the last of them the gang stands in line.
func (c *Core) gangReady(t *task) {
	g := t.gang
	t.state = taskQueued
	if g.ready++; g.ready == g.size {
		c.line = append(c.line, g)
	}
}

// admitGangs starts those gangs, first come, first served, for which there is room.
func (c *Core) admitGangs() {
	for len(c.line) > 0 {
		g := c.line[0]
		started, f := c.admitGang(g)
		if !started && f == nil {
			if len(c.line) > 0 && c.line[0] == g {
				return
			}
			continue // an argument has gone: it stands in line again when that is back
		}
		c.line = slices.DeleteFunc(c.line, func(o *gang) bool { return o == g })
		if f != nil {
			c.failGang(g, f)
		}
	}
}

// admitGang starts all of a gang, or gives back what it took. Without a failure there is no room now; with one there never will be.
func (c *Core) admitGang(g *gang) (bool, *Failure) {
	for _, t := range g.tasks {
		if !c.argsReady(t) { // lost while it stood in line
			g.ready--
			c.line = slices.DeleteFunc(c.line, func(o *gang) bool { return o == g })
			c.prepare(t)
			return false, g.failed
		}
	}
	for i, t := range g.tasks {
		n, f := c.gangNode(t)
		if n != nil {
			t.bucket = &n.main
			t.bucket.enter(t)
			continue
		}
		for _, t := range g.tasks[:i] {
			t.bucket.leave(t)
			t.bucket = nil
		}
		return false, f
	}
	g.started = true
	for _, t := range g.tasks {
		b := t.bucket
		b.leave(t)
		c.start(t, b)
		if t.job.gangs == nil {
			t.job.gangs = make(map[NodeID]struct{})
		}
		t.job.gangs[b.node.id] = struct{}{}
	}
	return true, nil
}

func (c *Core) argsReady(t *task) bool {
	for i := range t.spec.Args {
		if ref := t.spec.Args[i].Ref; ref != 0 {
			if o := c.objects[ref]; o == nil || o.state != ready || o.failure != nil {
				return false
			}
		}
	}
	return true
}

// gangNode is where one task of a gang goes: where it must, or else to the node with the least to do.
func (c *Core) gangNode(t *task) (*node, *Failure) {
	d := &t.spec.Opt.Demand
	if d.Group != 0 {
		return nil, &Failure{Text: "a gang's task cannot be in a placement group", Kinds: []string{FailUnschedulable}}
	}
	if n := c.nodes[d.Node]; d.Node != "" && (n != nil || !d.Soft) {
		switch {
		case n == nil:
			return nil, gone(d.Node)
		case c.allows(n, d) && c.holds(n, d):
			return n, nil
		case n.main.cpu == 0:
			return nil, &Failure{Text: "node " + string(n.id) + " takes no tasks", Kinds: []string{FailUnschedulable}}
		case !d.Soft:
			return nil, c.never(t.gang, d, n)
		}
	}
	var best *node
	var why *Failure
	busy := false
	for _, n := range c.order {
		if !c.allows(n, d) {
			continue
		}
		if c.holds(n, d) {
			if best == nil || less(&n.main, &best.main) {
				best = n
			}
		} else if f := c.never(t.gang, d, n); f != nil {
			why = f
		} else {
			busy = true
		}
	}
	if best != nil || busy {
		return best, nil
	}
	return nil, why
}

// holds says whether a node has room for one task more of a gang: its memory and custom resources, and threads.
func (c *Core) holds(n *node, d *Demand) bool {
	rest := *d
	rest.CPU = 0
	return n.main.ganged < c.cfg.MaxGang && n.main.fits(&rest, 0)
}

// never says why a node will not have room for a gang's task, however long it waits; nil if it is only busy.
func (c *Core) never(g *gang, d *Demand, n *node) *Failure {
	bound := 0
	for _, t := range g.tasks {
		if o := t.spec.Opt; o.Node == n.id && !o.Soft {
			bound++
		}
	}
	if bound > c.cfg.MaxGang || g.size > c.cfg.MaxGang*len(c.order) {
		return &Failure{
			Text:  fmt.Sprintf("a gang of %d, %d of them bound to node %s: of tasks that start together a node takes %d", g.size, bound, n.id, c.cfg.MaxGang),
			Kinds: []string{FailUnschedulable}, At: n.id,
		}
	}
	rest := *d
	rest.CPU = 0
	if !n.main.could(&rest) {
		return &Failure{Text: "node " + string(n.id) + " has not " + d.String(), Kinds: []string{FailUnschedulable}, At: n.id}
	}
	return nil
}

// failGang ends a gang that has not started.
func (c *Core) failGang(g *gang, f *Failure) {
	if g.started || g.failed != nil {
		return
	}
	g.failed = f
	c.line = slices.DeleteFunc(c.line, func(o *gang) bool { return o == g })
	for _, t := range g.tasks {
		if t.open {
			c.finish(t, nil, f)
		}
	}
}

// forgetGangs drops what is left of a job's gangs.
func (c *Core) forgetGangs(j *job) {
	c.line = slices.DeleteFunc(c.line, func(g *gang) bool { return g.job == j })
	for _, id := range sortedKeys(c.gangs) {
		if c.gangs[id].job == j {
			delete(c.gangs, id)
		}
	}
}

// waits says what a gang that has not started waits for.
func (g *gang) waits(c *Core) string {
	switch {
	case len(g.tasks) < g.size:
		return fmt.Sprintf("the rest of its gang: %d of %d tasks were submitted", len(g.tasks), g.size)
	case g.ready < g.size:
		return fmt.Sprintf("its gang: %d of %d tasks have their arguments", g.ready, g.size)
	}
	if i := slices.Index(c.line, g); i > 0 {
		return fmt.Sprintf("admission: %d gangs are before its own", i)
	}
	for _, t := range g.tasks {
		if n := c.nodes[t.spec.Opt.Node]; n != nil && n.suspended {
			return fmt.Sprintf("admission: its gang of %d needs node %s, which is silent", g.size, n.id)
		}
	}
	return fmt.Sprintf("admission: room for all %d tasks of its gang at once", g.size)
}

// Uses lists the jobs of which a gang's task is, or was, on the node.
func (c *Core) Uses(id NodeID) (jobs []JobID) {
	for _, j := range c.queue {
		if _, ok := j.gangs[id]; ok {
			jobs = append(jobs, j.id)
		}
	}
	return jobs
}
