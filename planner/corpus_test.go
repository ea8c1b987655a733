package planner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/internal/fixture"
	"manta/planner/kernel"
	"manta/planner/plan"
)

// statement is a case of a corpus, whose tables may be one file each, or more.
type statement struct {
	name    string
	sql     string
	ordered bool
	whole   bool // it may run as it is written
	tables  map[int]map[string]string
}

// fixtureStatements are the cases of package fixture. All of them are distributed.
func fixtureStatements(t *testing.T, o *oracle) []statement {
	files := map[int]map[string]string{}
	for _, n := range []int{1, 5} {
		var err error
		files[n], err = fixture.Spread(context.Background(), o.conn, t.TempDir(), n)
		require.NoError(t, err)
	}
	var out []statement
	for _, q := range fixture.Queries() {
		out = append(out, statement{name: q.Name, sql: q.SQL, ordered: q.Ordered, tables: files})
	}
	return out
}

// Types and schemas of a session, which a cluster does not have, and what says the same without them.
var (
	mood   = regexp.MustCompile(`\bmood\b`)
	schema = regexp.MustCompile(`\bh\.(customer|orders|lineitem)\b`)
)

// ofSession is in a statement that asks a session for what a cluster's does not have: a macro, its own tables, the order of
// its threads (a sample of whole vectors follows it).
// These words cannot follow a WITH.
var ofSession = regexp.MustCompile(`addone\(|SHOW TABLES|SAMPLE system\(50|^(PIVOT|SUMMARIZE|DESCRIBE)|DESCRIBE w`)

// planStatements are the cases of package plan that need no settings and no functions of a session. Its tables and
// views are files here, and common table expressions over them.
func planStatements(t *testing.T, o *oracle) []statement {
	ctx := context.Background()
	dir := t.TempDir()
	var out []statement
	for _, file := range []string{"plan/testdata/corpus-a.txt", "plan/testdata/corpus-b.txt"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		first := true
		for block := range strings.SplitSeq(strings.ReplaceAll(string(text), "$DATA", dir), "\n;;\n") {
			name, sql, ok := strings.Cut(strings.TrimSpace(block), "\n")
			if !ok {
				continue
			}
			setup, query, has := strings.Cut(sql, "\n::\n")
			if has && first { // the tables
				require.NoError(t, o.conn.Exec(ctx, setup))
				sql, has = query, false
			}
			first = false
			if has || ofSession.MatchString(sql) { // a setting, a variable, a sequence
				continue
			}
			out = append(out, statement{name: strings.TrimPrefix(name, "-- "), sql: sql, whole: true})
		}
	}
	require.NoError(t, o.conn.Exec(ctx, `
		CREATE TABLE h_customer AS SELECT i AS c_custkey FROM range(200) r(i);
		CREATE TABLE h_orders AS SELECT i AS o_orderkey, i % 211 AS o_custkey FROM range(600) r(i);
		CREATE TABLE h_lineitem AS SELECT i % 607 AS l_orderkey, (i * 7.31)::DECIMAL(15,2) AS l_extendedprice,
			(i % 11 / 100)::DECIMAL(15,2) AS l_discount, (i % 9 / 100)::DECIMAL(15,2) AS l_tax FROM range(3000) r(i)`))
	tables := &withTables{files: map[int]map[string]string{1: {}, 5: {}}}
	made, err := textColumn(ctx, o.conn, "SELECT table_name FROM duckdb_tables() ORDER BY ALL")
	require.NoError(t, err)
	for _, name := range made {
		tables.table(t, o, dir, name)
	}
	views, err := textColumn(ctx, o.conn, "SELECT view_name || ' ' || sql FROM duckdb_views() WHERE view_name IN ('g', 'p', 'typ') ORDER BY ALL")
	require.NoError(t, err)
	for _, v := range views {
		name, sql, _ := strings.Cut(v, " ")
		_, body, _ := strings.Cut(strings.TrimSuffix(sql, ";"), " AS ")
		tables.add(name, body)
	}
	for i, s := range out {
		s.sql = mood.ReplaceAllString(schema.ReplaceAllString(s.sql, "h_$1"), "ENUM('sad', 'ok', 'happy')")
		out[i].sql, out[i].tables = tables.sql(s.sql), tables.files
	}
	require.NoError(t, o.conn.Exec(ctx, "DROP VIEW g; DROP VIEW p; DROP VIEW typ"))
	for _, name := range made {
		require.NoError(t, o.conn.Exec(ctx, "DROP TABLE "+name))
	}
	return out
}

// withTables puts tables of all types over files into a statement.
type withTables struct {
	names, bodies []string
	files         map[int]map[string]string
}

func (w *withTables) add(name, body string) {
	w.names, w.bodies = append(w.names, name), append(w.bodies, body)
}

// table writes a table's files. What Parquet has no type for is stored as text.
func (w *withTables) table(t *testing.T, o *oracle, dir, name string) {
	ctx := context.Background()
	columns, err := o.conn.Describe(ctx, "FROM "+name)
	require.NoError(t, err)
	var store, load []string
	for _, c := range columns {
		column := plan.Ident(c.Name)
		from, to := column, "CAST("+column+" AS "+c.Type+")"
		switch {
		case strings.HasPrefix(c.Type, "UNION"):
			from, to = "union_extract("+column+", 'num')", "CAST(union_value(num := "+column+") AS "+c.Type+")"
		case slices.Contains([]string{"HUGEINT", "UHUGEINT", "BIT", "TIMESTAMP_S", "TIMESTAMP_MS"}, c.Type):
			from = "CAST(" + column + " AS VARCHAR)"
		}
		store, load = append(store, from+" AS "+column), append(load, to+" AS "+column)
	}
	for files := range w.files {
		base := filepath.Join(dir, fmt.Sprintf("%s-of-%d-", name, files))
		for i := range files {
			require.NoError(t, o.conn.Exec(ctx, fmt.Sprintf("COPY (SELECT %s FROM %s WHERE rowid %% %d = %d) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)",
				strings.Join(store, ", "), name, files, i, kernel.QuoteString(fmt.Sprintf("%s%d.parquet", base, i)))))
		}
		w.files[files][name+"_file"] = base + "*.parquet"
	}
	w.add(name, "SELECT "+strings.Join(load, ", ")+" FROM "+name+"_file")
	require.NoError(t, o.conn.Exec(ctx, "CREATE VIEW "+name+"_file AS SELECT * FROM read_parquet("+kernel.QuoteString(w.files[1][name+"_file"])+")"))
}

var with = regexp.MustCompile(`(?i)^\s*WITH\s+(RECURSIVE\s+)?`)

// sql is a statement with those tables in front that it names.
func (w *withTables) sql(statement string) string {
	text, used := statement, map[string]bool{}
	for i := len(w.names) - 1; i >= 0; i-- {
		if name := w.names[i]; regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			used[name], text = true, text+" "+w.bodies[i]
		}
	}
	var parts []string
	for i, name := range w.names {
		if used[name] {
			parts = append(parts, name+" AS ("+w.bodies[i]+")")
		}
	}
	if parts == nil {
		return statement
	}
	if at := with.FindStringSubmatchIndex(statement); at != nil {
		recursive := ""
		if at[2] >= 0 {
			recursive = "RECURSIVE "
		}
		return "WITH " + recursive + strings.Join(parts, ", ") + ", " + statement[at[1]:]
	}
	return "WITH " + strings.Join(parts, ", ") + " " + statement
}
