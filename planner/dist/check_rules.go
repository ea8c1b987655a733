package dist

import (
	"fmt"
	"slices"

	"manta/planner/plan"
)

// partitioned checks an operator of which at least one input is partitioned and
// none is single, and gives the distribution of its output.
func partitioned(n plan.Node, in []Distribution) (Distribution, error) {
	switch n := n.(type) {
	case *plan.Filter:
		return in[0].keep(n.Keep, 0), nil
	case *plan.Project:
		return in[0].rewrite(projector(n.Exprs)), nil
	case *plan.Unnest:
		return in[0], nil
	case *plan.Aggregate:
		return grouping(n, in[0])
	case *plan.Distinct:
		keys := n.On
		if keys == nil {
			keys = refs(n.Types())
		}
		if !in[0].within(keys) {
			return Distribution{}, fmt.Errorf("DISTINCT over rows that are %s: equal rows may be at several tasks", in[0])
		}
		return in[0], nil
	case *plan.Window:
		for _, w := range n.Exprs {
			if !in[0].within(w.Partitions) {
				return Distribution{}, fmt.Errorf("a window over rows that are %s: one window may be at several tasks", in[0])
			}
		}
		return in[0], nil
	case *plan.Cross:
		if in[0].Kind == Partitioned && in[1].Kind == Partitioned {
			return Distribution{}, fmt.Errorf("a cross product of two partitioned inputs")
		}
		if in[0].Kind == Partitioned {
			return in[0], nil
		}
		width := len(n.Left.Types())
		return in[1].rewrite(func(e plan.Expr) plan.Expr { return plan.ShiftRefs(e, width) }), nil
	case *plan.SetOp:
		return setOperation(n, in)
	case *plan.Join:
		return joining(n, in[0], in[1])
	}
	return Distribution{}, fmt.Errorf("%s over rows that are %s needs them all in one task", opName(n), in[0])
}

// grouping checks that equal groups are at one task: by groups that are in every grouping set.
func grouping(n *plan.Aggregate, in Distribution) (Distribution, error) {
	var always []plan.Expr
	at := map[string]*plan.Ref{}
	for i, g := range n.Groups {
		every := true
		for _, set := range n.Sets {
			every = every && slices.Contains(set, i)
		}
		if every && len(n.Sets) > 0 {
			always = append(always, g)
			at[canonical(g)] = &plan.Ref{Index: i, T: g.Type()}
		}
	}
	if !in.within(always) {
		return Distribution{}, fmt.Errorf("grouping rows that are %s: one group may be at several tasks", in)
	}
	return in.rewrite(func(e plan.Expr) plan.Expr {
		if r, ok := at[canonical(e)]; ok {
			return r
		}
		return nil
	}), nil
}

func setOperation(n *plan.SetOp, in []Distribution) (Distribution, error) {
	if n.Kind == plan.Union && n.All {
		for _, d := range in {
			if d.Kind != Partitioned {
				return Distribution{}, fmt.Errorf("UNION ALL of partitioned rows and of rows that every task has")
			}
		}
		return Distribution{Kind: Partitioned}, nil
	}
	keys := refs(n.Out)
	for _, d := range in {
		if !d.by(keys) {
			return Distribution{}, fmt.Errorf("a set operation over rows that are %s: equal rows may be at several tasks", d)
		}
	}
	return hashed(keys), nil
}

// joining checks that every row meets all rows that decide what becomes of it.
func joining(n *plan.Join, l, r Distribution) (Distribution, error) {
	left, right := outputs(n)
	if l.Kind == Partitioned && r.Kind == Partitioned {
		if len(l.Keys) == 0 || len(l.Keys) != len(r.Keys) {
			return Distribution{}, fmt.Errorf("a join of rows that are %s and %s", l, r)
		}
		for i := range l.Keys {
			if !slices.ContainsFunc(n.Conds, func(c plan.JoinCond) bool {
				safe := c.Op == plan.NotDistinctFrom || c.Op == plan.Eq && n.Type != plan.Mark
				return safe && c.Left.Type().Equal(c.Right.Type()) && l.Keys[i].has(c.Left) && r.Keys[i].has(c.Right)
			}) {
				return Distribution{}, fmt.Errorf("a join of rows that are %s and %s: its conditions do not say that matching rows meet", l, r)
			}
		}
		return coHashed(n, l, r, left, right), nil
	}
	kept, other, known := l, Right, left
	if r.Kind == Partitioned {
		kept, other, known = r, Left, right
	}
	if n.AsOf && other != Right {
		return Distribution{}, fmt.Errorf("an ASOF join that does not see all rows of its right side")
	}
	switch n.Type {
	case plan.Inner:
	case plan.Left, plan.Semi, plan.Anti, plan.Mark, plan.Single:
		if other != Right {
			return Distribution{}, fmt.Errorf("a join keeps rows of its left side, and every task has them all")
		}
	case plan.Right, plan.RightSemi, plan.RightAnti:
		if other != Left {
			return Distribution{}, fmt.Errorf("a join keeps rows of its right side, and every task has them all")
		}
	default:
		return Distribution{}, fmt.Errorf("a full join with a replicated side")
	}
	return sideKeys(n, kept, other, known, left, right), nil
}

// Sides of a join.
const (
	Left = iota
	Right
)

// coHashed is what is known of the output of a join of two sides that are hashed
// alike: the keys of the sides whose rows it does not pad with NULLs.
func coHashed(n *plan.Join, l, r Distribution, left, right func(plan.Expr) plan.Expr) Distribution {
	padsLeft := n.Type == plan.Right || n.Type == plan.Full
	padsRight := n.Type == plan.Left || n.Type == plan.Single || n.Type == plan.Full
	out := Distribution{Kind: Partitioned}
	for i := range l.Keys {
		var k Key
		if left != nil && !padsLeft {
			k = mapKey(k, l.Keys[i], left)
		}
		if right != nil && !padsRight {
			k = mapKey(k, r.Keys[i], right)
		}
		if k == nil {
			return Distribution{Kind: Partitioned}
		}
		out.Keys = append(out.Keys, k)
	}
	return out
}

// sideKeys is what is known of the output of a join of which one side is
// replicated: the other side's keys and, in an inner join, what equals them.
func sideKeys(n *plan.Join, kept Distribution, other int, known, left, right func(plan.Expr) plan.Expr) Distribution {
	if kept.Keys == nil || known == nil {
		return Distribution{Kind: Partitioned}
	}
	out := Distribution{Kind: Partitioned}
	for _, key := range kept.Keys {
		k := mapKey(nil, key, known)
		for _, c := range n.Conds {
			if n.Type != plan.Inner || c.Op != plan.Eq && c.Op != plan.NotDistinctFrom || !c.Left.Type().Equal(c.Right.Type()) {
				continue
			}
			if other == Right && key.has(c.Left) {
				k = mapKey(k, Key{c.Right}, right)
			}
			if other == Left && key.has(c.Right) {
				k = mapKey(k, Key{c.Left}, left)
			}
		}
		if k == nil {
			return Distribution{Kind: Partitioned}
		}
		out.Keys = append(out.Keys, k)
	}
	return out
}
