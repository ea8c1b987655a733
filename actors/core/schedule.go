package core

// classKey is what tasks of a class have in common.
type classKey struct {
	fn string
	Demand
}

// class is the queue of a job's tasks that want the same.
type class struct {
	key        classKey
	job        *job
	stat       *funcStat
	head, tail *task
	n          int
	stuck      uint64 // the round in which its head found no place
}

// funcStat is how long a function runs, as a moving average.
type funcStat struct {
	known bool
	nanos int64
}

// ahead is how many tasks a CPU may have waiting beside the one that runs: as many as take about as long as a message to and fro, and
// none of a function whose time is not known.
func (f *funcStat) ahead() int64 {
	const trip, most = 4_000_000, 512
	if !f.known || f.nanos > trip/2 {
		return 0
	}
	return min(trip/max(f.nanos, 1), most)
}

func (f *funcStat) add(nanos int64) {
	if !f.known {
		f.known, f.nanos = true, nanos
	}
	if nanos > f.nanos { // slow at once, fast little by little
		f.nanos = (f.nanos + nanos) / 2
	} else {
		f.nanos += (nanos - f.nanos) / 8
	}
}

// enqueue makes a task wait for a place.
func (c *Core) enqueue(t *task, front bool) {
	key := classKey{t.spec.Func, t.spec.Opt.Demand}
	k := t.job.byKey[key]
	if k == nil {
		st := c.stats[key.fn]
		if st == nil {
			st = &funcStat{}
			c.stats[key.fn] = st
		}
		k = &class{key: key, job: t.job, stat: st}
		t.job.byKey[key] = k
	}
	if k.n == 0 {
		t.job.classes = append(t.job.classes, k)
	}
	t.state, t.class = taskQueued, k
	switch {
	case k.head == nil:
		k.head, k.tail = t, t
	case front:
		t.next, k.head = k.head, t
	default:
		k.tail.next, k.tail = t, t
	}
	k.n++
}

// pop takes the head; cancelled tasks in the queue go by the way.
func (k *class) pop() *task {
	t := k.head
	k.head, t.next = t.next, nil
	if k.head == nil {
		k.tail = nil
	}
	k.n--
	if k.n == 0 {
		j := k.job
		for i, o := range j.classes {
			if o == k {
				j.classes = append(j.classes[:i], j.classes[i+1:]...)
				break
			}
		}
		delete(j.byKey, k.key)
	}
	return t
}

// schedule starts what finds a place. The job that uses least goes first; within it the highest priority, and then what was queued first.
func (c *Core) schedule() {
	c.retryGroups()
	c.admitGangs()
	c.round++
	for {
		var best *class
		for _, j := range c.queue {
			if best != nil && j.used >= best.job.used {
				continue
			}
			for _, k := range j.classes {
				if k.stuck == c.round {
					continue
				}
				if best == nil || best.job != j || k.key.Priority > best.key.Priority ||
					k.key.Priority == best.key.Priority && k.head.spec.ID < best.head.spec.ID {
					best = k
				}
			}
		}
		if best == nil {
			return
		}
		t := best.head
		if t.state != taskQueued { // cancelled
			best.pop()
			continue
		}
		b, err := c.place(t)
		switch {
		case err != nil:
			best.pop()
			t.state = taskWaiting
			c.finish(t, nil, err)
		case b == nil:
			best.stuck = c.round
		default:
			best.pop()
			c.start(t, b)
		}
	}
}

// place chooses where a task runs. Without a bucket there is no room now; with a failure there never will be.
func (c *Core) place(t *task) (*bucket, *Failure) {
	d := &t.spec.Opt.Demand
	if d.Group != 0 {
		return c.placeInGroup(t)
	}
	ahead := t.class.stat.ahead()
	if t.spec.Kind == KindCreate {
		ahead = 0
	}
	if d.Node != "" {
		n := c.nodes[d.Node]
		if n != nil && !n.suspended && n.main.fits(d, ahead) {
			return &n.main, nil
		}
		if !d.Soft {
			if n == nil {
				return nil, gone(d.Node)
			}
			return nil, nil
		}
		if n != nil && n.main.could(d) {
			return nil, nil // it is only busy
		}
	}
	if d.Spread {
		for _, depth := range [2]int64{0, ahead} {
			for range c.order {
				c.turn = (c.turn + 1) % len(c.order)
				n := c.order[c.turn]
				if c.allows(n, d) && n.main.fits(d, depth) {
					return &n.main, nil
				}
			}
		}
		return nil, nil
	}
	if n := c.nearest(t); n != nil && c.allows(n, d) && n.main.fits(d, ahead) {
		return &n.main, nil
	}
	var best *node
	for _, n := range c.order { // pack nodes up to half, then take the one that is used least
		if !c.allows(n, d) || !n.main.fits(d, 0) {
			continue
		}
		if 2*(n.main.load()+n.main.blocked+d.CPU) <= n.main.cpu {
			return &n.main, nil
		}
		if best == nil || less(&n.main, &best.main) {
			best = n
		}
	}
	if best == nil && ahead > 0 {
		for _, n := range c.order {
			if c.allows(n, d) && n.main.fits(d, ahead) && (best == nil || less(&n.main, &best.main)) {
				best = n
			}
		}
	}
	if best == nil {
		return nil, nil
	}
	return &best.main, nil
}

func gone(id NodeID) *Failure {
	return &Failure{Text: "node " + string(id) + " is dead: it is not a member of the cluster", Kinds: []string{FailUnschedulable, FailNodeDead}, At: id}
}

// less compares use by share, without division.
func less(a, b *bucket) bool {
	return a.load()*max(b.cpu, 1) < b.load()*max(a.cpu, 1)
}

func (c *Core) allows(n *node, d *Demand) bool {
	return !n.suspended && n.main.cpu > 0 && matches(n.labels, d.Labels)
}

// nearest is the node that has most bytes of the task's arguments, if they are worth it.
func (c *Core) nearest(t *task) *node {
	if len(t.spec.Args) == 0 {
		return nil
	}
	const worth = 256 << 10
	var best *node
	var most int64
	var bytes map[NodeID]int64
	for i := range t.spec.Args {
		var v *Value
		if ref := t.spec.Args[i].Ref; ref != 0 {
			if o := c.objects[ref]; o != nil {
				v = o.value
			}
		}
		if v == nil || v.Node == "" || v.Size == 0 {
			continue
		}
		if bytes == nil {
			bytes = make(map[NodeID]int64)
		}
		bytes[v.Node] += v.Size
		if b := bytes[v.Node]; b > most && b >= worth {
			if n := c.nodes[v.Node]; n != nil {
				best, most = n, b
			}
		}
	}
	return best
}
