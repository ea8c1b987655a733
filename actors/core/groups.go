package core

import (
	"strconv"
	"strings"
)

// group is resources that were reserved together.
type group struct {
	id      ID
	layout  Layout
	bundles []*bucket // with a node when placed
	placed  bool
}

func (c *Core) makeGroup(n *node, j *job, s *Spec) {
	o := c.newObject(j, s.ID, n)
	o.wanted = []*node{n}
	g := &group{id: s.ID, layout: s.Opt.Layout}
	for part := range strings.SplitSeq(s.Opt.Bundles, ",") {
		cpu, _ := strconv.ParseInt(part, 10, 64)
		g.bundles = append(g.bundles, &bucket{cpu: cpu})
	}
	c.groups[g.id] = g
	c.placeGroup(g)
}

// retryGroups places groups that wait, in order.
func (c *Core) retryGroups() {
	if len(c.groups) == 0 {
		return
	}
	for _, id := range sortedKeys(c.groups) {
		if g := c.groups[id]; !g.placed {
			c.placeGroup(g)
		}
	}
}

// placeGroup reserves all bundles that have no node, or none.
func (c *Core) placeGroup(g *group) {
	used := make(map[*node]bool)
	var mine []int
	for i := range g.bundles {
		if n := g.bundles[i].node; n != nil {
			used[n] = true
		} else {
			mine = append(mine, i)
		}
	}
	undo := func(done []int) {
		for _, i := range done {
			b := g.bundles[i]
			b.node.main.usedCPU -= b.cpu
			b.node = nil
		}
	}
	for at, i := range mine {
		b := g.bundles[i]
		n := c.bundleNode(g, b, used)
		if n == nil {
			undo(mine[:at])
			return
		}
		used[n] = true
		b.node = n
		n.main.usedCPU += b.cpu
	}
	g.placed = true
	if o := c.objects[g.id]; o != nil && o.state == pending {
		c.resolve(o, &Value{}, nil)
	}
}

func (c *Core) bundleNode(g *group, b *bucket, used map[*node]bool) *node {
	d := &Demand{CPU: b.cpu}
	var best *node
	for _, n := range c.order {
		if !c.allows(n, d) || !n.main.fits(d, 0) {
			continue
		}
		switch {
		case g.layout == StrictPack && len(used) > 0 && !used[n], g.layout == StrictSpread && used[n]:
			continue
		case g.layout == StrictPack && len(used) == 0 && n.main.usedCPU+g.want() > n.main.cpu:
			continue
		}
		if best == nil {
			best = n
		} else if spread := g.layout == SpreadOut || g.layout == StrictSpread; used[n] != used[best] {
			if used[n] != spread {
				best = n
			}
		} else if spread && less(&n.main, &best.main) {
			best = n
		}
	}
	return best
}

// want is the CPU of the bundles that have no node.
func (g *group) want() (cpu int64) {
	for i := range g.bundles {
		if g.bundles[i].node == nil {
			cpu += g.bundles[i].cpu
		}
	}
	return cpu
}

func (c *Core) placeInGroup(t *task) (*bucket, *Failure) {
	d := &t.spec.Opt.Demand
	g := c.groups[d.Group]
	if g == nil {
		return nil, &Failure{Text: "its placement group is gone", Kinds: []string{FailUnschedulable}}
	}
	if int(d.Bundle) >= len(g.bundles) {
		return nil, &Failure{Text: "its placement group has no bundle " + strconv.Itoa(int(d.Bundle)), Kinds: []string{FailUnschedulable}}
	}
	could := false
	for i := range g.bundles {
		b := g.bundles[i]
		if d.Bundle >= 0 && i != int(d.Bundle) {
			continue
		}
		could = could || b.could(d)
		if g.placed && b.node != nil && !b.node.suspended && b.fits(d, 0) {
			return b, nil
		}
	}
	if !could {
		return nil, &Failure{Text: "no bundle of its placement group has " + d.String(), Kinds: []string{FailUnschedulable}}
	}
	return nil, nil
}

// endGroup gives a group's reservation back. What runs in it is cancelled.
func (c *Core) endGroup(id ID) {
	g := c.groups[id]
	if g == nil {
		return
	}
	delete(c.groups, id)
	for i := range g.bundles {
		b := g.bundles[i]
		if b.node == nil {
			continue
		}
		b.node.main.usedCPU -= b.cpu
		for _, tid := range sortedKeys(b.node.tasks) {
			if t := b.node.tasks[tid]; t != nil && t.bucket == b {
				c.cancelTask(t, "its placement group was removed", FailCanceled)
			}
		}
	}
}

// loseBundles takes note that a node is gone: the group waits until the bundles that were there are placed again.
func (c *Core) loseBundles(n *node) {
	for _, id := range sortedKeys(c.groups) {
		g := c.groups[id]
		for i := range g.bundles {
			if g.bundles[i].node == n { // what runs in the old one still gives back to it
				g.bundles[i] = &bucket{cpu: g.bundles[i].cpu}
				g.placed = false
			}
		}
	}
}
