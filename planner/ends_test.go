package planner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/planner/kernel"
	"manta/planner/wire"
	"manta/shuffle"
)

// endless is a query that would run for hours, over tables of the oracle.
const endless = "SELECT count(*) FROM big a, big b, big c WHERE a.id + b.id + c.id = -1"

func TestFallbackAnswers(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return "'" + path + "'"
	}
	csv := write("t.csv", "a,b\n1,x\n2,\n3,\"y, z\"\n")
	json := write("t.json", `{"a": 1, "b": [1, 2]}`+"\n"+`{"a": 2, "c": {"d": null}}`+"\n")
	for _, sql := range []string{
		"SELECT * FROM " + csv,
		"SELECT count(*), sum(a) FROM " + csv + " JOIN dim ON a = k",
		"SELECT a, b FROM " + json,
		"WITH RECURSIVE w(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM w, ship WHERE i < 4) SELECT i, count(*) FROM w GROUP BY i",
		"SELECT '0101'::BIT AS b, row(1, 'a') AS r",
		"SELECT NULL AS n, [] AS l",
		"SELECT i, union_value(k := i) AS u FROM range(3) t(i)",
		"SELECT 1 AS a, 2 AS a",
	} {
		want := o.answer(t, sql)
		got, stats := query(t, c, sql, Options{Tables: o.tables})
		requireSame(t, want, got, false, sql)
		require.Equal(t, stats.Fallback == "", stats.Distributed, sql)
	}
	_, stats := query(t, c, "SELECT * FROM "+csv, Options{})
	require.False(t, stats.Distributed)
	require.NotEmpty(t, stats.Fallback)
	text, err := c.Explain(context.Background(), "SELECT * FROM "+csv, Options{})
	require.NoError(t, err)
	require.Contains(t, text, "Not distributed")
}

// Every error is one line that says what is wrong; the cluster stays as it was.
func TestErrorsAreOneLine(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	bad := filepath.Join(t.TempDir(), "bad.parquet")
	require.NoError(t, os.WriteFile(bad, []byte("this is no Parquet file, however long it may be"), 0o600))
	for _, tt := range []struct {
		sql     string
		options Options
		want    string
	}{
		{"SELEC 1", Options{}, `syntax error at or near "SELEC" (line 1, column 1)`},
		{"SELECT * FROM nowhere", Options{}, "nowhere does not exist"},
		{"SELECT nothing_such FROM big", Options{}, `"nothing_such" not found`},
		{"SELECT * FROM '/nowhere/*.parquet'", Options{}, "No files found"},
		{"SELECT * FROM t", Options{Tables: map[string]string{"t": bad}}, "bad.parquet"},
		{"SELECT * FROM t", Options{Tables: map[string]string{"t": "x", "T": "y"}}, "one name"},
		{"SELECT 1", Options{Shuffle: "carrier-pigeon"}, `unknown exchange mode "carrier-pigeon"`},
		{"SELECT 1", Options{Partitions: 1<<32 + 1}, "at most 1024"},
		{"SELECT '\xff'", Options{}, "not UTF-8"},
		{"", Options{}, "empty"},
		{"CREATE TABLE x (i INT)", Options{}, "only SELECT"},
		{"DROP TABLE nowhere", Options{}, "only SELECT"},
		{"INSERT INTO nowhere VALUES (1)", Options{}, "only SELECT"},
		{";", Options{}, "empty"},
		{"SELECT * FROM '" + bad + "'", Options{}, "no Parquet file"},
		{"COPY (SELECT 1) TO '/tmp/never.parquet'", Options{}, "only SELECT"},
		{"WITH RECURSIVE m(x, y) AS (SELECT id, 0 FROM ship UNION SELECT m.x, m.y + 1 FROM m ASOF JOIN dim ON m.x = dim.c AND m.y >= dim.k WHERE m.y < 3) SELECT * FROM m",
			Options{}, "AsOf joins are not supported in recursive CTEs yet"},
		{"SELECT 1; SELECT 2", Options{}, "2 statements"},
		{"SELECT CASE WHEN id = 6100 THEN error('it broke here') ELSE 'fine' END FROM big", Options{}, "it broke here"},
		{"SELECT k, sum(CAST(s AS INTEGER)) FROM big GROUP BY k", Options{}, "Could not convert string 'name"},
		{"SELECT (SELECT k FROM big) FROM dim", Options{}, "More than one row"},
	} {
		if tt.options.Tables == nil {
			tt.options.Tables = o.tables
		}
		for _, limit := range []*int64{nil, bytesOf(0)} {
			tt.options.ReplicateBytes, tt.options.BroadcastBytes = limit, limit
			err := fails(c, tt.sql, tt.options)
			require.ErrorContains(t, err, tt.want, tt.sql)
			require.NotContains(t, err.Error(), "\n", tt.sql)
			require.NotContains(t, err.Error(), "column c", tt.sql) // a fragment's name
		}
	}
	got, _ := query(t, c, "SELECT count(*) FROM ship", Options{Tables: o.tables})
	require.Equal(t, []string{"3"}, got.rows)
}

