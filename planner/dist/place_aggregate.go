package dist

import (
	"slices"

	"manta/planner/plan"
)

// reduces reports whether grouping before an exchange as well as behind it is
// worth the work, by the estimates. DuckDB estimates as many groups as rows when
// it knows nothing, so only an estimate between the two speaks against it.
func reduces(groups, rows float64) bool { return groups <= 0.75*rows || groups >= 0.99*rows }

// aggregate places a grouping, or an aggregate over everything.
func (p *placer) aggregate(n *plan.Aggregate) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	rows := p.rows(n, c.rows)
	over := func(c placed, d Distribution) placed {
		return placed{n.WithChildren([]plan.Node{c.node}), d, rows}
	}
	// What every task could compute is computed once: the order in which rows
	// arrive may show in a result.
	if c.dist.Kind != Partitioned || plan.Volatile(n) {
		return over(p.gather(c), Distribution{Kind: Single}), nil
	}
	common := commonGroups(n)
	exprs := make([]plan.Expr, len(common))
	for i, g := range common {
		exprs[i] = n.Groups[g]
	}
	grouped := func(d Distribution) Distribution {
		return d.rewrite(func(e plan.Expr) plan.Expr {
			want := canonical(e)
			for _, g := range common {
				if canonical(n.Groups[g]) == want {
					return &plan.Ref{Index: g, T: n.Groups[g].Type()}
				}
			}
			return nil
		})
	}
	if len(common) > 0 && c.dist.within(exprs) {
		return over(c, grouped(c.dist)), nil
	}
	if plain(n) && splits(n) && (len(n.Groups) == 0 || reduces(rows, c.rows)) {
		return p.twoStep(n, c, rows), nil
	}
	if len(common) > 0 {
		c = p.hash(c, exprs)
		return over(c, grouped(c.dist)), nil
	}
	p.note("an aggregate that has no partial form runs in one task")
	return over(p.gather(c), Distribution{Kind: Single}), nil
}

// plain reports whether the rows form one grouping: by all groups, or all rows in one.
func plain(n *plan.Aggregate) bool {
	if len(n.Groupings) > 0 {
		return false
	}
	if len(n.Groups) == 0 {
		return len(n.Sets) == 0
	}
	return len(n.Sets) == 1 && len(n.Sets[0]) == len(n.Groups)
}

// commonGroups are the groups that are in every grouping set: rows that differ in
// one of them are never in one group.
func commonGroups(n *plan.Aggregate) []int {
	var out []int
	for g := range n.Groups {
		if !slices.ContainsFunc(n.Sets, func(set []int) bool { return !slices.Contains(set, g) }) {
			out = append(out, g)
		}
	}
	return out
}

// twoStep computes partial aggregates where the rows are, brings equal groups
// together, and completes them.
func (p *placer) twoStep(n *plan.Aggregate, c placed, rows float64) placed {
	groups := len(n.Groups)
	partial := &plan.Aggregate{Child: c.node, Groups: n.Groups, Sets: n.Sets}
	var steps []step
	for _, a := range n.Aggs {
		s, _ := twoSteps(a, groups+len(partial.Aggs))
		partial.Aggs = append(partial.Aggs, s.partial...)
		steps = append(steps, s)
	}
	// Each task may have a row of every group.
	down := placed{&Partial{Op: partial}, c.dist, min(c.rows, rows*float64(p.o.Partitions))}
	final := &plan.Aggregate{Sets: n.Sets}
	for i, g := range n.Groups {
		final.Groups = append(final.Groups, &plan.Ref{Index: i, T: g.Type()})
	}
	var up placed
	d := Distribution{Kind: Single}
	if groups == 0 {
		down.rows = float64(p.o.Partitions)
		up = p.exchange(down, Gather, nil)
	} else {
		up = p.exchange(down, Hash, final.Groups)
		d = hashed(final.Groups)
	}
	final.Child = up.node
	exprs := slices.Clone(final.Groups)
	for _, s := range steps {
		first := groups + len(final.Aggs)
		final.Aggs = append(final.Aggs, s.final...)
		exprs = append(exprs, s.result(first))
	}
	return placed{&plan.Project{Child: final, Exprs: exprs}, d, rows}
}

// distinct places a DISTINCT.
func (p *placer) distinct(n *plan.Distinct) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	rows := p.rows(n, c.rows)
	over := func(c placed, d Distribution) placed {
		return placed{n.WithChildren([]plan.Node{c.node}), d, rows}
	}
	if c.dist.Kind != Partitioned || plan.Volatile(n) {
		return over(p.gather(c), Distribution{Kind: Single}), nil
	}
	keys := n.On
	if keys == nil {
		keys = refs(n.Child.Types())
	}
	if c.dist.within(keys) {
		return over(c, c.dist), nil
	}
	if n.On == nil && reduces(rows, c.rows) {
		c = placed{&Partial{Op: n.WithChildren([]plan.Node{c.node})}, c.dist, rows}
	}
	c = p.hash(c, keys)
	return over(c, c.dist), nil
}

// refs are references to all columns.
func refs(types []plan.Type) []plan.Expr {
	out := make([]plan.Expr, len(types))
	for i, t := range types {
		out[i] = &plan.Ref{Index: i, T: t}
	}
	return out
}
