package dist

import (
	"math"
	"slices"

	"manta/planner/plan"
)

// topN places an ORDER BY with a LIMIT: each task keeps its own first rows, one task takes the first of those.
func (p *placer) topN(n *plan.TopN) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	most := n.Limit + n.Offset
	rows := min(p.rows(n, c.rows), float64(n.Limit))
	if c.dist.Kind == Partitioned && !plan.Volatile(n) && cuts(n.Limit, most) {
		local := &plan.TopN{Child: c.node, Keys: n.Keys, Limit: most}
		c = placed{&Partial{Op: local}, c.dist, min(c.rows, float64(most)*float64(p.o.Partitions))}
	}
	c = p.gather(c)
	return placed{n.WithChildren([]plan.Node{c.node}), Distribution{Kind: Single}, rows}, nil
}

// limit places a LIMIT: each task gives at most as many rows as are wanted in all, one task cuts.
func (p *placer) limit(n *plan.Limit) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	rows := c.rows
	if counted(n.Limit) {
		rows = min(rows, float64(n.Limit.Rows))
	}
	if most := n.Limit.Rows + n.Offset.Rows; c.dist.Kind == Partitioned && counted(n.Limit) &&
		(counted(n.Offset) || !n.Offset.Set) && cuts(n.Limit.Rows, most) {
		local := &plan.Limit{Child: c.node, Limit: plan.LimitValue{Set: true, Rows: most}}
		c = placed{&Partial{Op: local}, c.dist, min(c.rows, float64(most)*float64(p.o.Partitions))}
	}
	c = p.gather(c)
	return placed{n.WithChildren([]plan.Node{c.node}), Distribution{Kind: Single}, rows}, nil
}

// cuts reports whether a number of rows, with those of an offset before them, is one that a LIMIT can have.
func cuts(limit, most uint64) bool { return most >= limit && most <= math.MaxInt64 }

// counted reports whether a bound is a number of rows.
func counted(v plan.LimitValue) bool { return v.Set && !v.Percent && v.Expr == nil }

// window places window functions: rows of one window must be at one task.
func (p *placer) window(n *plan.Window) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	over := func(c placed, d Distribution) placed {
		return placed{n.WithChildren([]plan.Node{c.node}), d, p.rows(n, c.rows)}
	}
	if c.dist.Kind != Partitioned || plan.Volatile(n) {
		return over(p.gather(c), Distribution{Kind: Single}), nil
	}
	if keys := commonPartitions(n.Exprs); len(keys) > 0 {
		if !c.dist.within(keys) {
			c = p.hash(c, keys)
		}
		return over(c, c.dist), nil
	}
	groups := windowGroups(n.Exprs)
	if len(groups) == 1 {
		p.note("a window over all rows runs in one task")
		return over(p.gather(c), Distribution{Kind: Single}), nil
	}
	return p.windows(n, c, groups), nil
}

// windows places windows that have no partition key in common one after the
// other, those over all rows last.
func (p *placer) windows(n *plan.Window, c placed, groups [][]int) placed {
	width := len(n.Child.Types())
	at := make([]int, len(n.Exprs)) // where each window's column is
	made := width
	for _, group := range groups {
		w := &plan.Window{}
		for _, i := range group {
			w.Exprs = append(w.Exprs, n.Exprs[i])
			at[i], made = made, made+1
		}
		switch keys := commonPartitions(w.Exprs); {
		case len(keys) == 0:
			p.note("a window over all rows runs in one task")
			c = p.gather(c)
		case !c.dist.within(keys):
			c = p.hash(c, keys)
		}
		w.Child = c.node
		c.node = w
	}
	types := n.Types()
	exprs := refs(types)
	for i, k := range at {
		exprs[width+i] = &plan.Ref{Index: k, T: types[width+i]}
	}
	return placed{&plan.Project{Child: c.node, Exprs: exprs}, c.dist.rewrite(projector(exprs)), p.rows(n, c.rows)}
}

// windowGroups sorts windows into groups that have a partition key in common, and a last one of those without any.
func windowGroups(exprs []*plan.WindowExpr) [][]int {
	var out [][]int
	var members [][]*plan.WindowExpr
	var rest []int
	for i, e := range exprs {
		if len(e.Partitions) == 0 {
			rest = append(rest, i)
			continue
		}
		g := slices.IndexFunc(members, func(m []*plan.WindowExpr) bool {
			return len(commonPartitions(append(slices.Clip(m), e))) > 0
		})
		if g < 0 {
			out, members = append(out, nil), append(members, nil)
			g = len(out) - 1
		}
		out[g], members[g] = append(out[g], i), append(members[g], e)
	}
	if len(rest) > 0 {
		out = append(out, rest)
	}
	return out
}

// commonPartitions are the partition keys that all windows have.
func commonPartitions(exprs []*plan.WindowExpr) []plan.Expr {
	var out []plan.Expr
	for _, k := range exprs[0].Partitions {
		all := true
		for _, w := range exprs[1:] {
			all = all && Key(w.Partitions).has(k)
		}
		if all {
			out = append(out, k)
		}
	}
	return out
}

// setOp places UNION, EXCEPT and INTERSECT.
func (p *placer) setOp(n *plan.SetOp) (placed, error) {
	var inputs []placed
	var rows float64
	spread, replicated := false, true
	for _, child := range n.Inputs {
		c, err := p.place(child)
		if err != nil {
			return placed{}, err
		}
		inputs = append(inputs, c)
		rows += c.rows
		spread = spread || c.dist.Kind == Partitioned
		replicated = replicated && c.dist.Kind == Replicated
	}
	d := Distribution{Kind: Single}
	var to func(placed) placed
	switch keys := refs(n.Out); {
	case !spread && replicated && n.Kind == plan.Union && n.All:
		d, to = Distribution{Kind: Replicated}, func(c placed) placed { return c }
	case !spread:
		to = p.gather
	case n.Kind == plan.Union && n.All:
		d, to = Distribution{Kind: Partitioned}, p.pin
	default:
		// Equal rows, NULLs counting as equal, meet in one task.
		d, to = hashed(keys), func(c placed) placed { return p.hash(c, keys) }
	}
	children := make([]plan.Node, len(inputs))
	for i, c := range inputs {
		children[i] = to(c).node
	}
	return placed{n.WithChildren(children), d, p.rows(n, rows)}, nil
}
