package planner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/kernel"
)

// TestFileTraps reads files whose names or columns look like something else to the reader of a part of them.
func TestFileTraps(t *testing.T) {
	o := newOracle(t)
	dir := t.TempDir()
	write := func(name, sql string) {
		path := kernel.QuoteString(filepath.Join(dir, name))
		require.NoError(t, o.conn.Exec(context.Background(), "COPY ("+sql+") TO "+path+" (FORMAT parquet, ROW_GROUP_SIZE 2048)"))
	}
	write("rows.parquet", "SELECT i * 3 AS file_row_number, i AS v FROM range(10000) r(i)")
	write("a1.parquet", "SELECT 1 AS who, i FROM range(4000) r(i)")
	write("a[1].parquet", "SELECT 2 AS who, i FROM range(6000) r(i)")
	write("a?.parquet", "SELECT 3 AS who, i FROM range(3000) r(i)")
	c := cluster(t, Config{Nodes: 2, CPUs: 2})
	zero := int64(0)
	for _, sql := range []string{
		"SELECT count(*), sum(v), sum(file_row_number) FROM '" + dir + "/rows.parquet' WHERE v >= 0",
		"SELECT who, count(*), sum(i) FROM '" + dir + "/a*.parquet' WHERE i >= 0 GROUP BY who",
	} {
		got, _ := query(t, c, sql, Options{ReplicateBytes: &zero})
		requireSame(t, o.answer(t, sql), got, false, sql)
	}
}

// TestTimeZone has nodes whose processes are in several time zones, in effect: each task says which one holds.
func TestTimeZone(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1})
	zero := int64(0)
	sql := "SELECT (TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_hours(k % 24))::DATE::VARCHAR AS on_day, count(*) FROM big GROUP BY ALL"
	require.NoError(t, o.conn.Exec(context.Background(), "SET TimeZone = 'UTC'"))
	for i, n := range c.Embedded().Nodes {
		conn, err := n.sql.exec.Connect()
		require.NoError(t, err)
		require.NoError(t, conn.Exec(context.Background(), "SET GLOBAL TimeZone = '"+[]string{"Asia/Tokyo", "America/New_York"}[i]+"'"))
		conn.Close()
	}
	db, err := c.Embedded().Nodes[0].sql.plannerDB()
	require.NoError(t, err)
	conn, err := db.Connect()
	require.NoError(t, err)
	require.NoError(t, conn.Exec(context.Background(), "SET GLOBAL TimeZone = 'UTC'"))
	conn.Close()
	got, st := query(t, c, sql, Options{Tables: o.tables, ReplicateBytes: &zero})
	require.True(t, st.Distributed, st.Fallback)
	requireSame(t, o.answer(t, sql), got, false, sql)
}

// TestEffects has SELECTs that would write files or change a node.
func TestEffects(t *testing.T) {
	c := cluster(t, Config{})
	folder := filepath.Join(t.TempDir(), "logs")
	for _, sql := range []string{
		"FROM enable_logging(storage = 'file', storage_path = " + kernel.QuoteString(folder) + ")",
		"SELECT * FROM system.main.enable_profiling(save_location = " + kernel.QuoteString(folder) + ")",
		"SELECT 1 WHERE EXISTS (FROM query('FROM truncate_duckdb_logs()'))",
		"WITH c AS MATERIALIZED (SELECT count(*) FROM Force_Checkpoint()) SELECT * FROM c",
	} {
		_, err := c.Query(context.Background(), sql, Options{})
		require.ErrorContains(t, err, "a query may only read", sql)
	}
	require.NoDirExists(t, folder)
}

func TestTooManyTasks(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{})
	zero := int64(0)
	sql := "SELECT count(*) FROM big a JOIN big b USING (id) JOIN big c ON c.k = b.k"
	_, err := c.Query(context.Background(), sql, Options{
		Tables: o.tables, Partitions: 1000, ReplicateBytes: &zero, BroadcastBytes: &zero,
	})
	require.ErrorContains(t, err, "use fewer partitions")
}

// TestSpillSweep starts a node over the data folder of one that was killed while it spilled.
func TestSpillSweep(t *testing.T) {
	dir := t.TempDir()
	left := []string{"duckdb/duckdb_temp_storage_DEFAULT-0.tmp", "duckdb/planning/duckdb_temp_block-7.block"}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "duckdb", "planning"), 0o700))
	for _, name := range left {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("old"), 0o600))
	}
	n, err := StartNode(context.Background(), NodeConfig{DataDir: dir, CPUs: 1})
	require.NoError(t, err)
	defer n.Close()
	for _, name := range left {
		require.NoFileExists(t, filepath.Join(dir, name))
	}
}

// TestTasksOutOfStep has a task that finds nothing to join in one input and goes on to the next one, while its
// neighbour reads the first. Neither may wait for the other for ever, however large the inputs.
func TestTasksOutOfStep(t *testing.T) {
	o := newOracle(t)
	dir := t.TempDir()
	write := func(name, sql string) {
		path := kernel.QuoteString(filepath.Join(dir, name+".parquet"))
		require.NoError(t, o.conn.Exec(context.Background(), "COPY ("+sql+") TO "+path+" (FORMAT parquet, ROW_GROUP_SIZE 50000)"))
	}
	wide := "SELECT i AS k, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) || md5((i + 2)::VARCHAR) AS s FROM range(500000) r(i)"
	write("a", wide)
	write("b", "SELECT i AS k FROM range(0, 500000, 500) r(i) WHERE hash(i) % 2 = 0") // all of them in one partition
	write("c", wide)
	write("d", "SELECT i AS k FROM range(0, 500000, 3) r(i)")
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: minMemory})
	zero := int64(0)
	from := func(name string) string { return kernel.QuoteString(filepath.Join(dir, name+".parquet")) + " " + name }
	sql := "SELECT sum(length(s)), count(*) FROM (SELECT s FROM " + from("a") + " JOIN " + from("b") +
		" USING (k) UNION ALL SELECT s FROM " + from("c") + " JOIN " + from("d") + " USING (k))"
	for _, mode := range []string{"streaming", "auto"} {
		got, st := query(t, c, sql, Options{Shuffle: mode, Partitions: 2, ReplicateBytes: &zero, BroadcastBytes: &zero})
		require.Positive(t, st.Exchange.BytesSpilled)
		requireSame(t, o.answer(t, sql), got, false, mode)
	}
}
