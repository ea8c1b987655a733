package planner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/kernel"
)

// A PIVOT without IN has the columns that DuckDB gives it, and is distributed.
func TestPivotWithoutIn(t *testing.T) {
	o := newOracle(t)
	csv := filepath.Join(t.TempDir(), "sales.csv")
	require.NoError(t, os.WriteFile(csv, []byte("year,shop,n\n2020,a,1\n2021,a,2\n2020,'b c',3\n2021,it''s,4\n,a,5\n"), 0o600))
	require.NoError(t, o.conn.Exec(context.Background(), "CREATE VIEW sales AS FROM read_csv('"+csv+"')"))
	tables := map[string]string{"sales": csv}
	for k, v := range o.tables {
		tables[k] = v
	}
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	for _, sql := range []string{
		"PIVOT (SELECT k % 3 AS k, b, d, g FROM big) ON b USING sum(d) GROUP BY k",
		"PIVOT (SELECT k % 3 AS k, b, d, g FROM big) ON b, g % 2 USING sum(d), count(*) AS n GROUP BY k ORDER BY k LIMIT 2;",
		"PIVOT (SELECT k % 3 AS k, b, d, g FROM big) ON b, (g % 3) IN (1, 2) USING sum(d) GROUP BY k",
		"PIVOT (SELECT k % 3 AS k, b, s, d FROM big WHERE s < 'name 12') ON s || ', ' || b, b USING sum(d) GROUP BY k",
		"PIVOT (SELECT k % 3 AS k, b, d, g FROM big) ON (b, g) USING sum(d) GROUP BY k",
		"PIVOT (SELECT big.k % 3 AS k, dim.c FROM big JOIN dim ON big.k = dim.k) ON c USING count(*) -- ON x\nGROUP BY k",
		"PIVOT big JOIN dim ON big.k = dim.k ON c, b USING count(*) GROUP BY g",
		"PIVOT big ON g IN (SELECT g FROM big WHERE g < 4) USING sum(d) GROUP BY b",
		"SELECT * FROM (PIVOT big ON b USING sum(d) GROUP BY k) p JOIN (PIVOT big ON g USING count(*) GROUP BY k) USING (k)",
		"WITH p AS (PIVOT big ON b USING count(*) GROUP BY g) FROM p WHERE g IN (SELECT g FROM (PIVOT big ON k % 2 USING sum(d) GROUP BY g))",
		"PIVOT (PIVOT big ON b USING sum(d) GROUP BY k, g) ON g USING max(\"true\") GROUP BY k",
		"PIVOT sales ON shop USING sum(n) GROUP BY year",
		"FROM (PIVOT sales ON year, shop USING first(n))",
		"PIVOT (FROM big WHERE d IS NULL AND d IS NOT NULL) ON b USING sum(d) GROUP BY k",
		"PIVOT (SELECT NULL AS n, k % 3 AS k, d FROM big) ON n USING sum(d) GROUP BY k",
		"PIVOT (SELECT NULL AS n, k % 3 AS k, d, b FROM big) ON n, b USING sum(d) GROUP BY k",
		"PIVOT (SELECT NULL::VARCHAR AS n, k % 3 AS k, d, b FROM big) ON (n, b), n || b USING sum(d) GROUP BY k",
		"PIVOT_WIDER sales ON year IN (2020, 2021) USING sum(n)",
		`SELECT "pivot" FROM (SELECT 'PIVOT x ON y' AS "pivot") WHERE (SELECT count(*) FROM big) > 0`,
	} {
		var want answer
		if x, err := o.conn.Expand(context.Background(), sql); err == nil {
			for _, c := range x.Columns {
				want.names, want.types = append(want.names, c.Name), append(want.types, c.Type)
			}
			want.rows = o.rows(t, sql)
		} else {
			require.ErrorIs(t, err, kernel.ErrNoExpansion, sql)
			want = o.answer(t, sql)
		}
		got, stats := query(t, c, sql, Options{Tables: tables, ReplicateBytes: bytesOf(0)})
		requireSame(t, want, got, false, sql)
		require.True(t, stats.Distributed, "%s: %s", sql, stats.Fallback)
	}
	require.ErrorContains(t, fails(c, "PIVOT big ON missing USING count(*)", Options{Tables: tables}), `"missing" not found`)
	require.ErrorContains(t, fails(c, "PIVOT big ON s USING sum(d); SELECT 1", Options{Tables: tables}), "2 statements given")
	require.ErrorContains(t, fails(c, "CREATE TABLE x AS PIVOT big ON s USING sum(d)", Options{Tables: tables}), "only SELECT can be run")
	require.ErrorContains(t, fails(c, "PIVOT nothing ON y USING sum(x)", Options{Tables: tables}), "SELECT list is empty")
}
