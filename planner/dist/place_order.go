package dist

import "manta/planner/plan"

// topN places an ORDER BY with a LIMIT: each task keeps its own first rows, one task takes the first of those.
func (p *placer) topN(n *plan.TopN) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	most := n.Limit + n.Offset
	rows := min(p.rows(n, c.rows), float64(n.Limit))
	if c.dist.Kind == Partitioned && !plan.Volatile(n) && most >= n.Limit {
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
		(counted(n.Offset) || !n.Offset.Set) && most >= n.Limit.Rows {
		local := &plan.Limit{Child: c.node, Limit: plan.LimitValue{Set: true, Rows: most}}
		c = placed{&Partial{Op: local}, c.dist, min(c.rows, float64(most)*float64(p.o.Partitions))}
	}
	c = p.gather(c)
	return placed{n.WithChildren([]plan.Node{c.node}), Distribution{Kind: Single}, rows}, nil
}

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
	keys := commonPartitions(n)
	if len(keys) == 0 {
		p.note("a window over all rows runs in one task")
		return over(p.gather(c), Distribution{Kind: Single}), nil
	}
	if !c.dist.within(keys) {
		c = p.hash(c, keys)
	}
	return over(c, c.dist), nil
}

// commonPartitions are the partition keys that all windows have.
func commonPartitions(n *plan.Window) []plan.Expr {
	var out []plan.Expr
	for _, k := range n.Exprs[0].Partitions {
		all := true
		for _, w := range n.Exprs[1:] {
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
		d, to = Distribution{Kind: Partitioned}, p.spread
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
