package planner

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/internal/fixture"
)

var seed = flag.Uint64("seed", 1, "which settings are sampled")

// TestSettingsNeverShow runs the corpus on real clusters under settings drawn by
// a seed: the mode, the number of nodes and of partitions, the files of a table,
// the rows of a batch, and which side of a join is sent where never show in an
// answer. With -long, under all of them.
func TestSettingsNeverShow(t *testing.T) {
	o := newOracle(t)
	files := map[int]map[string]string{}
	for _, n := range []int{1, 5} {
		var err error
		files[n], err = fixture.Spread(context.Background(), o.conn, t.TempDir(), n)
		require.NoError(t, err)
	}
	chance := rand.New(rand.NewPCG(*seed, 0))
	const settings = 120 // for one query on one cluster; a short run takes one, on one of the clusters
	for i, nodes := range []int{1, 2, 3} {
		for j, batchRows := range []int{1, 7, 2048} {
			t.Run(fmt.Sprintf("%d nodes, batches of %d rows", nodes, batchRows), func(t *testing.T) {
				c := cluster(t, Config{Nodes: nodes, CPUs: 1, Memory: 512 << 20, batchRows: batchRows})
				for k, q := range fixture.Queries() {
					drawn := chance.IntN(settings)
					if !*long && (k+int(*seed))%9 != 3*i+j {
						continue
					}
					want := o.answer(t, q.SQL)
					for setting := range settings {
						if !*long && setting != drawn {
							continue
						}
						options := settingOf(setting, files)
						got, stats := query(t, c, q.SQL, options)
						about := fmt.Sprintf("%s, setting %d: %s, %d partitions, %s, broadcast %d", q.Name, setting, options.Shuffle, options.Partitions, options.Tables["big"], *options.BroadcastBytes)
						requireSame(t, want, got, q.Ordered, about+"\n"+q.SQL)
						require.True(t, stats.Distributed, "%s: %s", about, stats.Fallback)
					}
				}
			})
		}
	}
}

// settingOf gives the settings of that number, of 5 modes, 4 numbers of partitions, 2 of files, and 3 ways with small tables.
func settingOf(n int, files map[int]map[string]string) Options {
	take := func(of int) int {
		i := n % of
		n /= of
		return i
	}
	o := Options{
		Shuffle:    []string{"auto", "streaming", "object-store", "disk", "concat"}[take(5)],
		Partitions: []int{1, 2, 3, 16}[take(4)],
		Tables:     files[[]int{1, 5}[take(2)]],
		Distribute: "always",
	}
	small := take(3)
	o.BroadcastBytes = bytesOf([]int64{0, 1 << 40, 1 << 40}[small])
	o.ReplicateBytes = bytesOf([]int64{0, 0, 20_000}[small])
	return o
}
