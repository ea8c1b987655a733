package core

import "slices"

// lineage is the ended tasks that are kept to make lost values again, oldest first.
type lineage struct {
	tasks []*task // those that are not kept any more are skipped
	n     int
	bytes int64
}

// keep keeps an ended task as lineage; beyond the limits the oldest go.
func (c *Core) keep(t *task) {
	l := &c.lineage
	if !t.kept {
		t.kept, t.weight = true, c.weigh(t)
		l.n++
		l.bytes += t.weight
		l.tasks = append(l.tasks, t)
	}
	for l.n > c.cfg.MaxLineage || l.bytes > c.cfg.MaxLineageBytes && l.n > 0 {
		old := l.tasks[0]
		l.tasks = l.tasks[1:]
		if !old.kept {
			continue
		}
		for i := range max(old.spec.Results, 1) {
			if o := c.objects[old.spec.ID+ID(i)]; o != nil && o.producer == old {
				o.why = "its lineage was dropped, there was too much of it"
			}
		}
		c.letArgsGo(old)
		c.dropTask(old)
	}
	c.trimKept()
}

// unkeep takes a task out of the lineage.
func (c *Core) unkeep(t *task) {
	if t.kept {
		t.kept = false
		c.lineage.n--
		c.lineage.bytes -= t.weight
	}
}

// weigh is about how many bytes of memory a task takes: its own, and those of arguments that lie here for its sake.
func (c *Core) weigh(t *task) int64 {
	const each, eachArg = 400, 100
	n := int64(each)
	for i := range t.spec.Args {
		a := &t.spec.Args[i]
		v := a.Val
		if o := c.objects[a.Ref]; a.Ref != 0 && o != nil {
			v = o.value
		}
		n += eachArg
		switch {
		case v == nil || v.Node != "":
		case v.Live != nil:
			n += v.Size
		default:
			n += int64(len(v.Data))
		}
	}
	return n
}

func (c *Core) trimKept() {
	l := &c.lineage
	if len(l.tasks) > 2*l.n+64 {
		l.tasks = slices.DeleteFunc(l.tasks, func(t *task) bool { return !t.kept })
	}
}
