package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/internal/randsql"
	"manta/planner/kernel"
	"manta/planner/plan"
)

// TestRandom compares random statements with their printed plans, whole and in two parts.
func TestRandom(t *testing.T) {
	for _, off := range shapes {
		t.Run("without"+off, func(t *testing.T) { random(t, off) })
	}
}

// worthwhile is how long DuckDB may take for a statement that is compared.
const worthwhile = 5 * time.Second

// patient runs what takes DuckDB no longer than worthwhile when it plans it itself. What runs out of time is tried again
// with ten times as much before that counts: the machine may be slow, or busy with something else.
func patient(c *kernel.Conn, sql string) (table, error) {
	for limit := time.Minute; ; limit *= 10 {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		out, err := run(ctx, c, sql)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || limit > time.Minute {
			return out, err
		}
	}
}

func random(t *testing.T, off string) {
	in := open(t, off)
	in.setup(t, `
		CREATE TABLE a AS SELECT nullif(i % 5, 4)::INTEGER x, nullif(i % 3, 1)::INTEGER y, CASE WHEN i % 4 > 0 THEN 's' || i % 3 END s, (i * 0.5)::DECIMAL(8,2) d FROM range(9) r(i);
		CREATE TABLE b AS SELECT i::INTEGER x, (i % 2)::INTEGER y, 's' || i s, nullif(i, 2)::DECIMAL(8,2) d FROM range(4) r(i);
		CREATE TABLE e AS SELECT * FROM a WHERE FALSE;
		CREATE TABLE big AS SELECT (i % 40)::INTEGER x, (i % 7)::INTEGER y, 's' || i % 5 s, (i % 9)::DECIMAL(8,2) d FROM range(100) r(i)`)
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		query := randsql.Statement(t)
		ctx, cancel := context.WithTimeout(context.Background(), worthwhile)
		defer cancel()
		want, err := run(ctx, in.original, query)
		if e, ok := errors.AsType[*kernel.Error](err); ok && (e.Type == "Binder" || e.Type == "Catalog" || e.Type == "Not implemented") {
			counts[e.Type]++
			t.Skip(e.Message)
		}
		if ctx.Err() != nil {
			counts["slow"]++
			t.Skip(ctx.Err())
		}
		text, planErr := in.planning.Plan(context.Background(), query)
		if planErr != nil {
			counts["unplanned"]++
			t.Skip(planErr)
		}
		root, decodeErr := plan.Decode(text)
		require.NoError(t, decodeErr, query)
		sql, printErr := plan.PrintFragment(root, nil, nil)
		if u, ok := errors.AsType[*plan.UnsupportedError](printErr); ok {
			counts[u.What]++
			t.Skip(u.What)
		}
		require.NoError(t, printErr, query)
		got, gotErr := patient(in.executing, sql)
		if err != nil { // an error of the data, which another plan need not meet
			counts["failed"]++
			t.Skip(err)
		}
		require.NoError(t, gotErr, query+"\n"+sql)
		counts["compared"]++
		require.Empty(t, difference(want, got, false), query+"\n"+strings.ReplaceAll(sql, "SELECT", "\nSELECT"))
		require.Empty(t, difference(want, cut(t, in, root), false), query)
	})
	t.Log(counts)
	require.Greater(t, counts["compared"], 10)
}
