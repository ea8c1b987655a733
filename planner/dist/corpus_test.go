package dist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/dist/disttest"
	"manta/planner/kernel"
	"manta/planner/plan"
)

var long = flag.Bool("long", false, "run every statement under every setting, not under some that take turns")

// sqlCase is a statement of the corpus, and what is to be run before it.
type sqlCase struct{ id, setup, query string }

// readCases reads a file of statements; $DATA in it stands for a folder.
func readCases(t *testing.T, file, data string) []sqlCase {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []sqlCase
	for block := range strings.SplitSeq(strings.ReplaceAll(string(text), "$DATA", data), "\n;;\n") {
		head, body, ok := strings.Cut(strings.TrimSpace(block), "\n")
		if !ok {
			continue
		}
		c := sqlCase{id: strings.TrimPrefix(head, "-- "), query: body}
		if setup, query, ok := strings.Cut(body, "\n::\n"); ok {
			c.setup, c.query = setup, query
		}
		out = append(out, c)
	}
	return out
}

// corpusRig is a rig beside a DuckDB that has the same tables and answers in one process.
type corpusRig struct {
	*disttest.Rig
	oracle  *kernel.Conn
	dir     string
	tables  int
	mutate  bool
	mutants disttest.Tally
}

func newCorpusRig(t *testing.T) *corpusRig {
	r := &corpusRig{Rig: disttest.New(t), dir: t.TempDir()}
	db, err := kernel.Open(kernel.Config{LosslessArrow: true})
	require.NoError(t, err)
	r.oracle, err = db.Connect()
	require.NoError(t, err)
	require.NoError(t, r.oracle.Exec(context.Background(), kernel.NoRangeMergeJoin))
	t.Cleanup(func() {
		r.oracle.Close()
		require.NoError(t, db.Close())
	})
	return r
}

// setup runs statements on both sides, and makes Parquet files of the tables that they create.
func (r *corpusRig) setup(sql string, files int) {
	ctx := context.Background()
	for statement := range strings.SplitSeq(sql, "; ") {
		if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(statement)), "SET ") {
			r.Session += statement + ";"
		}
	}
	for _, c := range []*kernel.Conn{r.Planning, r.oracle} {
		require.NoError(r.T, c.Exec(ctx, sql), sql)
	}
	names, err := disttest.Ask(r.oracle, "SELECT database_name || '.' || schema_name || '.' || table_name FROM duckdb_tables() WHERE NOT temporary ORDER BY ALL")
	require.NoError(r.T, err)
	for _, name := range names {
		r.toParquet(name, files)
	}
}

// toParquet puts a view over files in the place of a table. What Parquet has no type for is stored as text.
func (r *corpusRig) toParquet(name string, files int) {
	ctx := context.Background()
	columns, err := r.oracle.Describe(ctx, "FROM "+name)
	require.NoError(r.T, err)
	var store, load []string
	for _, c := range columns {
		from, to := plan.Ident(c.Name), plan.Ident(c.Name)
		switch {
		case strings.HasPrefix(c.Type, "UNION"):
			from, to = "union_extract("+from+", 'num')", "CAST(union_value(num := "+to+") AS "+c.Type+")"
		case slices.Contains([]string{"HUGEINT", "UHUGEINT", "BIT", "TIMESTAMP_S", "TIMESTAMP_MS"}, c.Type):
			from, to = "CAST("+from+" AS VARCHAR)", "CAST("+to+" AS "+c.Type+")"
		default:
			to = "CAST(" + to + " AS " + c.Type + ")"
		}
		store = append(store, from+" AS "+plan.Ident(c.Name))
		load = append(load, to+" AS "+plan.Ident(c.Name))
	}
	rows, err := disttest.Ask(r.oracle, "SELECT count(*) FROM "+name)
	require.NoError(r.T, err)
	var n int
	_, err = fmt.Sscan(rows[0], &n)
	require.NoError(r.T, err)
	r.tables++
	base := filepath.Join(r.dir, fmt.Sprintf("table-%d", r.tables))
	for i := range files {
		require.NoError(r.T, r.oracle.Exec(ctx, fmt.Sprintf("COPY (SELECT %s FROM %s WHERE rowid >= %d AND rowid < %d) TO %s (FORMAT parquet, ROW_GROUP_SIZE 2048)",
			strings.Join(store, ", "), name, n*i/files, n*(i+1)/files, plan.Literal(fmt.Sprintf("%s-%d.parquet", base, i)))))
	}
	view := "CREATE VIEW " + name + " AS SELECT " + strings.Join(load, ", ") + " FROM read_parquet(" + plan.Literal(base+"-*.parquet") + ")"
	for _, c := range []*kernel.Conn{r.Planning, r.oracle} {
		require.NoError(r.T, c.Exec(ctx, "DROP TABLE "+name))
		require.NoError(r.T, c.Exec(ctx, view))
	}
}

