package tpc

import (
	"context"
	"fmt"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// Rule says what may differ between two right results of a query.
type Rule struct {
	// Order are the columns, from 0, of the ORDER BY. The sequence of their values is part of the result.
	Order []int
	// Divided are the floating-point columns where Tolerance applies.
	Divided []int
}

// Rule gives the rule of query n, whose text is sql.
func (d *DuckDB) Rule(ctx context.Context, n int, sql string) (Rule, error) {
	if d.suite == H {
		return rulesH[n-1], nil
	}
	rule, err := d.ruleOf(ctx, sql)
	if err != nil {
		return Rule{}, fmt.Errorf("tpc: the order of query %d: %w", n, err)
	}
	return rule, nil
}

// ruleOf reads a rule off DuckDB's plan: the keys by which its last sort is, as
// far as they are columns of the result. Any floating-point column may depend
// on an order of additions.
func (d *DuckDB) ruleOf(ctx context.Context, sql string) (Rule, error) {
	db, err := kernel.Open(kernel.Config{DisabledOptimizers: kernel.PlanningDisabled, Threads: 1})
	if err != nil {
		return Rule{}, err
	}
	defer func() { _ = db.Close() }()
	c, err := db.Connect()
	if err != nil {
		return Rule{}, err
	}
	defer c.Close()
	if err := makeViews(ctx, c, d.tables); err != nil {
		return Rule{}, err
	}
	text, err := c.Plan(ctx, sql)
	if err != nil {
		return Rule{}, err
	}
	root, err := plan.Decode(text)
	if err != nil {
		return Rule{}, err
	}
	rule := Rule{Order: sortColumns(root)}
	for i, t := range root.Types() {
		if t.ID == "DOUBLE" || t.ID == "FLOAT" {
			rule.Divided = append(rule.Divided, i)
		}
	}
	return rule, nil
}

// sortColumns are the output columns by which the rows of a plan are sorted, most significant first. They end at the
// first key that is not in the output: what comes behind it orders rows only among equals in it.
func sortColumns(root plan.Node) []int {
	var at []plan.Expr // the output as expressions over the columns of n
	for i, t := range root.Types() {
		at = append(at, &plan.Ref{Index: i, T: t})
	}
	var keys []plan.Order
	for n := root; keys == nil; {
		switch x := n.(type) {
		case *plan.Project:
			for i, e := range at {
				at[i] = plan.MapRefs(e, func(r *plan.Ref) plan.Expr { return x.Exprs[r.Index] })
			}
			n = x.Child
		case *plan.Limit:
			n = x.Child
		case *plan.CTE:
			n = x.Body
		case *plan.OrderBy:
			keys = x.Keys
			for i, e := range at {
				at[i] = plan.MapRefs(e, func(r *plan.Ref) plan.Expr { return &plan.Ref{Index: x.Keep[r.Index], T: r.T} })
			}
		case *plan.TopN:
			keys = x.Keys
		default:
			return nil
		}
	}
	var out []int
	for _, k := range keys {
		key, ok := k.Expr.(*plan.Ref)
		if !ok {
			return out
		}
		found := -1
		for i, e := range at {
			if r, ok := e.(*plan.Ref); ok && r.Index == key.Index {
				found = i
			}
		}
		if found < 0 {
			return out
		}
		out = append(out, found)
	}
	return out
}

// rulesH are the rules of TPC-H: that of query n is at index n-1, read off the texts of the queries. The five queries with LIMIT (2, 3,
// 10, 18, 21) are compared strictly too: their order keys leave no ties at the cut in generated data.
var rulesH = [22]Rule{
	{Order: []int{0, 1}, Divided: []int{6, 7, 8}}, // three averages
	{Order: []int{0, 2, 1, 3}},
	{Order: []int{1, 2}},
	{Order: []int{0}},
	{Order: []int{1}},
	{},
	{Order: []int{0, 1, 2}},
	{Order: []int{0}, Divided: []int{1}}, // a share
	{Order: []int{0, 1}},
	{Order: []int{2}},
	{Order: []int{1}},
	{Order: []int{0}},
	{Order: []int{1, 0}},
	{Divided: []int{0}}, // a percentage
	{Order: []int{0}},
	{Order: []int{3, 0, 1, 2}},
	{Divided: []int{0}}, // a seventh
	{Order: []int{4, 3}},
	{},
	{Order: []int{0}},
	{Order: []int{1, 0}},
	{Order: []int{0}},
}
