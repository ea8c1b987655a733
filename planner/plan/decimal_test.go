package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// TestDecimals binds random decimal arithmetic over columns, prints the plan without any outer cast and binds it again: the
// types must be the same, and so must the values.
func TestDecimals(t *testing.T) {
	in := open(t, "")
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		var columns []string
		for i := range 3 {
			width := rapid.IntRange(1, 20).Draw(t, "width")
			scale := rapid.IntRange(0, min(width, 6)).Draw(t, "scale")
			columns = append(columns, fmt.Sprintf("(i %% 10 / 10)::DECIMAL(%d,%d) AS d%d", max(width, scale+1), scale, i))
		}
		setup := "CREATE OR REPLACE TABLE t AS SELECT i::INTEGER AS n, i::BIGINT AS b, i::UTINYINT AS u, " + strings.Join(columns, ", ") + " FROM range(5) r(i)"
		for _, c := range []*kernel.Conn{in.original, in.planning, in.executing} {
			require.NoError(t, c.Exec(ctx, setup))
		}
		query := "SELECT " + drawArithmetic(t, 3) + ", " + drawArithmetic(t, 2) + " FROM t"
		want, failed := run(ctx, in.original, query)
		if failed != nil {
			t.Skip("an overflow")
		}
		text, err := in.planning.Plan(ctx, query)
		require.NoError(t, err)
		root, err := plan.Decode(text)
		require.NoError(t, err)
		sql, err := plan.Print(root)
		if err != nil {
			require.ErrorContains(t, err, "too wide")
			t.Skip("an ambiguous plan")
		}
		got, err := run(ctx, in.executing, sql)
		require.NoError(t, err, sql)
		require.Empty(t, difference(want, got, true), query+"\n"+sql)
	})
}

func drawArithmetic(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 4).Draw(t, "leaf") == 0 {
		return rapid.SampledFrom([]string{"d0", "d1", "d2", "n", "b", "u", "1", "2.5", "0.05", "100", "-3"}).Draw(t, "operand")
	}
	op := rapid.SampledFrom([]string{"+", "-", "*", "%"}).Draw(t, "op")
	return "(" + drawArithmetic(t, depth-1) + " " + op + " " + drawArithmetic(t, depth-1) + ")"
}

// TestDecimalsWithoutCasts has the expressions of TPC-H: their operands print as columns, since wide decimals are slow.
func TestDecimalsWithoutCasts(t *testing.T) {
	in := open(t, "")
	in.setup(t, `CREATE TABLE l AS SELECT (i * 7.31)::DECIMAL(15,2) AS price, (i % 11 / 100)::DECIMAL(15,2) AS discount,
		(i % 9 / 100)::DECIMAL(15,2) AS tax, (i % 50)::DECIMAL(15,2) AS quantity, i::INTEGER AS available FROM range(100) r(i)`)
	for _, e := range []string{
		"price * (1 - discount)", "price * (1 - discount) * (1 + tax)", "price * discount", "price * (1 - discount) - tax * quantity",
		"price * available", "price + available - 1", "quantity + 10",
	} {
		text, err := in.planning.Plan(context.Background(), "SELECT "+e+" FROM l")
		require.NoError(t, err)
		root, err := plan.Decode(text)
		require.NoError(t, err)
		top, ok := root.(*plan.Project)
		require.True(t, ok)
		sql, err := new(plan.Printer).Expr(top.Exprs[0], []string{"a", "b", "c", "d", "e"})
		require.NoError(t, err)
		require.NotRegexp(t, `CAST\([a-e(]`, sql, "only constants are cast")
	}
}
