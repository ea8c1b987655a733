package plan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// TestGolden shows trees and texts. "setup" runs statements; "tree" shows the nodes with estimates and output types; "sql" shows
// the printed text, one SELECT a line.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		in := open(t, "")
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			ctx := context.Background()
			if d.Cmd == "setup" {
				in.setup(t, d.Input)
				return ""
			}
			text, err := in.planning.Plan(ctx, d.Input)
			require.NoError(t, err)
			root, err := plan.Decode(text)
			if err != nil {
				return err.Error() + "\n"
			}
			switch d.Cmd {
			case "tree":
				return tree(t, in.planning, root, d.Input)
			case "sql":
				sql, err := plan.PrintFragment(root, nil, nil)
				require.NoError(t, err)
				got, err := run(ctx, in.executing, sql)
				require.NoError(t, err, sql)
				want, err := run(ctx, in.original, d.Input)
				require.NoError(t, err)
				require.Empty(t, difference(want, got, false), sql)
				return strings.ReplaceAll(sql, "(SELECT", "(\nSELECT") + "\n"
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func tree(t *testing.T, conn *kernel.Conn, root plan.Node, query string) string {
	explain, err := conn.PlanCardinalities(context.Background(), query)
	require.NoError(t, err)
	rows, err := plan.ReadCardinalities(root, explain)
	require.NoError(t, err)
	var b strings.Builder
	var show func(n plan.Node, depth int)
	show = func(n plan.Node, depth int) {
		fmt.Fprintf(&b, "%s%s rows=%d %v\n", strings.Repeat("  ", depth), strings.TrimPrefix(fmt.Sprintf("%T", n), "*plan."), rows[n], n.Types())
		for _, c := range n.Children() {
			show(c, depth+1)
		}
	}
	show(root, 0)
	return b.String()
}

// TestCardinalitiesOfAnotherTree must be told apart.
func TestCardinalitiesOfAnotherTree(t *testing.T) {
	in := open(t, "")
	text, err := in.planning.Plan(context.Background(), "SELECT * FROM range(3) a, range(4) b")
	require.NoError(t, err)
	root, err := plan.Decode(text)
	require.NoError(t, err)
	explain, err := in.planning.PlanCardinalities(context.Background(), "SELECT * FROM range(3)")
	require.NoError(t, err)
	_, err = plan.ReadCardinalities(root, explain)
	require.ErrorContains(t, err, "children")
	_, err = plan.ReadCardinalities(root, "?")
	require.Error(t, err)
}
