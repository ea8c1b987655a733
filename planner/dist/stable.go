package dist

import (
	"strings"

	"manta/planner/plan"
)

// Stable reports whether a task of the stage, run again over the same input rows in whatever order they come, gives the
// same rows to the same readers. A join does, and a sum of whole numbers; a LIMIT without more does not, nor a sum of
// floating-point numbers, nor a value that is one of several equal ones. What is not known to do so does not.
func (s *Stage) Stable() bool {
	for _, e := range s.Outputs {
		for _, k := range e.Keys {
			if !stableExpr(k) {
				return false
			}
		}
	}
	return stable(s.Root)
}

func stable(n plan.Node) bool {
	if p, ok := n.(*Partial); ok {
		return stable(p.Op)
	}
	if !stableNode(n) {
		return false
	}
	for _, e := range plan.Exprs(n) {
		if !stableExpr(e) {
			return false
		}
	}
	for _, c := range n.Children() {
		if !stable(c) {
			return false
		}
	}
	return true
}

// stableNode looks at an operator without its expressions and its children.
func stableNode(n plan.Node) bool {
	switch n := n.(type) {
	case *Input, *plan.DummyScan, *plan.Empty, *plan.Values, *plan.Project, *plan.Filter, *plan.Unnest, *plan.OrderBy, *plan.Cross, *plan.CTE:
		return true
	case *Scan:
		return stableNode(n.Get) && stableExprs(n.Get.Filters)
	case *plan.Get:
		for _, path := range n.Files {
			if strings.Contains(path, "://") {
				return false // nobody knows whether it is still the same
			}
		}
		return true
	case *plan.CTERef:
		return !n.Recurring
	case *plan.Join:
		return !n.AsOf // the nearest may be one of several
	case *plan.Aggregate:
		for _, g := range n.Groups {
			if !oneOfAKind(g.Type()) {
				return false
			}
		}
		for _, a := range n.Aggs {
			if !stableAgg(a) {
				return false
			}
		}
		return true
	case *plan.Distinct:
		return n.On == nil && allOneOfAKind(n.Types())
	case *plan.SetOp:
		return n.Kind == plan.Union && n.All || allOneOfAKind(n.Out)
	}
	return false
}

// stableAgg reports whether the order of the rows never shows in an aggregate.
func stableAgg(a *plan.Agg) bool {
	if len(a.Order) > 0 {
		return false
	}
	switch a.Name {
	case "count", "count_star":
		return true
	case "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor":
		return len(a.Params) == 1 && oneOfAKind(a.Params[0].Type())
	case "sum", "sum_no_overflow", "avg":
		t := a.Params[0].Type()
		return len(a.Params) == 1 && (t.IsInteger() || t.ID == "DECIMAL")
	}
	return false
}

// oneOfAKind reports whether values of a type that are equal are the same in every other respect, too. 0.0 and -0.0 are
// not, nor a month and 30 days.
func oneOfAKind(t plan.Type) bool {
	switch t.ID {
	case "BOOLEAN", "DECIMAL", "VARCHAR", "BLOB", "DATE", "TIME", "UUID", "ENUM",
		"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS":
		return true
	}
	return t.IsInteger()
}

func allOneOfAKind(types []plan.Type) bool {
	for _, t := range types {
		if !oneOfAKind(t) {
			return false
		}
	}
	return true
}

// passing are functions whose value is another one in another attempt: of the time, or of the connection.
var passing = map[string]bool{
	"current_query": true, "current_query_id": true, "current_transaction_id": true, "current_connection_id": true, "stats": true,
	"now": true, "get_current_timestamp": true, "transaction_timestamp": true, "today": true, "current_date": true,
	"get_current_time": true, "current_localtime": true, "current_localtimestamp": true, "txid_current": true, "age": true,
}

func stableExpr(e plan.Expr) bool {
	ok := !plan.IsVolatile(e)
	plan.WalkExpr(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Func:
			ok = ok && !passing[e.Name] && (e.Lambda == nil || stableExpr(e.Lambda.Body))
		case *plan.Agg: // judged by its operator
		case *plan.WindowExpr:
			ok = false
		}
		return ok
	})
	return ok
}

func stableExprs(exprs []plan.Expr) bool {
	for _, e := range exprs {
		if !stableExpr(e) {
			return false
		}
	}
	return true
}
