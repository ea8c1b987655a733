package planner

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	seed   = flag.Uint64("seed", 1, "which settings are sampled")
	sample = flag.Int("sample", 3, "with -long, under how many settings a statement runs on each cluster; 0: under all")
)

// TestSettingsNeverShow runs the corpora on real clusters under settings drawn by
// a seed: the mode, the number of nodes and of partitions, the files of a table,
// the rows of a batch, and which side of a join is sent where never show in an
// answer. A short run takes some of the statements, each on one of the clusters.
func TestSettingsNeverShow(t *testing.T) {
	o := newOracle(t)
	statements := append(fixtureStatements(t, o), planStatements(t, o)...)
	chance := rand.New(rand.NewPCG(*seed, 0))
	distributed, answered := 0, 0
	for _, nodes := range []int{1, 2, 3} {
		for _, batchRows := range []int{1, 7, 2048} {
			t.Run(fmt.Sprintf("%d nodes, batches of %d rows", nodes, batchRows), func(t *testing.T) {
				c := cluster(t, Config{Nodes: nodes, CPUs: 1, Memory: 512 << 20, BatchRows: batchRows})
				for _, s := range statements {
					for _, setting := range draw(chance) {
						options := settingOf(setting, s.tables)
						about := fmt.Sprintf("%s, setting %d: %s, %d partitions, %d files, broadcast %d\n%s", s.name, setting, options.Shuffle,
							options.Partitions, options.files, *options.BroadcastBytes, s.sql)
						t.Run(fmt.Sprint(s.name, " ", setting), func(t *testing.T) {
							stats, ok := o.compare(t, c, s, options.Options, about)
							if !ok {
								return
							}
							answered++
							if stats.Distributed {
								distributed++
							}
							if !s.whole {
								require.True(t, stats.Distributed, "%s: %s", about, stats.Fallback)
							}
						})
					}
				}
			})
		}
	}
	t.Logf("%d answers, %d of them distributed", answered, distributed)
	require.Greater(t, distributed*10, answered*8)
}

// draw gives the settings under which a statement runs on a cluster.
func draw(chance *rand.Rand) []int {
	most := 1
	switch {
	case !*long:
		if chance.IntN(40) > 0 {
			return nil
		}
	case *sample == 0:
		most = settings
	default:
		most = *sample
	}
	return chance.Perm(settings)[:most]
}

// compare runs a statement on a cluster and in DuckDB. It is not ok if both refuse it.
func (o *oracle) compare(t *testing.T, c *Client, s statement, options Options, about string) (stats QueryStats, ok bool) {
	t.Helper()
	if failed := o.fails(s.sql); failed != nil {
		require.Error(t, fails(c, s.sql, options), "%s\n%v", about, failed)
		return stats, false
	}
	want := o.answer(t, s.sql)
	got, stats := query(t, c, s.sql, options)
	requireSame(t, want, got, s.ordered, about)
	return stats, true
}

// fails is DuckDB's error for a statement.
func (o *oracle) fails(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if _, err := o.conn.Describe(ctx, sql); err != nil {
		return err
	}
	rows, err := o.conn.Query(ctx, sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	return each(rows, func(batch) error { return nil })
}

// settings is the number of settings for one statement on one cluster.
const settings = 5 * 4 * 2 * 3

// setting is what a statement runs with.
type setting struct {
	Options
	files int // of each table
}

// settingOf gives the settings of that number, of 5 modes, 4 numbers of partitions, 2 of files, and 3 ways with small tables.
func settingOf(n int, tables map[int]map[string]string) setting {
	take := func(of int) int {
		i := n % of
		n /= of
		return i
	}
	o := setting{Options: Options{
		Shuffle:    []string{"auto", "streaming", "object-store", "disk", "concat"}[take(5)],
		Partitions: []int{1, 2, 3, 16}[take(4)],
		Distribute: "always",
	}}
	o.files = []int{1, 5}[take(2)]
	o.Tables = tables[o.files]
	small := take(3)
	o.BroadcastBytes = bytesOf([]int64{0, 1 << 40, 1 << 40}[small])
	o.ReplicateBytes = bytesOf([]int64{0, 0, 20_000}[small])
	return o
}