// An error says where in the query it is, also when a task met it in a fragment.
func TestErrorsPointIntoTheQuery(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	for _, tt := range []struct{ sql, want, quote string }{
		{"SELECT k,\n  nothing_such\nFROM big", `Referenced column "nothing_such" not found`, "LINE 2:   nothing_such\n          ^"},
		{"SELECT 'ä', 1 +", "syntax error at end of input", "LINE 1: SELECT 'ä', 1 +\n                       ^"},
		{"SELECT 'ä', nothing_such FROM big", "nothing_such", "LINE 1: SELECT 'ä', nothing_such FROM big\n                    ^"},
		{"SELECT id,\n\tCAST(s AS INTEGER)\nFROM big", "Conversion Error: Could not convert string 'name", "LINE 2:  CAST(s AS INTEGER)\n         ^"},
		{"SELECT k, sum(s::DATE - day) FROM big GROUP BY k", "Conversion Error: invalid date field format: \"name", "LINE 1: SELECT k, sum(s::DATE - day) FROM big GROUP BY k\n                       ^"},
		{"SELECT k, count(*) FROM big WHERE (d * 1000)::TINYINT > 3 GROUP BY k", "Conversion Error", "LINE 1: SELECT k, count(*) FROM big WHERE (d * 1000)::TINYINT > 3 GROUP BY k\n                                                    ^"},
		{"SELECT max(9223372036854775807 + id) FROM big", "Out of Range Error: Overflow in addition", "LINE 1: SELECT max(9223372036854775807 + id) FROM big\n                                       ^"},
		{"SELECT k,\n  sum(k - 5 + sqrt(k - 40)) FROM big WHERE id - 3 > k GROUP BY k", "cannot take square root", "LINE 2:   sum(k - 5 + sqrt(k - 40)) FROM big WHERE id - 3 > k GROUP BY k\n                      ^"},
		{"SELECT sum(k * 60000000), max(d * 2), count(id * 3) FROM big", "Overflow in multiplication of INT32", "LINE 1: SELECT sum(k * 60000000), max(d * 2), count(id * 3) FROM big\n                     ^"},
		{"SELECT sum(k * 60000000) + sum(k * 70000000) FROM big", "Overflow in multiplication of INT32", ""},
		{"SELECT max(k * 60000000), max(day + INTERVAL 1 DAY * k) FROM big", "Overflow in multiplication of INT32", ""},
	} {
		err := fails(c, tt.sql, Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
		var query *QueryError
		require.ErrorAs(t, err, &query, tt.sql)
		require.Contains(t, query.Message, tt.want)
		require.Equal(t, tt.quote, query.Quote, "%s: %s", tt.sql, query.Message)
		require.NotContains(t, query.Message, "\x1f")
		require.False(t, strings.HasPrefix(query.Message, "task "), query.Message)
	}
}

// What a task says of the one that it reads from is about that one.
func TestErrorOfAProducer(t *testing.T) {
	inner := fmt.Errorf("%w: task 0100 on node b: %w: task 0200 on node c: Out of Range Error: too much", shuffle.ErrProducer, shuffle.ErrProducer)
	require.Equal(t, "Out of Range Error: too much (on node c)", message(inner, ""))
	require.Equal(t, "Out of Range Error: too much (on node c)", message(&actors.TaskError{Name: "stage 1 task 0", Node: "a", Err: inner}, ""))
	require.Equal(t, "it broke (stage 1 task 0 on node a)", message(&actors.TaskError{Name: "stage 1 task 0", Node: "a", Err: errors.New("it broke")}, ""))
}

func TestQuoteOfALongLine(t *testing.T) {
	long := strings.Repeat("x", 500)
	line, column, quote, ok := quoted("a\n"+long, 2+301)
	require.True(t, ok)
	require.Equal(t, []int{2, 301}, []int{line, column})
	text, caret, _ := strings.Cut(quote, "\n")
	require.Less(t, len(text), 130)
	require.Equal(t, byte('x'), text[strings.IndexByte(caret, '^')])
	_, _, _, ok = quoted("SELECT", 8)
	require.False(t, ok)
	_, _, _, ok = quoted("SELECT", 0)
	require.False(t, ok)
}

// Of tasks that failed because of one another the first is told, and what the query says of it stays.
func TestErrorsOfProducersInRestarts(t *testing.T) {
	const b, c = "task stage 1 task 0 on node a: shuffle: producer failed: task j/0 on node b: ", "shuffle: producer failed: task j/1 on node c: "
	for text, want := range map[string]string{
		b + "boom":     "boom (on node b)",
		b + c + "boom": "boom (on node c)",
		"planner: the query is given up after 3 restarts: " + b + c + "boom": "planner: the query is given up after 3 restarts: boom (on node c)",
		b + "boom" + restartAfter + c + "bang)":                              "boom (in a restart, after: " + c + "bang) (on node b)",
		"boom" + restartAfter + c + "bang)":                                  "boom (in a restart, after: bang)",
	} {
		require.Equal(t, want, message(errors.New(text), ""))
	}
}

// Advice that DuckDB gives is kept, but for that on memory.
func TestAdvice(t *testing.T) {
	require.Equal(t, "Binder Error: schema mismatch; Possible solutions: union_by_name=True",
		message(errors.New("Binder Error: schema mismatch\nPossible solutions: union_by_name=True"), ""))
	require.Equal(t, "Out of Memory Error: full; give the nodes more memory, or use fewer partitions",
		message(errors.New("Out of Memory Error: full\nPossible solutions:\n* SET threads"), ""))
	require.Equal(t, "Out of Memory Error: failed to offload data block of size 128.0 KiB (0 bytes/0 bytes used)"+
		"; the disk of the node's data folder is full or its --max-spill is reached; give the node more of either, or more memory",
		message(errors.New("Out of Memory Error: failed to offload data block of size 128.0 KiB (0 bytes/0 bytes used).\n"+
			"This limit was set by the 'max_temp_directory_size' setting.\nBy default, …"), ""))
}

// What a query may spill has a limit of its own, however the query runs.
func TestMaxSpill(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20, MaxSpill: 1 << 20})
	const sql = "SELECT count(*) FROM (SELECT md5(i::VARCHAR) || i AS k, count(*) FROM range(%d) t(i), dim WHERE dim.k = 2 GROUP BY 1)"
	for _, how := range []string{"auto", "always"} {
		require.ErrorContains(t, fails(c, fmt.Sprintf(sql, 3_000_000), Options{Tables: o.tables, Distribute: how}), "--max-spill")
		got, stats := query(t, c, fmt.Sprintf(sql, 1000), Options{Tables: o.tables, Distribute: how})
		require.Equal(t, []string{"1000"}, got.rows)
		require.Equal(t, how == "always", stats.Distributed)
	}
}

