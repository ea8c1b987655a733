package tpc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"manta/planner/kernel"
)

// shared is a directory with the data of scale factor 0.01, for all tests.
var shared string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "tpc")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		shared = filepath.Join(dir, "data")
		if err := H.Generate(context.Background(), shared, 0.01, 2); err != nil {
			panic(err)
		}
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			println(err.Error())
			code = 1
		}
		return code
	}())
}

func baseline(t *testing.T, dir string) *DuckDB {
	t.Helper()
	d, err := H.OpenDuckDB(context.Background(), dir, 2, kernel.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func run(t *testing.T, d *DuckDB, sql string) *Result {
	t.Helper()
	r, err := d.Run(context.Background(), sql)
	require.NoError(t, err, sql)
	t.Cleanup(r.Release)
	return r
}

// The extension is loaded through assumptions about DuckDB's memory layout; this is the test that they hold.
func TestLayout(t *testing.T) {
	db, err := openGenerator(kernel.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.Connect()
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Exec(context.Background(), "CALL dbgen(sf = 0.01)"))
	for table, want := range map[string]int64{"region": 5, "nation": 25, "supplier": 100, "customer": 1500, "part": 2000, "partsupp": 8000, "orders": 15000, "lineitem": 60175} {
		n, err := count(context.Background(), c, table)
		require.NoError(t, err)
		require.Equal(t, want, n, table)
	}
}

func TestStepsGiveTheSameData(t *testing.T) {
	db, err := openGenerator(kernel.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.Connect()
	require.NoError(t, err)
	defer c.Close()
	for catalog, steps := range map[string]int{"one": 1, "three": 3} {
		require.NoError(t, c.Exec(context.Background(), "ATTACH ':memory:' AS "+catalog))
		require.NoError(t, H.generate(context.Background(), c, catalog, 0.01, steps))
	}
	for _, table := range H.Tables {
		for _, sql := range []string{"(FROM one.%s EXCEPT ALL FROM three.%s)", "(FROM three.%s EXCEPT ALL FROM one.%s)"} {
			n, err := count(context.Background(), c, strings.ReplaceAll(sql, "%s", table))
			require.NoError(t, err)
			require.Zero(t, n, table)
		}
	}
}

func TestOfficialAnswers(t *testing.T) {
	d := baseline(t, shared)
	queries, err := H.Queries()
	require.NoError(t, err)
	answers, err := H.Answers(0.01)
	require.NoError(t, err)
	for i, sql := range queries {
		require.NotEmpty(t, sql)
		require.NotEmpty(t, answers[i])
		r := run(t, d, sql)
		report, err := CompareAnswer(rulesH[i], answers[i], r)
		require.NoError(t, err, "query %d", i+1)
		require.Zero(t, report.Approximate)
		report, err = Compare(rulesH[i], r, run(t, d, sql))
		require.NoError(t, err, "query %d", i+1)
		require.EqualValues(t, r.Rows(), report.Rows)
	}
	_, err = H.Answers(0.5)
	require.ErrorIs(t, err, ErrNoAnswers)
	for _, sf := range []float64{0.1, 1} {
		answers, err := H.Answers(sf)
		require.NoError(t, err)
		require.Len(t, answers, H.NumQueries)
	}
}

func TestGenerateAgainIsFree(t *testing.T) {
	before, err := os.Stat(filepath.Join(shared, "lineitem", "lineitem-0.parquet"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, H.Generate(ctx, shared, 0.01, 2))
	after, err := os.Stat(filepath.Join(shared, "lineitem", "lineitem-0.parquet"))
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	sf, ok := H.ScaleFactor(shared)
	require.True(t, ok)
	require.Equal(t, 0.01, sf)
	tables, err := H.TablesIn(shared)
	require.NoError(t, err)
	require.Len(t, tables, 8)
	files, err := filepath.Glob(tables["lineitem"])
	require.NoError(t, err)
	require.Len(t, files, 2)
	files, err = filepath.Glob(tables["nation"])
	require.NoError(t, err)
	require.Len(t, files, 1)
}

func TestGenerateIsWholeOrNothing(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "deep", "data")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, H.Generate(ctx, dir, 0.01, 1), context.Canceled)
	entries, err := os.ReadDir(filepath.Join(parent, "deep"))
	require.NoError(t, err)
	require.Empty(t, entries)

	require.NoError(t, H.Generate(context.Background(), dir, 0.001, 1))
	require.NoError(t, H.Generate(context.Background(), dir, 0.002, 1)) // replaces what an earlier run made
	sf, _ := H.ScaleFactor(dir)
	require.Equal(t, 0.002, sf)
	entries, err = os.ReadDir(filepath.Join(parent, "deep"))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestGenerateTouchesNothingElse(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("mine"), 0o600))
	require.ErrorContains(t, H.Generate(context.Background(), dir, 0.01, 1), "not made by this generator")
	_, err := os.Stat(filepath.Join(dir, "letter.txt"))
	require.NoError(t, err)
	require.Error(t, H.Generate(context.Background(), filepath.Join(dir, "letter.txt", "x"), 0.01, 1))
	require.Error(t, H.Generate(context.Background(), t.TempDir(), -1, 1))
	require.Error(t, H.Generate(context.Background(), t.TempDir(), 1, 0))
	_, err = H.TablesIn(dir)
	require.ErrorIs(t, err, ErrNoData)
	_, err = H.OpenDuckDB(context.Background(), dir, 1, kernel.Config{})
	require.ErrorIs(t, err, ErrNoData)
	_, ok := H.ScaleFactor(dir)
	require.False(t, ok)
}

func TestGenerateTwiceAtOnce(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "data")
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		wg.Go(func() { errs[i] = H.Generate(context.Background(), dir, 0.001, 1) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	entries, err := os.ReadDir(parent)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.EqualValues(t, 1500, int64Of(t, run(t, baseline(t, dir), "SELECT count(*) FROM orders")))
}

// Of two processes that finish at the same time, the second finds the directory made.
func TestPublishTwice(t *testing.T) {
	parent := t.TempDir()
	dir, want := filepath.Join(parent, "data"), marker{Format: formatVersion, ScaleFactor: 0.01, Files: 2}
	for _, name := range []string{"first", "second"} {
		data := filepath.Join(parent, name)
		require.NoError(t, os.CopyFS(data, os.DirFS(shared)))
		require.NoError(t, H.publish(data, filepath.Join(parent, "old"), dir, want))
		done, err := H.holds(dir, want)
		require.NoError(t, err)
		require.True(t, done)
	}
	require.ErrorContains(t, H.publish(filepath.Join(parent, "none"), filepath.Join(parent, "old"), filepath.Join(parent, "x"), want), "tpc:")
}

func TestDefaultDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/c")
	dir, err := H.DefaultDir(0.1)
	require.NoError(t, err)
	require.Equal(t, "tpch-sf0.1", filepath.Base(dir))
	dir, _ = H.DefaultDir(1)
	require.Equal(t, "tpch-sf1", filepath.Base(dir))
}

func TestBaselineReportsErrors(t *testing.T) {
	d := baseline(t, shared)
	_, err := d.Run(context.Background(), "SELECT nope FROM nation")
	require.ErrorContains(t, err, "nope")
	_, err = d.Run(context.Background(), "SELECT (n_name || 'x')::INT FROM nation")
	require.ErrorContains(t, err, "Conversion")
}

// TPC-DS has another generator and no written rules: its order keys come from DuckDB's plan.
func TestDS(t *testing.T) {
	ctx := context.Background()
	require.ErrorContains(t, DS.Generate(ctx, filepath.Join(t.TempDir(), "data"), 0.001, 2), "at least 0.01") // dsdgen would never end
	dir := sharedDS(t)
	tables, err := DS.TablesIn(dir)
	require.NoError(t, err)
	require.Len(t, tables, 24)
	queries, err := DS.Queries()
	require.NoError(t, err)
	require.Len(t, queries, 99)
	_, err = DS.Answers(1)
	require.ErrorIs(t, err, ErrNoAnswers)
	d, err := DS.OpenDuckDB(ctx, dir, 2, kernel.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	for n, order := range map[int][]int{1: {0}, 7: {0}, 13: nil, 3: {0, 3, 1}, 98: {2, 3, 0, 1, 6}} {
		rule, err := d.Rule(ctx, n, queries[n-1])
		require.NoError(t, err)
		require.Equal(t, order, rule.Order, "query %d", n)
	}
	_, err = d.Rule(ctx, 1, "SELECT nothing")
	require.ErrorContains(t, err, "query 1")
}
