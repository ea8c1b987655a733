package tpc

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/planner"
	"manta/planner/kernel"
)

var (
	seed   = flag.Uint64("seed", 1, "which queries and settings are sampled")
	sample = flag.Int("sample", 1, "with -long, under how many settings a query runs on each cluster")
)

// TestSettingsNeverShow runs the queries on real clusters under settings drawn by
// a seed: the mode, the number of nodes and of partitions, the files of a table,
// the rows of a batch, and which side of a join is sent where never show in an
// answer. A short run takes some of the queries, each on one of the clusters.
func TestSettingsNeverShow(t *testing.T) {
	chance := rand.New(rand.NewPCG(*seed, 0))
	distributed, answered := 0, 0
	for _, suite := range []*Suite{H, DS} {
		c := newCorpus(t, suite)
		for _, nodes := range []int{1, 2, 3} {
			for _, batchRows := range []int{1, 7, 2048} {
				t.Run(fmt.Sprintf("%s, %d nodes, batches of %d rows", suite.Title, nodes, batchRows), func(t *testing.T) {
					client, err := planner.Connect(context.Background(), planner.Config{
						Nodes: nodes, CPUs: 1, Memory: 1 << 30, DataDir: t.TempDir(), BatchRows: batchRows,
					})
					require.NoError(t, err)
					defer func() { require.NoError(t, client.Close()) }()
					for i := range c.queries {
						times := *sample
						if !*long && chance.IntN(70) > 0 {
							times = 0
						}
						for range times {
							options, about := settings(chance, c.files)
							t.Run(fmt.Sprintf("query %d, %s", i+1, about), func(t *testing.T) {
								answered++
								if c.compare(t, client, i, options) {
									distributed++
								}
							})
						}
					}
				})
			}
		}
	}
	t.Logf("%d answers, %d of them distributed", answered, distributed)
	require.Equal(t, answered, distributed)
}

// settings draws settings, and says what they are.
func settings(chance *rand.Rand, files map[int]map[string]string) (planner.Options, string) {
	small := []struct{ replicate, broadcast int64 }{{0, 0}, {0, 1 << 40}, {20_000, 100_000}}[chance.IntN(3)]
	n := slices.Sorted(maps.Keys(files))[chance.IntN(len(files))]
	o := planner.Options{
		Tables:         files[n],
		Shuffle:        []string{"auto", "streaming", "object-store", "disk", "concat"}[chance.IntN(5)],
		Partitions:     []int{1, 2, 3, 16}[chance.IntN(4)],
		ReplicateBytes: &small.replicate, BroadcastBytes: &small.broadcast,
		Distribute: "always",
	}
	return o, fmt.Sprintf("%s, %d partitions, %d files, broadcast %d", o.Shuffle, o.Partitions, n, small.broadcast)
}

// corpus is a suite's queries and tables, of one file each and of five; in a short run of two.
type corpus struct {
	suite   *Suite
	queries []string
	files   map[int]map[string]string
	duck    *DuckDB
	rules   map[int]Rule
}

func newCorpus(t *testing.T, s *Suite) *corpus {
	c := &corpus{suite: s, files: map[int]map[string]string{}, rules: map[int]Rule{}}
	ctx := context.Background()
	var err error
	c.queries, err = s.Queries()
	require.NoError(t, err)
	dirs := map[int]string{2: shared}
	if s == DS {
		dirs[2] = sharedDS(t)
	}
	if *long {
		dirs = map[int]string{1: filepath.Join(t.TempDir(), "data"), 5: filepath.Join(t.TempDir(), "data")}
	}
	for n, dir := range dirs {
		require.NoError(t, s.Generate(ctx, dir, 0.01, n)) // what is there stays
		c.files[n], err = s.TablesIn(dir)
		require.NoError(t, err)
		if n < 5 {
			c.duck, err = s.OpenDuckDB(ctx, dir, 2, kernel.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.duck.Close()) })
		}
	}
	return c
}

// compare runs a query on a cluster and in DuckDB, and reports whether it was distributed.
func (c *corpus) compare(t *testing.T, client *planner.Client, i int, o planner.Options) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	if _, known := c.rules[i]; !known {
		rule, err := c.duck.Rule(ctx, i+1, c.queries[i])
		require.NoError(t, err)
		c.rules[i] = rule
	}
	want := run(t, c.duck, c.queries[i])
	result, err := client.Query(ctx, c.queries[i], o)
	require.NoError(t, err)
	defer result.Release()
	got := &Result{Schema: result.Schema(), Types: result.Types()}
	defer got.Release()
	for result.Next() {
		b := result.RecordBatch()
		b.Retain()
		got.Batches = append(got.Batches, b)
	}
	require.NoError(t, result.Err())
	_, err = Compare(c.rules[i], want, got)
	require.NoError(t, err)
	return result.Stats().Distributed
}