// fails runs a query to its error.
func fails(c *Client, sql string, o Options) error {
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	r, err := c.Query(ctx, sql, o)
	if err != nil {
		return err
	}
	defer r.Release()
	for r.Next() {
	}
	return r.Err()
}

func TestCancelEndsEverything(t *testing.T) {
	o := newOracle(t)
	for _, mode := range []string{"streaming", "object-store", "disk", "concat"} {
		t.Run(mode, func(t *testing.T) {
			c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
			r, err := c.Query(context.Background(), endless, Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0)})
			require.NoError(t, err)
			defer r.Release()
			time.AfterFunc(50*time.Millisecond, r.Cancel)
			start := time.Now()
			for r.Next() {
			}
			require.ErrorIs(t, r.Err(), ErrCancelled)
			require.Less(t, time.Since(start), time.Minute) // it would run for ever
			requireEmpty(t, c)
			require.Eventually(t, func() bool {
				jobs, err := c.Jobs(context.Background())
				return err == nil && len(jobs) == 1 && jobs[0].State == actors.JobStopped && jobs[0].Error == "the client left"
			}, time.Minute, 10*time.Millisecond)
		})
	}
}

func TestJobCanBeStopped(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	r, err := c.Query(context.Background(), endless, Options{Tables: o.tables})
	require.NoError(t, err)
	defer r.Release()
	require.NoError(t, c.StopJob(context.Background(), actors.JobID(r.Job()), "enough of it"))
	for r.Next() {
	}
	require.ErrorContains(t, r.Err(), "enough of it")
}

