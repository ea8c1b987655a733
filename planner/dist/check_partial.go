package dist

import (
	"slices"

	"manta/planner/plan"
)

// completes reports whether the operator right above an edge's input finishes
// what op began at each of the edge's producers.
func completes(e *Edge, op plan.Node) bool {
	if e.To == nil {
		return false
	}
	found := false
	plan.Walk(e.To.Root, func(n plan.Node) bool {
		children := n.Children()
		if len(children) == 1 {
			if in, ok := children[0].(*Input); ok && in.Edge == e {
				found = finishes(n, op)
			}
		}
		return !found
	})
	return found
}

// finishes reports whether n over all rows of several partial results of op is op over the rows of all of them.
func finishes(n, op plan.Node) bool {
	switch op := op.(type) {
	case *plan.Aggregate:
		n, ok := n.(*plan.Aggregate)
		return ok && finishesAggregate(n, op)
	case *plan.Distinct:
		n, ok := n.(*plan.Distinct)
		return ok && op.On == nil && n.On == nil
	case *plan.TopN:
		n, ok := n.(*plan.TopN)
		return ok && op.Offset == 0 && n.Limit+n.Offset >= n.Limit && n.Limit+n.Offset <= op.Limit && sameOrder(n.Keys, op.Keys)
	case *plan.Limit:
		n, ok := n.(*plan.Limit)
		if !ok || op.Offset.Set || !counted(op.Limit) || !counted(n.Limit) || n.Offset.Set && !counted(n.Offset) {
			return false
		}
		most := n.Limit.Rows + n.Offset.Rows
		return most >= n.Limit.Rows && most <= op.Limit.Rows
	}
	return false
}

// finishesAggregate reports whether final has a group for every group of the
// partial aggregate, of whichever grouping set, and puts together what that
// computed, each value in the way that it is put together.
func finishesAggregate(final, partial *plan.Aggregate) bool {
	groups := len(partial.Groups)
	for i := range partial.Groups {
		if !slices.ContainsFunc(final.Groups, func(g plan.Expr) bool { return columnAt(g) == i }) {
			return false
		}
	}
	// Every other group must follow from those: it is the grouping set's name, or a GROUPING() of it.
	for _, g := range final.Groups {
		if at := columnAt(g); at < 0 || at >= groups && at < groups+len(partial.Aggs) {
			return false
		}
	}
	if !plain(final) || !keepsSetsApart(partial, final) {
		return false
	}
	done := map[int]bool{}
	for _, a := range final.Aggs {
		if len(a.Params) != 1 || a.Distinct || a.Filter != nil || len(a.Order) > 0 {
			return false
		}
		at := columnAt(a.Params[0]) - groups
		if at < 0 || at >= len(partial.Aggs) || len(partial.Aggs[at].Order) > 0 || a.Name != putTogether[partial.Aggs[at].Name] {
			return false
		}
		done[at] = true
	}
	return len(done) == len(partial.Aggs)
}

// putTogether names, for an aggregate over some of the rows, the one that makes of several results that over all rows.
var putTogether = map[string]string{
	"count": "sum", "count_star": "sum", "sum": "sum", "min": "min", "max": "max",
	"bool_and": "bool_and", "bool_or": "bool_or", "bit_and": "bit_and", "bit_or": "bit_or", "bit_xor": "bit_xor",
}

// columnAt is the column that an expression is, or -1.
func columnAt(e plan.Expr) int {
	if r, ok := e.(*plan.Ref); ok {
		return r.Index
	}
	return -1
}

// keepsSetsApart reports whether rows of different grouping sets of a partial
// aggregate are different groups of the final one.
func keepsSetsApart(partial, final *plan.Aggregate) bool {
	if len(partial.Sets) < 2 {
		return true
	}
	for i, of := range partial.Groupings {
		at := len(partial.Groups) + len(partial.Aggs) + i
		if len(of) == len(partial.Groups) && Key(final.Groups).has(&plan.Ref{Index: at, T: plan.BigInt}) {
			return true
		}
	}
	return false
}
