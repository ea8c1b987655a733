package dist

import (
	"slices"

	"manta/planner/plan"
)

// distinctApart places an aggregate over everything of which several count
// different values once: each list of values is made distinct by itself, over all
// tasks, and what is left of it is aggregated without DISTINCT. The results are
// one row each, which one task puts side by side.
func (p *placer) distinctApart(n *plan.Aggregate, c placed) (placed, bool) {
	if len(n.Groups) > 0 || !plain(n) {
		return placed{}, false
	}
	parts := apart(n)
	if len(parts) < 2 {
		return placed{}, false
	}
	for _, part := range parts {
		if part.values != nil && !splits(&plan.Aggregate{Aggs: part.plain()}, false) {
			return placed{}, false
		}
	}
	input := func() placed { return c }
	if moves(c.node) {
		s := p.share("input of distinct aggregates", c)
		input = func() placed { return read(s) }
	}
	var out placed
	var at []int // where each aggregate's column is
	for _, part := range parts {
		x := p.apartOf(part, input())
		if out.node == nil {
			out = x
		} else {
			out = placed{&plan.Cross{Left: out.node, Right: x.node}, Distribution{Kind: Single}, 1}
		}
		at = append(at, part.at...)
	}
	exprs := make([]plan.Expr, len(n.Aggs))
	for column, a := range at {
		exprs[a] = &plan.Ref{Index: column, T: n.Aggs[a].T}
	}
	return placed{&plan.Project{Child: out.node, Exprs: exprs}, Distribution{Kind: Single}, 1}, true
}

// aggregatesApart are aggregates that count the same values once, or without values those that count all.
type aggregatesApart struct {
	values []plan.Expr
	filter plan.Expr
	aggs   []*plan.Agg
	at     []int // their places among all
}

// apart parts the aggregates of n.
func apart(n *plan.Aggregate) []*aggregatesApart {
	var out []*aggregatesApart
	for i, a := range n.Aggs {
		var values []plan.Expr
		var filter plan.Expr
		if countsOnce(a) {
			values, filter = a.Params, a.Filter
		}
		k := slices.IndexFunc(out, func(x *aggregatesApart) bool {
			return slices.EqualFunc(x.values, values, sameExpr) && sameExpr(x.filter, filter)
		})
		if k < 0 {
			k = len(out)
			out = append(out, &aggregatesApart{values: values, filter: filter})
		}
		out[k].aggs, out[k].at = append(out[k].aggs, a), append(out[k].at, i)
	}
	return out
}

func sameExpr(a, b plan.Expr) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return canonical(a) == canonical(b)
}

// plain are the aggregates as they are over the distinct values.
func (x *aggregatesApart) plain() []*plan.Agg {
	out := make([]*plan.Agg, len(x.aggs))
	for i, a := range x.aggs {
		once := *a
		once.Distinct, once.Filter = false, nil
		once.Params = refs(plan.TypesOf(a.Params))
		out[i] = &once
	}
	return out
}

// apartOf places one part over the input of all.
func (p *placer) apartOf(x *aggregatesApart, c placed) placed {
	if x.values == nil {
		n := &plan.Aggregate{Child: c.node, Aggs: x.aggs}
		if splits(n, false) {
			return p.twoStep(n, c, 1)
		}
		p.note("an aggregate that has no partial form runs in one task")
		n.Child = p.gather(c).node
		return placed{n, Distribution{Kind: Single}, 1}
	}
	if x.filter != nil {
		c.node = &plan.Filter{Child: c.node, Conds: []plan.Expr{x.filter}, Keep: plan.Range(len(c.node.Types()))}
	}
	c = placed{&plan.Project{Child: c.node, Exprs: x.values}, c.dist.rewrite(projector(x.values)), c.rows}
	keys := refs(c.node.Types())
	if !c.dist.within(keys) {
		c.node = &Partial{Op: &plan.Distinct{Child: c.node}}
		c = p.hash(c, keys)
	}
	c.node = &plan.Distinct{Child: c.node}
	return p.twoStep(&plan.Aggregate{Child: c.node, Aggs: x.plain()}, c, 1)
}

// moves reports whether a part of the plan does more than to read files: it is then computed once.
func moves(n plan.Node) bool {
	switch n.(type) {
	case *Scan:
		return false
	case *plan.Filter, *plan.Project:
		return slices.ContainsFunc(n.Children(), moves)
	}
	return true
}