// outcome runs a statement under one setting: "pass", or a word for what happened and a text about it.
func (r *corpusRig) outcome(sql string, o dist.Options) (word, about string) {
	want, failed := disttest.Ask(r.oracle, sql)
	return r.compare(sql, o, want, failed)
}

// compare is outcome for a statement that DuckDB answers with those rows, or with an error.
func (r *corpusRig) compare(sql string, o dist.Options, want []string, failed error) (word, about string) {
	p, files, err := r.TryPlace(sql, o)
	var unsupported *plan.UnsupportedError
	switch {
	case err == nil:
	case failed != nil:
		return "pass", ""
	case errors.As(err, &unsupported), errors.Is(err, kernel.ErrNotSerializable):
		return "whole", err.Error()
	default:
		return "unplanned", err.Error()
	}
	got, err := r.TryRun(p, files)
	if o.Partitions > 1 && r.mutate {
		r.mutants.Check(r.Rig, sql, p, files)
	}
	switch {
	case failed != nil && err == nil:
		return "answers", failed.Error()
	case failed != nil:
		return "pass", ""
	case err != nil:
		return "fails", err.Error()
	}
	sort.Strings(want)
	sort.Strings(got)
	if !slices.Equal(want, got) {
		return "differs", fmt.Sprintf("want %s\ngot  %s\n%s", short(want), short(got), dist.Explain(p, func(*dist.Edge) string { return "" }, nil))
	}
	return "pass", ""
}

func short(rows []string) string {
	text := strings.Join(rows, "; ")
	return fmt.Sprintf("%d rows: %s", len(rows), text[:min(len(text), 1500)])
}

// TestCorpus runs every statement of the corpus of package plan over files.
func TestCorpus(t *testing.T) {
	var settings []dist.Options
	for _, partitions := range []int{1, 2, 3, 16} {
		for _, broadcast := range []int64{0, 1 << 40} {
			settings = append(settings, dist.Options{Partitions: partitions, BroadcastBytes: broadcast})
		}
	}
	for k, files := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d files", files), func(t *testing.T) {
			r := newCorpusRig(t)
			r.mutate = true
			if *long {
				r.mutants.Most = 1000
			}
			r.setup(`CREATE SCHEMA h;
				CREATE TABLE h.customer AS SELECT i AS c_custkey FROM range(200) r(i);
				CREATE TABLE h.orders AS SELECT i AS o_orderkey, i % 211 AS o_custkey FROM range(600) r(i);
				CREATE TABLE h.lineitem AS SELECT i % 607 AS l_orderkey, (i * 7.31)::DECIMAL(15,2) AS l_extendedprice,
					(i % 11 / 100)::DECIMAL(15,2) AS l_discount, (i % 9 / 100)::DECIMAL(15,2) AS l_tax FROM range(3000) r(i)`, files)
			expected := readExpectations(t, "testdata/corpus.expect")
			cases := readCases(t, "../plan/testdata/corpus-a.txt", t.TempDir())
			cases = append(cases, readCases(t, "../plan/testdata/corpus-b.txt", t.TempDir())...)
			for i, c := range cases {
				if c.setup != "" {
					r.setup(c.setup, files)
				}
				want := "pass"
				if w, ok := expected[c.id]; ok {
					want = w
				}
				for j, o := range settings {
					if !*long && ((i+3*k+j)%8 != 0 || strings.HasPrefix(c.id, "b") && i%2 != k) {
						continue
					}
					word, about := r.outcome(c.query, o)
					if word != want {
						t.Errorf("%s: want %s, is %s (partitions %d, broadcast %d)\n%s\n%s", c.id, want, word, o.Partitions, o.BroadcastBytes, c.query, about)
					}
				}
			}
			r.mutants.Require(t, 50)
		})
	}
}

// readExpectations reads which statements do not simply pass: id, what happens instead, why.
func readExpectations(t *testing.T, file string) map[string]string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		require.GreaterOrEqual(t, len(fields), 3, line)
		out[fields[0]] = fields[1]
	}
	return out
}
