package dist

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/kernel"
	"manta/planner/plan"
)

func TestStable(t *testing.T) {
	column := func(i int, t plan.Type) plan.Expr { return &plan.Ref{Index: i, T: t} }
	types := []plan.Type{plan.BigInt, plan.Double, plan.Varchar, plan.Decimal(12, 2), {ID: "INTERVAL"}}
	in := &Input{Edge: &Edge{Types: types}}
	keep := plan.Range(len(types))
	agg := func(name string, i int, groups ...int) plan.Node {
		n := &plan.Aggregate{Child: in, Aggs: []*plan.Agg{{Name: name, Params: []plan.Expr{column(i, types[i])}, T: types[i]}}}
		for _, g := range groups {
			n.Groups = append(n.Groups, column(g, types[g]))
		}
		return n
	}
	call := func(name string) plan.Node {
		return &plan.Project{Child: in, Exprs: []plan.Expr{&plan.Cast{Child: &plan.Func{Name: name, T: plan.Double}, T: plan.BigInt}}}
	}
	join := func(j plan.Join) plan.Node {
		j.Left, j.Right, j.LeftKeep = in, in, keep
		return &j
	}
	for _, c := range []struct {
		name   string
		stable bool
		node   plan.Node
	}{
		{"what is read", true, in},
		{"a file", true, &Scan{Get: &plan.Get{Files: []string{"a.parquet"}}}},
		{"a file elsewhere", false, &Scan{Get: &plan.Get{Files: []string{"s3://a.parquet"}}}},
		{"a filter in a scan", false, &Scan{Get: &plan.Get{Scan: plan.Scan{Filters: []plan.Expr{&plan.Func{Name: "random", T: plan.Double}}}}}},
		{"a join", true, join(plan.Join{})},
		{"a join with the nearest", false, join(plan.Join{AsOf: true})},
		{"a sum of integers", true, agg("sum", 0, 2)},
		{"a sum of decimals", true, agg("sum", 3)},
		{"a sum of floats", false, agg("sum", 1)},
		{"a sum in one task", false, &Partial{Op: agg("sum", 1)}},
		{"groups of floats", false, agg("sum", 0, 1)},
		{"groups of intervals", false, agg("count", 0, 4)},
		{"the least float", false, agg("min", 1)},
		{"the least text", true, agg("min", 2)},
		{"any value", false, agg("first", 0)},
		{"a list", false, agg("list", 0)},
		{"distinct rows", false, &plan.Distinct{Child: in}},
		{"distinct numbers", true, &plan.Distinct{Child: &plan.Project{Child: in, Exprs: []plan.Expr{column(0, plan.BigInt)}}}},
		{"a limit", false, &plan.Limit{Child: in, Limit: plan.LimitValue{Set: true, Rows: 1}}},
		{"the first in an order", false, &plan.TopN{Child: in, Limit: 1}},
		{"an order", true, &plan.OrderBy{Child: in, Keys: []plan.Order{{Expr: column(1, plan.Double)}}, Keep: keep}},
		{"a sample", false, &plan.Sample{Child: in, Size: "5", Method: "Reservoir", Seed: 1}},
		{"a window", false, &plan.Window{Child: in, Exprs: []*plan.WindowExpr{{Name: "row_number", T: plan.BigInt}}}},
		{"random numbers", false, call("random")},
		{"the time", false, call("now")},
		{"a function", true, call("pi")},
		{"all of both", true, &plan.SetOp{Kind: plan.Union, All: true, Inputs: []plan.Node{in, in}, Out: types}},
		{"either once", false, &plan.SetOp{Kind: plan.Union, Inputs: []plan.Node{in, in}, Out: types}},
		{"rows side by side", false, &plan.Positional{Left: in, Right: in}},
	} {
		for _, n := range []plan.Node{c.node, &plan.Filter{Child: c.node, Keep: plan.Range(len(c.node.Types()))}} {
			require.Equal(t, c.stable, (&Stage{Root: n}).Stable(), c.name)
		}
	}
	by := &Edge{Kind: Hash, Keys: []plan.Expr{&plan.Func{Name: "random", T: plan.Double}}}
	require.False(t, (&Stage{Root: in, Outputs: []*Edge{by}}).Stable(), "rows go anywhere")
}

// What DuckDB says may give another value in another query is known not to be stable.
func TestNoFunctionThatPassesIsStable(t *testing.T) {
	db, err := kernel.Open(kernel.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	conn, err := db.Connect()
	require.NoError(t, err)
	defer conn.Close()
	rows, err := conn.Query(context.Background(), "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND stability <> 'CONSISTENT'")
	require.NoError(t, err)
	defer rows.Close()
	same := []string{"current_database", "current_schema", "current_schemas", "in_search_path", "error"} // in all tasks of a query
	found := 0
	for {
		b, err := rows.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		for i := range int(b.NumRows()) {
			name := strings.Clone(b.Column(0).ValueStr(i))
			require.Equal(t, slices.Contains(same, name), stableExpr(&plan.Func{Name: name, T: plan.BigInt}), name)
			found++
		}
		b.Release()
	}
	require.Greater(t, found, 20)
}
