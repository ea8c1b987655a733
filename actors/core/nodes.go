package core

import (
	"maps"
	"slices"
)

// NodeSpec describes a node that joins.
type NodeSpec struct {
	ID     NodeID
	CPU    int64 // milli
	Memory int64
	Custom string
	Labels map[string]string
}

type node struct {
	id        NodeID
	number    uint64
	labels    map[string]string
	dead      bool
	suspended bool // silent: gets nothing new
	main      bucket
	tasks     map[ID]*task // on it
	actors    map[ID]*actor
}

// bucket is resources on a node: the node's own, or what a group reserved there.
type bucket struct {
	node             *node
	cpu, mem         int64
	usedCPU, usedMem int64
	custom, usedCus  map[string]int64
	blocked          int64 // CPU of tasks that wait
	ganged           int   // tasks of gangs, which take a CPU in turn
}

// NodeUp adds a node.
func (c *Core) NodeUp(s NodeSpec) {
	if c.nodes[s.ID] != nil {
		return
	}
	c.numbers++
	n := &node{id: s.ID, number: c.numbers, labels: s.Labels, tasks: make(map[ID]*task), actors: make(map[ID]*actor)}
	n.main = bucket{node: n, cpu: s.CPU, mem: s.Memory, custom: customOf(s.Custom)}
	c.nodes[s.ID] = n
	c.order = append(c.order, n)
	c.send(n, &Welcome{Number: n.number})
	c.schedule()
}

// Suspend keeps new work from a node while it is silent.
func (c *Core) Suspend(id NodeID, suspended bool) {
	if n := c.nodes[id]; n != nil && n.suspended != suspended {
		n.suspended = suspended
		c.schedule()
	}
}

// NodeDown takes a node away with all that is on it.
func (c *Core) NodeDown(id NodeID, reason string) {
	n := c.nodes[id]
	if n == nil || n.dead {
		return
	}
	n.dead = true
	delete(c.nodes, id)
	delete(c.told, id)
	c.order = slices.DeleteFunc(c.order, func(o *node) bool { return o == n })
	for _, a := range c.actors {
		a.told = slices.DeleteFunc(a.told, func(o *node) bool { return o == n })
	}
	text := "node " + string(id) + " is dead"
	if reason != "" {
		text += ": " + reason
	}
	c.loseBundles(n)
	// Values first: what is tried again must not be sent to where they were.
	for _, oid := range sortedKeys(c.objects) {
		o := c.objects[oid]
		if o == nil {
			continue
		}
		if o.state == ready && o.value != nil && o.value.Node == id {
			c.lose(o)
		}
		if o.promise == n {
			o.promise = nil
			c.giveUp(o, "the node that made the call is dead")
		}
		o.wanted = slices.DeleteFunc(o.wanted, func(w *node) bool { return w == n })
	}
	for _, sid := range sortedKeys(c.streams) {
		if s := c.streams[sid]; s != nil {
			c.loseItems(s, n)
		}
	}
	for _, aid := range sortedKeys(n.actors) {
		if a := n.actors[aid]; a != nil {
			c.actorLost(a, text, FailNodeDead)
		}
	}
	for _, tid := range sortedKeys(n.tasks) {
		if t := n.tasks[tid]; t != nil {
			c.attemptFailed(t, &Failure{Text: text, Kinds: []string{FailNodeDead}, System: true, At: id})
		}
	}
	for _, oid := range sortedKeys(c.objects) {
		if o := c.objects[oid]; o != nil && o.refs.HeldBy(n) {
			c.unhold(n, oid)
		}
	}
	c.schedule()
}

func (b *bucket) fits(d *Demand, ahead int64) bool {
	if b.usedCPU+d.CPU > b.cpu+b.blocked+ahead*d.CPU && d.CPU > 0 {
		return false
	}
	if d.Memory > 0 && b.usedMem+d.Memory > b.mem {
		return false
	}
	if d.Custom != "" {
		for k, v := range customOf(d.Custom) {
			if b.usedCus[k]+v > b.custom[k] {
				return false
			}
		}
	}
	return true
}

// could says whether the demand fits when nothing else is there.
func (b *bucket) could(d *Demand) bool {
	empty := bucket{cpu: b.cpu, mem: b.mem, custom: b.custom}
	return empty.fits(d, 0)
}

// enter counts a task that is on the bucket's node, leave one that is not any more.
func (b *bucket) enter(t *task) { b.count(t, 1) }
func (b *bucket) leave(t *task) { b.count(t, -1) }

func (b *bucket) count(t *task, sign int64) {
	d := t.spec.Opt.Demand
	if t.gang != nil {
		b.ganged += int(sign)
		d.CPU = 0
	}
	b.take(&d, sign)
	t.job.used += sign * d.CPU
}

// load is how much CPU is in use. Of a gang's tasks most wait: however many there are, they use no more than there is.
func (b *bucket) load() int64 {
	return b.usedCPU - b.blocked + min(int64(b.ganged)*1000, b.cpu)
}

func (b *bucket) take(d *Demand, sign int64) {
	b.usedCPU += sign * d.CPU
	b.usedMem += sign * d.Memory
	if d.Custom != "" {
		if b.usedCus == nil {
			b.usedCus = make(map[string]int64)
		}
		for k, v := range customOf(d.Custom) {
			b.usedCus[k] += sign * v
		}
		maps.DeleteFunc(b.usedCus, func(_ string, v int64) bool { return v == 0 })
	}
}
