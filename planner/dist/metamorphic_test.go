package dist_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/dist/disttest"
	"manta/planner/internal/fixture"
	"manta/planner/kernel"
	"manta/planner/plan"
)

// setup makes the shared tables and an instance that answers as the oracle.
func setup(t *testing.T) (*disttest.Rig, *kernel.DB) {
	r := disttest.New(t)
	globs, err := fixture.Tables(context.Background(), r.Planning, t.TempDir())
	require.NoError(t, err)
	for name, glob := range globs {
		r.View(name, glob)
	}
	db, err := kernel.Open(kernel.Config{LosslessArrow: true})
	require.NoError(t, err)
	conn, err := db.Connect()
	require.NoError(t, err)
	for _, s := range r.Tables {
		require.NoError(t, conn.Exec(context.Background(), s))
	}
	conn.Close()
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return r, db
}

// TestSameRowsHoweverDistributed: the number of partitions and the choice between
// exchanges never show in a result.
func TestSameRowsHoweverDistributed(t *testing.T) {
	r, db := setup(t)
	for i, q := range fixture.Queries() {
		sql := q.SQL
		t.Run(q.Name, func(t *testing.T) {
			old := r.T
			r.T = t
			defer func() { r.T = old }()
			want := r.Rows(db, sql)
			for k, o := range disttest.Variants() {
				if !*long && (i+k)%3 != 0 {
					continue
				}
				p, files := r.Place(sql, o)
				r.Same(sql, want, r.Run(p, files), q.Ordered, o)
			}
		})
	}
}

func TestExplain(t *testing.T) {
	r, _ := setup(t)
	p, _ := r.Place("SELECT n, sum(d) FROM big JOIN dim USING (k) GROUP BY n ORDER BY 2 DESC LIMIT 3", dist.Options{Partitions: 2})
	text := dist.Explain(p, func(*dist.Edge) string { return "streaming" }, nil)
	for _, want := range []string{"2 tasks", "split in 2 by row groups", "PartialAggregate", "PartialTopN 3", "hash(", "gather, streaming", "to the client"} {
		require.Contains(t, text, want)
	}
}

// Every aggregate that is said to have two steps has the result of the one step, types included.
func TestTwoStepAggregatesKeepTheirTypes(t *testing.T) {
	for _, typ := range []string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "DECIMAL(4,1)", "DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(38,4)", "DOUBLE", "FLOAT"} {
		r := disttest.New(t)
		r.Table(t.TempDir(), "t", fmt.Sprintf("SELECT (i * 13 %% 90)::%s AS x, i %% 3 AS g FROM range(5000) r(i)", typ))
		sql := "SELECT g, sum(x), avg(x), min(x), max(x), count(x), count(*) FROM t GROUP BY g"
		db, err := kernel.Open(kernel.Config{LosslessArrow: true})
		require.NoError(t, err)
		conn, err := db.Connect()
		require.NoError(t, err)
		require.NoError(t, conn.Exec(context.Background(), r.Tables[0]))
		columns, err := conn.Describe(context.Background(), sql)
		require.NoError(t, err)
		want := r.Rows(db, sql)
		o := dist.Options{Partitions: 3}
		p, files := r.Place(sql, o)
		partial := false
		for _, s := range p.Stages {
			_, is := s.Root.(*dist.Partial)
			partial = partial || is
		}
		require.True(t, partial, "%s: no partial aggregate", typ)
		for i, c := range columns {
			require.Equal(t, c.Type, p.Result.Types[i].String(), "%s: column %d", typ, i)
		}
		r.Same(sql, want, r.Run(p, files), false, o)
		conn.Close()
		require.NoError(t, db.Close())
	}
}

// What only the planning session has is not left to the session of a task.
func TestSessionStaysAtHome(t *testing.T) {
	r, _ := setup(t)
	for _, sql := range []string{"SELECT name FROM duckdb_settings()", "FROM (SHOW TABLES)", "FROM pragma_table_info('big')"} {
		_, _, err := r.TryPlace(sql, dist.Options{Partitions: 2})
		var unsupported *plan.UnsupportedError
		require.ErrorAs(t, err, &unsupported, sql)
	}
}

// Several aggregates over different values of everything bring no raw rows to one task.
func TestDistinctValuesApart(t *testing.T) {
	r, _ := setup(t)
	p, _ := r.Place("SELECT count(DISTINCT k), sum(DISTINCT g) FILTER (b), count(DISTINCT s), count(*), max(id) FROM big", dist.Options{Partitions: 3})
	require.Empty(t, p.Notes)
	distinct := 0
	for _, s := range p.Stages {
		part, ok := s.Root.(*dist.Partial)
		require.True(t, ok || s.Tasks == 1, "stage %d", s.ID)
		if ok {
			if _, is := part.Op.(*plan.Distinct); is {
				distinct++
			}
		}
		for _, e := range s.Outputs {
			require.True(t, e.Kind != dist.Gather || e.Rows < 10, "edge %d gathers %v rows", e.ID, e.Rows)
		}
	}
	require.Equal(t, 3, distinct)
}

// A sort of many rows is spread over the tasks by ranges of its keys.
func TestSortByRanges(t *testing.T) {
	r, db := setup(t)
	sql := "SELECT id, g, s FROM big ORDER BY g DESC NULLS LAST, id"
	o := dist.Options{Partitions: 3}
	p, files := r.Place(sql, o)
	text := dist.Explain(p, func(*dist.Edge) string { return "" }, nil)
	for _, want := range []string{"range(", "gather from task 0", "gather from task 2", "broadcast"} {
		require.Contains(t, text, want)
	}
	var sorted *dist.Stage
	for _, s := range p.Stages {
		if _, ok := s.Root.(*plan.OrderBy); ok {
			sorted = s
		}
	}
	require.Equal(t, 3, sorted.Tasks)
	require.Len(t, sorted.Outputs, 3)
	for _, e := range sorted.Outputs {
		require.False(t, e.Waits())
	}
	r.Same(sql, r.Rows(db, sql), r.Run(p, files), true, o)
	// What is small is sorted by one task.
	o.SortBytes = 1 << 30
	p, files = r.Place(sql, o)
	require.NotContains(t, dist.Explain(p, func(*dist.Edge) string { return "" }, nil), "range(")
	r.Same(sql, r.Rows(db, sql), r.Run(p, files), true, o)
}
