package dist

import (
	"fmt"
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
	twoSteps := mergeable(n) && splits(n, false)
	if twoSteps && (len(n.Groups) == 0 || reduces(rows, c.rows)) {
		return p.twoStep(n, c, rows), nil
	}
	if len(common) > 0 {
		c = p.hash(c, exprs)
		return over(c, grouped(c.dist)), nil
	}
	if twoSteps {
		return p.twoStep(n, c, rows), nil
	}
	// With equal values at one task, each task's distinct values are no other's.
	if values := distinctValues(n); values != nil && mergeable(n) && splits(n, true) {
		if !c.dist.within(values) {
			c = p.hash(c, values)
		}
		return p.twoStep(n, c, rows), nil
	}
	if out, ok := p.distinctApart(n, c); ok {
		return out, nil
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

// mergeable reports whether a partial result tells which grouping set it is of:
// by the groups that it has. GROUPING() takes a limited number of them, and of
// equal sets it can't tell one from the other.
func mergeable(n *plan.Aggregate) bool {
	if plain(n) {
		return true
	}
	if len(n.Groups) == 0 || len(n.Groups) > 60 || len(n.Sets) == 0 {
		return false
	}
	seen := map[string]bool{}
	for _, set := range n.Sets {
		set = slices.Sorted(slices.Values(set))
		key := fmt.Sprint(slices.Compact(set))
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// distinctValues are the arguments of the aggregates with DISTINCT, if all of those have the same, else nil.
func distinctValues(n *plan.Aggregate) []plan.Expr {
	var out []plan.Expr
	for _, a := range n.Aggs {
		if !countsOnce(a) {
			continue
		}
		if out != nil && !slices.EqualFunc(out, a.Params, func(x, y plan.Expr) bool { return canonical(x) == canonical(y) }) {
			return nil
		}
		out = a.Params
	}
	return out
}

// countsOnce reports whether an aggregate's result depends on how often a value occurs, but for its DISTINCT.
func countsOnce(a *plan.Agg) bool { return a.Distinct && a.Name != "min" && a.Name != "max" }

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
		s, _ := twoSteps(a, groups+len(partial.Aggs), true)
		partial.Aggs = append(partial.Aggs, s.partial...)
		steps = append(steps, s)
	}
	// Each task may have a row of every group.
	down := placed{&Partial{Op: partial}, c.dist, min(c.rows, rows*float64(p.o.Partitions))}
	final := &plan.Aggregate{}
	for i, g := range n.Groups {
		final.Groups = append(final.Groups, &plan.Ref{Index: i, T: g.Type()})
	}
	if !plain(n) {
		// Which set a row is of is a group too, and so are the values of GROUPING(), which follow from it.
		partial.Groupings = append([][]int{plan.Range(groups)}, n.Groupings...)
		for i := range partial.Groupings {
			final.Groups = append(final.Groups, &plan.Ref{Index: groups + len(partial.Aggs) + i, T: plan.BigInt})
		}
	}
	if len(final.Groups) > 0 {
		final.Sets = [][]int{plan.Range(len(final.Groups))}
	}
	var up placed
	if groups == 0 {
		down.rows = float64(p.o.Partitions)
		up = p.exchange(down, Gather, nil)
	} else {
		up = p.exchange(down, Hash, final.Groups)
	}
	final.Child = up.node
	d := up.dist.rewrite(projector(final.Groups))
	exprs := refs(plan.TypesOf(final.Groups))
	exprs, sets := exprs[:groups:groups], exprs[groups:]
	for _, s := range steps {
		first := len(final.Groups) + len(final.Aggs)
		final.Aggs = append(final.Aggs, s.final...)
		exprs = append(exprs, s.result(first))
	}
	if len(sets) > 0 {
		exprs = append(exprs, sets[1:]...)
	}
	return placed{&plan.Project{Child: final, Exprs: exprs}, d.rewrite(projector(exprs)), rows}
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
