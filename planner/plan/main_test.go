package plan_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"manta/planner/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// instances are the three DuckDBs of a round trip: one that runs the statement as it is, one that plans it and one that
// runs the printed text.
type instances struct {
	original, planning, executing *kernel.Conn
}

// open opens them; off names further optimizers, each after a comma, that do not take part in planning.
func open(t testing.TB, off string) instances {
	t.Helper()
	conn := func(disabled string) *kernel.Conn {
		db, err := kernel.Open(kernel.Config{
			Threads: 1, LosslessArrow: true, DisabledOptimizers: disabled, MemoryLimit: 1 << 30,
			TempDir: t.TempDir(), MaxTempBytes: 1 << 30,
		})
		require.NoError(t, err)
		c, err := db.Connect()
		require.NoError(t, err)
		t.Cleanup(func() {
			c.Close()
			require.NoError(t, db.Close())
		})
		return c
	}
	return instances{conn(""), conn(kernel.PlanningDisabled + off), conn(kernel.ExecutingDisabled)}
}

func (in instances) setup(t testing.TB, sql string) {
	t.Helper()
	for _, c := range []*kernel.Conn{in.original, in.planning, in.executing} {
		require.NoError(t, c.Exec(context.Background(), sql))
	}
}

// table is a result as text.
type table struct {
	types []string
	rows  []string
}

func run(ctx context.Context, c *kernel.Conn, sql string) (table, error) {
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return table{}, err
	}
	defer rows.Close()
	out := table{types: rows.Types()}
	for {
		batch, err := rows.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return table{}, err
		}
		for r := range int(batch.NumRows()) {
			var cells []string
			for _, col := range batch.Columns() {
				cells = append(cells, strings.Clone(col.ValueStr(r)))
			}
			out.rows = append(out.rows, strings.Join(cells, " | "))
		}
		batch.Release()
	}
}

// difference says how two results differ; "" = they don't. Without an order the rows count as a multiset.
func difference(want, got table, ordered bool) string {
	if !slices.Equal(want.types, got.types) {
		return "types: want " + strings.Join(want.types, ", ") + "; got " + strings.Join(got.types, ", ")
	}
	w, g := slices.Clone(want.rows), slices.Clone(got.rows)
	if !ordered {
		slices.Sort(w)
		slices.Sort(g)
	}
	for i := range max(len(w), len(g)) {
		a, b := "(no row)", "(no row)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return "want " + a + "\n got " + b
		}
	}
	return ""
}