func TestReleaseBeforeTheEnd(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	r, err := c.Query(context.Background(), "SELECT a.id, b.s FROM big a, big b", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	require.True(t, r.Next())
	r.Release()
	requireEmpty(t, c)
}

// A LIMIT ends the stages below it: they would have made 42 million rows.
func TestLimitClosesProducers(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	for _, mode := range []string{"streaming", "object-store"} {
		got, stats := query(t, c, "SELECT * FROM (SELECT a.id, b.id FROM big a, big b) LIMIT 10", Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0)})
		require.Len(t, got.rows, 10)
		for _, s := range stats.StageTasks {
			for _, task := range s.Tasks {
				require.Less(t, task.RowsOut, int64(1_000_000))
			}
		}
	}
}

// Twenty copies of one query at once: all right, none starved, no slot lost.
func TestManyQueriesAtOnce(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	sql := "SELECT n, count(*), sum(d) FROM big JOIN dim ON big.k = dim.k GROUP BY n"
	want := o.answer(t, sql)
	var all sync.WaitGroup
	answers := make([]answer, 20)
	for i := range answers {
		all.Go(func() {
			answers[i], _ = query(t, c, sql, Options{Tables: o.tables, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
		})
	}
	all.Wait()
	for i, got := range answers {
		requireSame(t, want, got, false, fmt.Sprint("copy ", i))
	}
}

// What does not fit into a task's memory goes to disk, and comes back.
func TestLittleMemory(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: minMemory})
	sql := "SELECT count(*), sum(n) FROM (SELECT a.id, b.k, count(*) AS n FROM big a JOIN big b ON a.k = b.k GROUP BY ALL)"
	want := o.answer(t, sql)
	for _, mode := range []string{"streaming", "object-store", "disk"} {
		got, stats := query(t, c, sql, Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
		requireSame(t, want, got, false, mode)
		require.LessOrEqual(t, stats.PeakExchange, minMemory/100*exchangeShare)
	}
}

func TestProgressAndStats(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	ctx := context.Background()
	r, err := c.Query(ctx, "SELECT k, count(*) FROM big GROUP BY k", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	defer r.Release()
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	require.Equal(t, int64(97), rows)
	done, total := r.Progress()
	require.Positive(t, total)
	require.LessOrEqual(t, done, total)
	s := r.Stats()
	require.Equal(t, 2, s.Stages)
	require.Equal(t, 4, s.Tasks)
	require.Positive(t, s.Exchange.Rows)
	require.Positive(t, s.Exchange.Bytes)
	nodes := map[string]bool{}
	for _, stage := range s.StageTasks {
		for _, task := range stage.Tasks {
			nodes[task.Node] = true
		}
	}
	require.Len(t, nodes, 2, "tasks run on both nodes")

	text, err := c.ExplainAnalyze(ctx, "SELECT k, count(*) FROM big GROUP BY k", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	for node := range nodes {
		require.Contains(t, text, node)
	}
	require.Contains(t, text, "rows out")
	require.Regexp(t, `edge \d+: [1-9]\d* rows arrived, in the largest partition 1\.\d times the average`, text)
}

func TestPinnedFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("abc"), 0o600))
	info, err := os.Stat(path)
	require.NoError(t, err)
	pin := &wire.FilePin{Path: path, Size: info.Size(), ModifiedNanos: info.ModTime().UnixNano()}
	require.NoError(t, checkPins([]*wire.FilePin{pin}))
	require.NoError(t, os.WriteFile(path, []byte("abcd"), 0o600))
	require.ErrorContains(t, checkPins([]*wire.FilePin{pin}), "changed after the query was planned")
	require.NoError(t, os.Remove(path))
	require.ErrorContains(t, checkPins([]*wire.FilePin{pin}), path)
}

// A file that is replaced is read anew by the next query.
func TestReplacedFile(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	path := filepath.Join(t.TempDir(), "t.parquet")
	for n := range 3 {
		tmp := path + ".new"
		require.NoError(t, o.conn.Exec(context.Background(), fmt.Sprintf("COPY (SELECT i, %d AS n FROM range(%d) r(i)) TO '%s' (FORMAT parquet)", n, 5000*(n+1), tmp)))
		require.NoError(t, os.Rename(tmp, path))
		got, _ := query(t, c, "SELECT count(*), min(n), max(n) FROM t", Options{Tables: map[string]string{"t": path}, ReplicateBytes: bytesOf(0)})
		require.Equal(t, []string{fmt.Sprintf("%d|%d|%d", 5000*(n+1), n, n)}, got.rows)
	}
}

