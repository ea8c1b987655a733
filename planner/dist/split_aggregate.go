package dist

import (
	"manta/planner/kernel"
	"manta/planner/plan"
)

// step is an aggregate in two steps.
type step struct {
	partial []*plan.Agg // over the rows of one task
	final   []*plan.Agg // over the partial results of all tasks
	result  func(first int) plan.Expr
}

// splits reports whether every aggregate has a two-step form; together says that
// equal arguments of those with DISTINCT are at one task.
func splits(n *plan.Aggregate, together bool) bool {
	for _, a := range n.Aggs {
		if _, ok := twoSteps(a, 0, together); !ok {
			return false
		}
	}
	return true
}

// twoSteps gives the two-step form of an aggregate, where it has one whose result
// is the aggregate's own: the same type and, but for sums of floating-point
// numbers, which depend on the order of the rows anyway, the same bits. The
// partial results stand at the columns at, at+1, …
// An aggregate with DISTINCT has one if equal arguments are at one task (together).
func twoSteps(a *plan.Agg, at int, together bool) (step, bool) {
	if countsOnce(a) && !together || len(a.Order) > 0 {
		return step{}, false
	}
	column := func(i int, t plan.Type) []plan.Expr { return []plan.Expr{&plan.Ref{Index: at + i, T: t}} }
	switch a.Name {
	case "count", "count_star":
		return step{
			partial: []*plan.Agg{a},
			final:   []*plan.Agg{{Name: "sum", Params: column(0, a.T), T: plan.HugeInt}},
			result: func(first int) plan.Expr {
				return &plan.Cast{Child: &plan.Ref{Index: first, T: plan.HugeInt}, T: a.T}
			},
		}, true
	case "sum", "sum_no_overflow", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor":
		if len(a.Params) != 1 {
			return step{}, false // min(x, n) gives a list
		}
		name := a.Name
		if name == "sum_no_overflow" {
			name = "sum"
		}
		sum := *a
		sum.Name, sum.Distinct = name, countsOnce(a)
		return step{
			partial: []*plan.Agg{&sum},
			final:   []*plan.Agg{{Name: name, Params: column(0, a.T), T: a.T}},
			result:  func(first int) plan.Expr { return &plan.Ref{Index: first, T: a.T} },
		}, true
	case "avg":
		return splitAvg(a, column)
	}
	return step{}, false
}

// splitAvg makes an average of a sum and a count, by the formula that DuckDB itself uses.
func splitAvg(a *plan.Agg, column func(int, plan.Type) []plan.Expr) (step, bool) {
	if len(a.Params) != 1 {
		return step{}, false
	}
	of := a.Params[0].Type()
	formula, ok := kernel.AvgFinal(of.String(), "{0}", "{1}")
	if !ok {
		return step{}, false
	}
	total := sumType(of)
	sum, count := *a, *a
	sum.Name, sum.T = "sum", total
	count.Name, count.T = "count", plan.BigInt
	return step{
		partial: []*plan.Agg{&sum, &count},
		final: []*plan.Agg{
			{Name: "sum", Params: column(0, total), T: total},
			{Name: "sum", Params: column(1, plan.BigInt), T: plan.HugeInt},
		},
		result: func(first int) plan.Expr {
			return &plan.Raw{SQL: formula, T: a.T, Params: []plan.Expr{
				&plan.Ref{Index: first, T: total}, &plan.Ref{Index: first + 1, T: plan.HugeInt},
			}}
		},
	}, true
}

// sumType is the type that DuckDB's sum has for an argument of type t.
func sumType(t plan.Type) plan.Type {
	switch {
	case t.ID == "DECIMAL":
		return plan.Decimal(38, t.Scale)
	case t.IsInteger():
		return plan.HugeInt
	}
	return plan.Double
}
