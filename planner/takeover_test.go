package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/shuffle"
)

// storing are the modes of which every edge within a query is stored.
var storing = []string{"object-store", "disk", "concat"}

// losingLate makes a cluster whose queries lose the last of its nodes, `losses` times, when all tasks but those that give
// the result have ended: those wait for the coordinator, which has not begun to read.
func losingLate(t *testing.T, nodes, losses int) *Client {
	c := cluster(t, Config{Nodes: nodes, CPUs: 1, Memory: 256 << 20})
	headOf(c).submitted = func(r *run) {
		if losses == 0 || r.query.plan == nil {
			return
		}
		losses--
		last := len(r.query.plan.Stages) - 1
		for _, k := range r.tasks {
			for end := time.Now().Add(time.Minute); k.stage != last && k.task.State() != actors.TaskSucceeded; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Errorf("task %d of stage %d has not ended", k.index, k.stage)
					return
				}
			}
		}
		lose(t, c)
	}
	return c
}

var chained = []struct{ name, sql string }{
	{"groups", "SELECT k, count(*) AS n, sum(id) AS s FROM big GROUP BY k"},
	{"join and groups", "SELECT n, count(*), sum(d) FROM big JOIN dim ON big.k = dim.k GROUP BY n"},
	{"a part that is read twice", "WITH c AS MATERIALIZED (SELECT k, count(*) AS n FROM big GROUP BY k) SELECT a.k, a.n, b.n FROM c a JOIN c b ON a.n = b.k"},
	{"order by ranges", "SELECT id, k FROM big ORDER BY k, id"},
	{"floats that must be the same twice", "WITH c AS MATERIALIZED (SELECT k, sum(id * 0.1::DOUBLE) AS s FROM big GROUP BY k) SELECT count(*) FROM c a JOIN c b ON a.k = b.k AND a.s = b.s"},
}

// A query that loses a node keeps what ended tasks have stored on others, once, and when it loses a second node, too.
func TestStoredEdgesAreKept(t *testing.T) {
	o := newOracle(t)
	for i, mode := range storing {
		for _, losses := range []int{1, 2} {
			for k, q := range chained {
				if (i+k+losses)%2 > 0 && !*long {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %d", mode, q.name, losses), func(t *testing.T) {
					c := losingLate(t, 4, losses)
					options := Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)}
					want := o.answer(t, q.sql)
					got, stats := query(t, c, q.sql, options)
					requireSame(t, want, got, false, q.sql)
					require.Equal(t, losses, stats.Restarts)
					require.Positive(t, stats.TasksKept)
					t.Logf("%d tasks ran again, %d are kept", stats.Tasks, stats.TasksKept)
					requireEmpty(t, c)
				})
			}
		}
	}
}

// Of a chain of stages only the lost node's tasks run again, and those that gave the result.
func TestOnlyLostTasksRunAgain(t *testing.T) {
	o := newOracle(t)
	for _, mode := range storing {
		c := losingLate(t, 4, 1)
		lost := c.Embedded().Nodes[3].ID()
		text, err := c.ExplainAnalyze(context.Background(), "SELECT sum(n * n) FROM (SELECT id % 500 AS x, count(*) AS n FROM big GROUP BY x)",
			Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0)})
		require.NoError(t, err)
		// Three stages, of four tasks but the last.
		require.Contains(t, text, "Started again, 3 of 9 tasks: ", mode)
		require.Contains(t, text, string(lost))
		require.Contains(t, text, "ran before, what it stored is kept")
	}
}