// Names of files are kept in memory of their own: a name that lies in a result's
// memory changes when that is freed, and with it the file.
func TestFootersKeepTheirNames(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 1, CPUs: 2, Memory: 256 << 20})
	want := o.answer(t, "SELECT count(*) FROM big")
	for range 50 {
		got, _ := query(t, c, "SELECT count(*) FROM (SELECT id, d, s FROM big WHERE d >= 0)", Options{Tables: o.tables, ReplicateBytes: bytesOf(0), Partitions: 5})
		require.Equal(t, want.rows, got.rows)
	}
	f := &c.Embedded().Nodes[0].sql.footers
	f.mu.Lock()
	defer f.mu.Unlock()
	for path, file := range f.known {
		require.Equal(t, strings.Clone(path), file.Path)
	}
}

func TestNodeNeedsSense(t *testing.T) {
	for _, tt := range []struct {
		config NodeConfig
		want   string
	}{
		{NodeConfig{Memory: 1 << 20}, "at least 128 MiB"},
		{NodeConfig{CPUs: -1}, "at least 1 CPU"},
		{NodeConfig{CPUs: 100_000}, "at most 1024 CPUs"},
		{NodeConfig{Listen: "0.0.0.0:0", Token: "secret"}, "a token of 6 characters"},
		{NodeConfig{Listen: "0.0.0.0:0", Head: "127.0.0.1:1"}, "the head's token"},
		{NodeConfig{Head: "127.0.0.1:1"}, "127.0.0.1:1"},
	} {
		n, err := StartNode(context.Background(), tt.config)
		require.ErrorContains(t, err, tt.want)
		require.Nil(t, n)
	}
}

func TestWorkerOfAnotherVersion(t *testing.T) {
	head, err := StartNode(context.Background(), NodeConfig{CPUs: 1, Hub: actors.NewHub()})
	require.NoError(t, err)
	defer head.Close()
	_, err = StartNode(context.Background(), NodeConfig{CPUs: 1, Head: head.Address(), Version: "0.0.1", Hub: actors.NewHub()})
	require.True(t, errors.Is(err, actors.ErrVersion), "%v", err)
	require.ErrorContains(t, err, "0.0.1")
}

// A query that needs more than the nodes have ends with advice that can be followed.
func TestTooLittleMemory(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: minMemory})
	err := fails(c, "SELECT length(string_agg(s, repeat('y', 100000))) FROM big", Options{Tables: o.tables})
	require.ErrorContains(t, err, "Out of Memory")
	require.ErrorContains(t, err, "give the nodes more memory")
	require.NotContains(t, err.Error(), "SET ")
}

// An error of DuckDB's about memory keeps its text and has the runtime's kind.
func TestMemoryKind(t *testing.T) {
	duck := &kernel.Error{Type: "Out of Memory", Message: "could not allocate block of size 256.0 KiB"}
	err := memoryKind(fmt.Errorf("fragment: %w", duck))
	require.ErrorIs(t, err, actors.ErrOutOfMemory)
	require.ErrorIs(t, err, duck)
	require.Equal(t, "fragment: "+duck.Error(), err.Error())
	other := &kernel.Error{Type: "Binder", Message: "no such column"}
	require.NotErrorIs(t, memoryKind(other), actors.ErrOutOfMemory)
}

// What a killed process left in its spill folder goes at the next start there.
func TestSpillFolderIsSwept(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "duckdb", "duckdb_temp_storage_DEFAULT-0.tmp")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o700))
	require.NoError(t, os.WriteFile(old, []byte("left"), 0o600))
	n, err := StartNode(context.Background(), NodeConfig{CPUs: 1, DataDir: dir, Hub: actors.NewHub()})
	require.NoError(t, err)
	require.NoFileExists(t, old)
	require.NoError(t, n.Close())
}

