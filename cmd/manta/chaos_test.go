package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/bench/tpc"
	"manta/planner"
	"manta/planner/kernel"
)

var long = flag.Bool("long", false, "kill a worker in each of TPC-H's queries in every mode")

// TestKilledAtAnyTime kills a worker at a random moment of a TPC-H query: every answer is right, and nothing is left behind.
// TPC-H's results are small, so that no query may fail.
func TestKilledAtAnyTime(t *testing.T) {
	t.Parallel()
	dir := data(t)
	texts, err := tpc.H.Queries()
	require.NoError(t, err)
	files, err := tpc.H.TablesIn(dir)
	require.NoError(t, err)
	duck, err := tpc.H.OpenDuckDB(context.Background(), dir, 1, kernel.Config{})
	require.NoError(t, err)
	defer func() { require.NoError(t, duck.Close()) }()

	var cases []chaosCase
	for i, q := range []int{9, 18, 21} {
		cases = append(cases, chaosCase{q, modes[i%len(modes)]})
	}
	if *long {
		cases = nil
		for q := range texts {
			for _, mode := range modes {
				cases = append(cases, chaosCase{q + 1, mode})
			}
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := startProcesses(t, 2)
	kills, restarts, kept, again, slowest := 0, 0, 0, 0, time.Duration(0)
	for n, k := range cases {
		about := fmt.Sprintf("q%d in mode %s", k.query, k.mode)
		rule, err := duck.Rule(context.Background(), k.query, texts[k.query-1])
		require.NoError(t, err)
		want, err := duck.Run(context.Background(), texts[k.query-1])
		require.NoError(t, err)
		ask := func() (time.Duration, planner.QueryStats) {
			begin := time.Now()
			got, stats, err := k.ask(c, texts[k.query-1], files)
			require.NoError(t, err, about)
			_, err = tpc.Compare(rule, want, got)
			got.Release()
			require.NoError(t, err, about)
			return time.Since(begin), stats
		}
		calm, _ := ask()

		// One of them, or first one and then the other.
		victims := []int{n % 2, 1 - n%2}[:1+rnd.IntN(3)/2]
		killed := make(chan error, 2)
		for _, v := range victims {
			// Within the query, and now and then just before or after it.
			after := time.Duration(rnd.Float64() * 1.2 * float64(calm))
			if v != n%2 { // while it starts again, if it does, about three seconds later
				after += time.Duration(rnd.Float64() * float64(4*time.Second))
			}
			time.AfterFunc(after, func() { killed <- c.workers[v].cmd.Process.Signal(os.Kill) })
		}
		took, stats := ask()
		for range victims {
			require.NoError(t, <-killed)
		}
		kills += len(victims)
		restarts += stats.Restarts
		if stats.Restarts > 0 {
			kept, again = kept+stats.TasksKept, again+stats.Tasks
		}
		slowest = max(slowest, took)
		require.LessOrEqual(t, stats.Restarts, len(victims), about)
		for _, v := range victims {
			require.Equal(t, -1, c.workers[v].wait(t))
		}
		c.waitEmpty(t)
		want.Release()

		// The next ones in their folders find nothing of them.
		for _, v := range victims {
			dir := c.workers[v].dir
			c.workers[v] = startNode(t, "worker", "--head", c.head.address, "--data-dir", dir)
			c.workers[v].dir = dir
		}
		c.waitEmpty(t)
	}
	t.Logf("%d kills, %d restarts, in which %d tasks ran again and %d were kept, the slowest query took %v", kills, restarts, again, kept, slowest)
}

// chaosCase is a query of TPC-H in a mode.
type chaosCase struct {
	query int
	mode  string
}

// ask runs the query to its end.
func (k chaosCase) ask(c *processes, sql string, files map[string]string) (*tpc.Result, planner.QueryStats, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := c.client.Query(ctx, sql, planner.Options{Tables: files, Shuffle: k.mode, Distribute: "always"})
	if err != nil {
		return nil, planner.QueryStats{}, err
	}
	defer r.Release()
	got := &tpc.Result{Schema: r.Schema(), Types: r.Types()}
	for r.Next() {
		b := r.RecordBatch()
		b.Retain()
		got.Batches = append(got.Batches, b)
	}
	if err := r.Err(); err != nil {
		got.Release()
		return nil, planner.QueryStats{}, err
	}
	return got, r.Stats(), nil
}
