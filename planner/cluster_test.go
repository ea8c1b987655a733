package planner

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"manta/planner/internal/fixture"
	"manta/planner/kernel"
)

// oracle answers queries with DuckDB in one process.
type oracle struct {
	conn   *kernel.Conn
	tables map[string]string
}

// newOracle makes the shared tables, too.
func newOracle(t *testing.T) *oracle {
	db, err := kernel.Open(kernel.Config{LosslessArrow: true})
	require.NoError(t, err)
	conn, err := db.Connect()
	require.NoError(t, err)
	require.NoError(t, conn.Exec(context.Background(), kernel.NoRangeMergeJoin))
	t.Cleanup(func() {
		conn.Close()
		require.NoError(t, db.Close())
	})
	tables, err := fixture.Tables(context.Background(), conn, t.TempDir())
	require.NoError(t, err)
	views, err := tableViews(tables)
	require.NoError(t, err)
	require.NoError(t, makeTables(context.Background(), conn, views))
	return &oracle{conn, tables}
}

// answer is a query's rows as texts, and the names and types of its columns.
type answer struct {
	rows  []string
	names []string
	types []string
}

func (o *oracle) answer(t *testing.T, sql string) answer {
	var a answer
	columns, err := o.conn.Describe(context.Background(), sql)
	require.NoError(t, err)
	for _, c := range columns {
		a.names, a.types = append(a.names, c.Name), append(a.types, c.Type)
	}
	a.rows = o.rows(t, sql)
	return a
}

func (o *oracle) rows(t *testing.T, sql string) (out []string) {
	rows, err := o.conn.Query(context.Background(), sql)
	require.NoError(t, err)
	defer rows.Close()
	require.NoError(t, each(rows, func(b batch) error {
		plain, err := kernel.FromLossless(b)
		require.NoError(t, err)
		out = append(out, texts(plain)...)
		plain.Release()
		return nil
	}))
	return out
}

func texts(b arrow.RecordBatch) []string {
	var out []string
	for i := range int(b.NumRows()) {
		cells := make([]string, b.NumCols())
		for c := range cells {
			cells[c] = strings.Clone(b.Column(c).ValueStr(i)) // it may lie in the batch
		}
		out = append(out, strings.Join(cells, "|"))
	}
	return out
}

// queryTime is when a query hangs, on however slow a machine.
const queryTime = 5 * time.Minute

// query runs a query on a cluster to its end.
func query(t *testing.T, c *Client, sql string, o Options) (answer, QueryStats) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), queryTime)
	defer cancel()
	r, err := c.Query(ctx, sql, o)
	require.NoError(t, err, sql)
	defer r.Release()
	a := answer{types: r.Types()}
	for _, f := range r.Schema().Fields() {
		a.names = append(a.names, f.Name)
	}
	for r.Next() {
		a.rows = append(a.rows, texts(r.RecordBatch())...)
	}
	require.NoError(t, r.Err(), sql)
	return a, r.Stats()
}

func requireSame(t *testing.T, want, got answer, ordered bool, about string) {
	t.Helper()
	require.Equal(t, want.names, got.names, about)
	require.Equal(t, want.types, got.types, about)
	if !ordered {
		slices.Sort(want.rows)
		slices.Sort(got.rows)
	}
	require.Equal(t, want.rows, got.rows, about)
}

// cluster starts an embedded cluster that must be empty again at its end.
func cluster(t *testing.T, c Config) *Client {
	if c.DataDir == "" {
		c.DataDir = t.TempDir()
	}
	client, err := Connect(context.Background(), c)
	require.NoError(t, err)
	t.Cleanup(func() {
		requireEmpty(t, client)
		require.NoError(t, client.Close())
	})
	return client
}

// requireEmpty fails if anything of a query is left on a node: an object, a
// channel, exchange memory, a file, a held slot.
func requireEmpty(t *testing.T, c *Client) {
	t.Helper()
	for _, n := range c.Embedded().Nodes {
		there := ""
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if there = left(n); there == "" {
				break
			}
		}
		require.Empty(t, there, "node %s", n.ID())
	}
}

func left(n *Node) string {
	if s := n.Store().Stats(); s.Objects != 0 || s.Bytes != 0 || s.DiskFiles != 0 {
		return fmt.Sprintf("store: %+v", s)
	}
	info := n.Info()
	if info.RunningTasks != 0 || info.WaitingTasks != 0 {
		return fmt.Sprintf("%d running and %d waiting tasks", info.RunningTasks, info.WaitingTasks)
	}
	if s := n.exchanges.Stats(); s.Bytes != 0 || s.Channels != 0 || s.Readers != 0 || s.Writers != 0 || s.Files != 0 || s.Jobs != 0 {
		return fmt.Sprintf("exchanges: %+v", s)
	}
	var files []string
	for _, folder := range []string{"exchange", "duckdb"} {
		_ = filepath.WalkDir(filepath.Join(n.Config().DataDir, folder), func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return nil
			}
			// DuckDB leaves an empty file behind, until it spills again, when it is refused room in it.
			if info, err := e.Info(); err != nil || folder == "duckdb" && info.Size() == 0 {
				return nil
			}
			files = append(files, path)
			return nil
		})
	}
	if len(files) > 0 {
		return fmt.Sprintf("files: %v", files)
	}
	return ""
}

func bytesOf(n int64) *int64 { return &n }

var long = flag.Bool("long", false, "run every query in every mode on every number of nodes, not taking turns")

// TestSameRowsInEveryMode runs the corpus on real clusters: the mode, the number
// of nodes and of partitions never show in an answer.
func TestSameRowsInEveryMode(t *testing.T) {
	o := newOracle(t)
	queries := fixture.Queries()
	for _, nodes := range []int{1, 2, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			c := cluster(t, Config{Nodes: nodes, CPUs: 1, Memory: 512 << 20})
			whole := 0
			for i, mode := range []string{"auto", "streaming", "object-store", "disk", "concat"} {
				for k, q := range queries {
					// Every query meets every mode, on one of the numbers of nodes; the other settings take turns.
					if !*long && (i+k+nodes)%3 != 0 {
						continue
					}
					options := Options{Tables: o.tables, Shuffle: mode, Partitions: []int{0, 3, 5}[(i+k)%3], Distribute: "always"}
					if k%2 == 0 {
						options.ReplicateBytes, options.BroadcastBytes = bytesOf(0), bytesOf(0)
					}
					want := o.answer(t, q.SQL)
					got, stats := query(t, c, q.SQL, options)
					requireSame(t, want, got, q.Ordered, fmt.Sprintf("%s in mode %s: %s", q.Name, mode, q.SQL))
					require.True(t, stats.Distributed, "%s: %s", q.Name, stats.Fallback)
					if mode == "auto" { // and in one task on one node, as so little data would
						got, stats := query(t, c, q.SQL, Options{Tables: o.tables})
						requireSame(t, want, got, q.Ordered, q.Name+" whole: "+q.SQL)
						if !stats.Distributed {
							whole++
						}
					}
				}
			}
			require.Positive(t, whole)
		})
	}
}