// Clients that do not read hold up nobody else, however many they are.
func TestIdleClientsHoldUpNobody(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	for range 6 {
		ctx, cancel := context.WithTimeout(context.Background(), queryTime)
		defer cancel()
		// More rows than all buffers on the way hold.
		r, err := c.Query(ctx, "SELECT a.*, b.* FROM big a, big b", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
		require.NoError(t, err)
		defer r.Release()
	}
	got, _ := query(t, c, "SELECT count(*) FROM ship", Options{Tables: o.tables})
	require.Equal(t, []string{"3"}, got.rows)
}

// A row may be larger than any message.
func TestHugeRow(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 2 << 30})
	got, _ := query(t, c, "SELECT length(x) AS n, x[1:3] AS x FROM (SELECT string_agg(repeat('abc', 5000), '') AS x FROM big)", Options{Tables: o.tables})
	require.Equal(t, []string{"97500000|abc"}, got.rows)
	got, _ = query(t, c, "SELECT string_agg(repeat('abc', 5000), '') AS x FROM big", Options{Tables: o.tables})
	require.Len(t, got.rows, 1)
	require.Len(t, got.rows[0], 97_500_000)
}

// Keys that are functions of an ENUM are hashed as what they are.
func TestEnumKeys(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	const e = "CASE WHEN k % 2 = 0 THEN 'b' ELSE 'a' END::ENUM('b', 'a')"
	sql := "SELECT x.e, count(*) FROM (SELECT " + e + " AS e, id FROM big WHERE id < 300) x JOIN (SELECT " + e + " AS e, id FROM big WHERE id < 300) y" +
		" ON enum_code(x.e) = enum_code(y.e) AND x.id = y.id GROUP BY x.e ORDER BY x.e"
	want := o.answer(t, sql)
	got, stats := query(t, c, sql, Options{Tables: o.tables, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
	requireSame(t, want, got, true, sql)
	require.True(t, stats.Distributed, stats.Fallback)
}

// A task may meet a value that DuckDB does not look at. The error of a value is
// one of the query only if DuckDB, running it as it is written, says so.
func TestErrorOfRowsNotLookedAt(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	dir := t.TempDir()
	tables := map[string]string{}
	for name, rows := range map[string]string{
		"few":  "SELECT CASE WHEN i % 3 > 0 THEN i % 2 END AS x, i AS y, 's' AS s FROM range(28) t(i)",
		"many": "SELECT i % 7 AS x, i % 5 AS y, 's1' AS s, 'nan'::DOUBLE AS d FROM range(400) t(i)",
	} {
		tables[name] = filepath.Join(dir, name+".parquet")
		require.NoError(t, o.conn.Exec(context.Background(), "COPY ("+rows+") TO "+kernel.QuoteString(tables[name])))
		require.NoError(t, o.conn.Exec(context.Background(), "CREATE VIEW "+name+" AS FROM "+kernel.QuoteString(tables[name])))
	}
	// No row of few is joined, so DuckDB does not cast.
	const sql = "SELECT q.s, count(*), max(q.d) FROM (SELECT f.x, m.y, f.s, m.d FROM (SELECT x, count(*)::INTEGER AS y, max(s) AS s FROM few WHERE x IS NOT DISTINCT FROM NULL::INTEGER GROUP BY x) f" +
		" JOIN (SELECT x, count(DISTINCT y)::INTEGER AS y, sum(DISTINCT d)::DECIMAL(18,2) AS d FROM many GROUP BY x) m ON f.x = m.y AND m.y BETWEEN 0 AND f.y) q WHERE q.s = 's1' GROUP BY q.s"
	want := o.answer(t, sql)
	for _, mode := range []string{"streaming", "disk"} {
		options := Options{Tables: tables, Shuffle: mode, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(-1)}
		got, stats := query(t, c, sql, options)
		requireSame(t, want, got, false, sql)
		require.False(t, stats.Distributed, "in no task")
		err := fails(c, "SELECT x, sum(DISTINCT d)::DECIMAL(18,2) FROM many GROUP BY x", options)
		require.ErrorContains(t, err, "Conversion Error: Could not cast value nan")
	}
}

// A statement whose plan has no room is run as it is written.
func TestPlanLargerThanPlanningMemory(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: minMemory})
	var list strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&list, ",%d", 3*i)
	}
	sql := "SELECT count(*) FROM big WHERE b IN (" + list.String()[1:] + ")"
	options := Options{Tables: o.tables, Distribute: "always"}
	text, err := c.Explain(context.Background(), sql, options)
	require.NoError(t, err)
	require.Contains(t, text, "its plan takes more memory")
	got, _ := query(t, c, sql, options)
	requireSame(t, o.answer(t, sql), got, true, "a long list")
}

// What a data folder has of others stays, under whatever name.
func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "node-0", "duckdb", "my.db")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	c, err := Connect(context.Background(), Config{CPUs: 1, DataDir: dir})
	require.NoError(t, err)
	query(t, c, "SELECT 1", Options{})
	require.NoError(t, c.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))
}