// In mode streaming the value of a subquery is stored, for all read it: the region that made it does not run again when it
// was not on the lost node.
func TestKeptBetweenRegions(t *testing.T) {
	o := newOracle(t)
	sql := "SELECT k, count(*) FROM big WHERE id > (SELECT avg(id) FROM big) GROUP BY k"
	for _, mode := range []string{"streaming", "auto"} {
		t.Run(mode, func(t *testing.T) {
			c := cluster(t, Config{Nodes: 3, CPUs: 1, Memory: 256 << 20})
			first, ran := true, 0
			headOf(c).submitted = func(r *run) {
				if !first {
					return
				}
				first, ran = false, len(r.tasks)
				for _, k := range r.tasks {
					s := r.query.plan.Stages[k.stage]
					if s.Tasks > 1 || s.Outputs[0].To == nil {
						continue
					}
					require.NotEqual(t, shuffle.Streaming, r.choose(s.Outputs[0]).mode)
					require.Eventually(t, func() bool { return k.task.State() == actors.TaskSucceeded }, time.Minute, time.Millisecond)
					if e := c.Embedded(); r.nodeOf(s, k.index) == e.Nodes[2].ID() {
						e.Nodes[1], e.Nodes[2] = e.Nodes[2], e.Nodes[1]
					}
					lose(t, c)
					return
				}
				t.Error("no stage of one task")
			}
			want := o.answer(t, sql)
			got, stats := query(t, c, sql, Options{Tables: o.tables, Shuffle: mode, Distribute: "always", ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
			requireSame(t, want, got, false, sql)
			require.Equal(t, 1, stats.Restarts)
			require.Equal(t, ran, stats.Tasks+stats.TasksKept)
			require.Equal(t, 4, stats.TasksKept, "three that scan, one that adds up")
		})
	}
}

// Of what a query that starts again keeps, nodes know what none of its tasks reads: what a stage has read that is kept itself.
func TestSpareOutputs(t *testing.T) {
	o := newOracle(t)
	sql := "SELECT k, count(*) FROM big WHERE id > (SELECT avg(id) FROM big) GROUP BY k"
	c := cluster(t, Config{Nodes: 4, CPUs: 1, Memory: 256 << 20})
	attempts, spare, unread := 0, 0, 0
	headOf(c).submitted = func(r *run) {
		if attempts++; attempts == 2 {
			for _, n := range c.Embedded().Nodes {
				spare += n.sql.shuffle.Stats().Spare
			}
			return
		}
		for _, k := range r.tasks {
			s := r.query.plan.Stages[k.stage]
			if s.Tasks > 1 || s.Outputs[0].To == nil { // not the one that adds up
				continue
			}
			require.Eventually(t, func() bool { return k.task.State() == actors.TaskSucceeded }, time.Minute, time.Millisecond)
			if e := c.Embedded(); k.node == e.Nodes[3].ID() {
				e.Nodes[2], e.Nodes[3] = e.Nodes[3], e.Nodes[2]
			}
			unread = 3 // of four that scan for it
			lose(t, c)
			return
		}
	}
	want := o.answer(t, sql)
	got, stats := query(t, c, sql, Options{Tables: o.tables, Shuffle: "object-store", Distribute: "always", ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
	requireSame(t, want, got, false, sql)
	require.Equal(t, 1, stats.Restarts)
	require.Equal(t, 3, unread)
	require.Equal(t, unread, spare)
	requireEmpty(t, c)
}

// A query that takes over has the place of the one before, whoever waits: it may be the only one that runs at once.
func TestTakeOverNeedsNoPlace(t *testing.T) {
	o := newOracle(t)
	c := losingLate(t, 3, 1)
	want := o.answer(t, chained[0].sql)
	options := Options{Tables: o.tables, Shuffle: "disk", ReplicateBytes: bytesOf(0)}
	errs := make(chan error, 12)
	for range cap(errs) { // more than run at once
		go func() {
			_, err := c.Explain(context.Background(), chained[0].sql, options)
			errs <- err
		}()
	}
	got, stats := query(t, c, chained[0].sql, options)
	requireSame(t, want, got, false, chained[0].sql)
	require.Positive(t, stats.TasksKept)
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
}

// A node is lost while what it keeps is being read, at any moment of that, and another one while that is made up for.
func TestLostWhileRead(t *testing.T) {
	o := newOracle(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	kept, restarts := 0, 0
	for _, mode := range storing {
		for _, q := range chained[1:3] {
			c := cluster(t, Config{Nodes: 5, CPUs: 1, Memory: 256 << 20, BatchRows: 20})
			var losing sync.WaitGroup
			losses := 2
			headOf(c).submitted = func(r *run) {
				if losses == 0 {
					return
				}
				losses--
				whole := rnd.IntN(2) == 0 // first, or while they are made
				for _, k := range r.tasks {
					for end := time.Now().Add(time.Minute); whole && len(r.query.plan.Stages[k.stage].Inputs) == 0 && k.task.State() != actors.TaskSucceeded; time.Sleep(time.Millisecond) {
						if time.Now().After(end) {
							t.Errorf("task %d of stage %d has not ended", k.index, k.stage)
							return
						}
					}
				}
				losing.Wait()
				after := time.Duration(rnd.IntN(80)) * time.Millisecond
				losing.Go(func() {
					time.Sleep(after)
					lose(t, c)
				})
			}
			want := o.answer(t, q.sql)
			got, stats := query(t, c, q.sql, Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
			requireSame(t, want, got, false, q.sql)
			losing.Wait()
			kept, restarts = kept+stats.TasksKept, restarts+stats.Restarts
			requireEmpty(t, c)
		}
	}
	t.Logf("%d restarts, %d tasks kept in the last ones", restarts, kept)
}
