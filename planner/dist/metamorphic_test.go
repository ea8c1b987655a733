package dist

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/internal/fixture"
	"manta/planner/kernel"
	"manta/planner/plan"
)

// setup makes the shared tables and an instance that answers as the oracle.
func setup(t *testing.T) (*rig, *kernel.DB) {
	r := newRig(t)
	globs, err := fixture.Tables(context.Background(), r.planning, t.TempDir())
	require.NoError(t, err)
	for name, glob := range globs {
		r.view(name, glob)
	}
	db, err := kernel.Open(kernel.Config{LosslessArrow: true})
	require.NoError(t, err)
	conn, err := db.Connect()
	require.NoError(t, err)
	for _, s := range r.tables {
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
			old := r.t
			r.t = t
			defer func() { r.t = old }()
			want := r.rows(db, sql)
			for k, o := range variants() {
				if !*every && (i+k)%3 != 0 {
					continue
				}
				p, files := r.place(sql, o)
				r.same(sql, want, r.run(p, files), q.Ordered, o)
			}
		})
	}
}

// TestCheckNoticesEveryMissingExchange takes away one exchange at a time, so that
// rows stay at the task where they were, and asks the checker.
func TestCheckNoticesEveryMissingExchange(t *testing.T) {
	r, _ := setup(t)
	removed := 0
	for i, q := range fixture.Queries() {
		name, sql := q.Name, q.SQL
		for k, o := range variants() {
			if o.Partitions == 1 || !*every && (i+k)%3 != 0 {
				continue
			}
			p, _ := r.place(sql, o)
			require.NoError(t, Check(p), name)
			removed += r.everyExchangeIsMissed(sql, p)
		}
	}
	require.Greater(t, removed, 100)
}

// everyExchangeIsMissed takes each exchange of a plan away in turn, and gives their number.
func (r *rig) everyExchangeIsMissed(sql string, p *Plan) int {
	all := exchanges(p)
	for _, e := range all {
		kind, from, to := e.Kind, e.From.Tasks, e.To.Tasks
		without(p, e)
		require.Error(r.t, Check(p), "%s\nedge %d\n%s", sql, e.ID, Explain(p, func(*Edge) string { return "" }, nil))
		e.Kind, e.From.Tasks, e.To.Tasks = kind, from, to
	}
	require.NoError(r.t, Check(p), sql)
	return len(all)
}

// exchanges are the edges at which rows change their task.
func exchanges(p *Plan) []*Edge {
	var out []*Edge
	for _, s := range p.Stages {
		for _, e := range s.Outputs {
			if e.To != nil && e.Kind != Forward && (e.From.Tasks > 1 || e.To.Tasks > 1) {
				out = append(out, e)
			}
		}
	}
	return out
}

// without lets the rows of an edge stay where they are.
func without(p *Plan, e *Edge) {
	switch {
	case e.Kind == Gather: // the reader runs in all tasks
		e.To.Tasks, e.Kind = p.Partitions, Forward
	case e.From.Tasks > 1:
		e.Kind = Forward
	case e.Kind == Pin: // the writer runs in all tasks
		e.From.Tasks, e.Kind = p.Partitions, Forward
	default: // one task's rows stay at one task of the reader
		e.Kind = Pin
	}
}

func TestExplain(t *testing.T) {
	r, _ := setup(t)
	p, _ := r.place("SELECT n, sum(d) FROM big JOIN dim USING (k) GROUP BY n ORDER BY 2 DESC LIMIT 3", Options{Partitions: 2})
	text := Explain(p, func(*Edge) string { return "streaming" }, nil)
	for _, want := range []string{"2 tasks", "split in 2 by row groups", "PartialAggregate", "PartialTopN 3", "hash(", "gather, streaming", "to the client"} {
		require.Contains(t, text, want)
	}
}

// Every aggregate that is said to have two steps has the result of the one step, types included.
func TestTwoStepAggregatesKeepTheirTypes(t *testing.T) {
	for _, typ := range []string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "DECIMAL(4,1)", "DECIMAL(9,2)", "DECIMAL(18,3)", "DECIMAL(38,4)", "DOUBLE", "FLOAT"} {
		r := newRig(t)
		r.table(t.TempDir(), "t", fmt.Sprintf("SELECT (i * 13 %% 90)::%s AS x, i %% 3 AS g FROM range(5000) r(i)", typ))
		sql := "SELECT g, sum(x), avg(x), min(x), max(x), count(x), count(*) FROM t GROUP BY g"
		db, err := kernel.Open(kernel.Config{LosslessArrow: true})
		require.NoError(t, err)
		conn, err := db.Connect()
		require.NoError(t, err)
		require.NoError(t, conn.Exec(context.Background(), r.tables[0]))
		columns, err := conn.Describe(context.Background(), sql)
		require.NoError(t, err)
		want := r.rows(db, sql)
		o := Options{Partitions: 3}
		p, files := r.place(sql, o)
		partial := false
		for _, s := range p.Stages {
			_, is := s.Root.(*Partial)
			partial = partial || is
		}
		require.True(t, partial, "%s: no partial aggregate", typ)
		for i, c := range columns {
			require.Equal(t, c.Type, p.Result.Types[i].String(), "%s: column %d", typ, i)
		}
		r.same(sql, want, r.run(p, files), false, o)
		conn.Close()
		require.NoError(t, db.Close())
	}
}

// What only the planning session has is not left to the session of a task.
func TestSessionStaysAtHome(t *testing.T) {
	r, _ := setup(t)
	for _, sql := range []string{"SELECT name FROM duckdb_settings()", "FROM (SHOW TABLES)", "FROM pragma_table_info('big')"} {
		_, _, err := r.tryPlace(sql, Options{Partitions: 2})
		var unsupported *plan.UnsupportedError
		require.ErrorAs(t, err, &unsupported, sql)
	}
}
