package plan_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/plan"
)

// stored is a leaf of this test's own: a table that holds what a subtree gave.
type stored struct {
	name string
	out  []plan.Type
}

func (s *stored) Children() []plan.Node                  { return nil }
func (s *stored) WithChildren([]plan.Node) plan.Node     { return s }
func (s *stored) Types() []plan.Type                     { return s.out }
func (s *stored) PrintSQL(*plan.Printer) (string, error) { return "SELECT * FROM " + s.name, nil }

// closed are the subtrees that read nothing of what is shared outside of them.
func closed(root plan.Node) []plan.Node {
	var out []plan.Node
	plan.Walk(root, func(n plan.Node) bool {
		free := map[string]bool{}
		plan.Walk(n, func(m plan.Node) bool {
			switch m := m.(type) {
			case *plan.DelimGet:
				free["d"+strconv.Itoa(m.ID)] = true
			case *plan.CTERef:
				free["c"+strconv.Itoa(m.ID)] = true
			}
			return true
		})
		plan.Walk(n, func(m plan.Node) bool {
			switch m := m.(type) {
			case *plan.DelimJoin:
				delete(free, "d"+strconv.Itoa(m.ID))
			case *plan.CTE:
				delete(free, "c"+strconv.Itoa(m.ID))
			case *plan.RecursiveCTE:
				delete(free, "c"+strconv.Itoa(m.ID))
			}
			return true
		})
		if len(free) == 0 {
			out = append(out, n)
		}
		return true
	})
	return out
}

// cut runs a subtree on its own, puts a leaf in its place and runs the rest: it must not matter.
func cut(t *rapid.T, in instances, root plan.Node) table {
	ctx := context.Background()
	at := rapid.SampledFrom(closed(root)).Draw(t, "cut")
	sql, err := plan.PrintFragment(at, nil, nil)
	require.NoError(t, err)
	require.NoError(t, in.executing.Exec(ctx, "CREATE OR REPLACE TABLE stored AS "+sql), sql)
	leaf := &stored{"stored", at.Types()}
	rest := plan.Rewrite(root, func(n plan.Node) plan.Node {
		if n == at {
			return leaf
		}
		return n
	})
	sql, err = plan.PrintFragment(rest, nil, nil)
	require.NoError(t, err)
	got, err := patient(in.executing, sql)
	require.NoError(t, err, sql)
	return got
}

// TestExtraColumns adds expressions over the output to a fragment, as an exchange does for its partition numbers.
func TestExtraColumns(t *testing.T) {
	in := open(t, "")
	in.setup(t, "CREATE TABLE t AS SELECT i AS k, 's' || i AS s FROM range(4) r(i)")
	for _, query := range []string{"SELECT s, k FROM t", "SELECT s, k FROM t ORDER BY k DESC", "SELECT s, k + 0 FROM t ORDER BY k DESC LIMIT 4"} {
		text, err := in.planning.Plan(context.Background(), query)
		require.NoError(t, err)
		root, err := plan.Decode(text)
		require.NoError(t, err)
		types := root.Types()
		part := &plan.Raw{SQL: "({0} % {1})::UINTEGER", Params: []plan.Expr{&plan.Ref{Index: 1, T: types[1]}, &plan.Const{Value: plan.Int(plan.BigInt, 2)}}, T: plan.UInteger}
		sql, err := plan.PrintFragment(root, []string{"a b", "a b"}, []plan.Expr{part})
		require.NoError(t, err)
		got, err := run(context.Background(), in.executing, sql)
		require.NoError(t, err, sql)
		want := table{types: []string{"VARCHAR", "BIGINT", "UINTEGER"}, rows: []string{"s3 | 3 | 1", "s2 | 2 | 0", "s1 | 1 | 1", "s0 | 0 | 0"}}
		require.Empty(t, difference(want, got, query != "SELECT s, k FROM t"), sql)
		require.Contains(t, sql, `AS "a b", `)
		_, err = plan.PrintFragment(root, []string{"one"}, nil)
		require.Error(t, err)
	}
}
