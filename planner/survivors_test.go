package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/shuffle"
)

// gate holds tasks at their start until it opens, or they are cancelled, and counts how often each ran.
type gate struct {
	holds func(stage, index int) bool
	open  chan struct{}

	mu   sync.Mutex
	runs map[[2]int]int // guarded by mu
}

// gated puts a gate into every node of a cluster.
func gated(c *Client, holds func(stage, index int) bool) *gate {
	g := &gate{holds: holds, open: make(chan struct{}), runs: map[[2]int]int{}}
	for _, n := range c.Embedded().Nodes {
		n.sql.opened = func(tc *actors.TaskContext, stage, index int) {
			g.mu.Lock()
			g.runs[[2]int{stage, index}]++
			g.mu.Unlock()
			if holds(stage, index) {
				_ = tc.Yield(func() error {
					select {
					case <-g.open:
					case <-tc.Done():
					}
					return nil
				})
			}
		}
	}
	return g
}

func (g *gate) ran(stage, index int) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.runs[[2]int{stage, index}]
}

// standing waits until those who run an attempt have given up all of it but what goes on: its last task was cancelled.
func standing(t *testing.T, r *run) {
	t.Helper()
	last := r.tasks[len(r.tasks)-1]
	require.Eventually(t, func() bool { return over(last) }, time.Minute, time.Millisecond)
}

// over says that a task was cancelled, or failed.
func over(k *stageTask) bool {
	s := k.task.State()
	return s == actors.TaskCancelled || s == actors.TaskFailed
}

const groups = "SELECT k, count(*) AS n, sum(id) AS s FROM big GROUP BY k"

// What ran when a node was lost, and lacked nothing, goes on: the tasks that scan on other nodes run once, though they had
// not made a row when the node was lost.
func TestTasksGoOn(t *testing.T) {
	o := newOracle(t)
	want := o.answer(t, groups)
	for _, mode := range storing {
		t.Run(mode, func(t *testing.T) {
			c := cluster(t, Config{Nodes: 4, CPUs: 1, Memory: 256 << 20})
			g := gated(c, func(stage, _ int) bool { return stage == 0 })
			lost := c.Embedded().Nodes[3].ID()
			attempts, on := 0, map[int]bool{}
			headOf(c).submitted = func(r *run) {
				if attempts++; attempts > 1 {
					return
				}
				for _, k := range r.tasks {
					if k.stage == 0 {
						require.Eventually(t, func() bool { return g.ran(0, k.index) == 1 }, time.Minute, time.Millisecond)
						on[k.index] = k.node != lost
					}
				}
				lose(t, c)
				standing(t, r)
				close(g.open)
			}
			got, stats := query(t, c, groups, Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0)})
			requireSame(t, want, got, false, groups)
			require.Equal(t, 1, stats.Restarts)
			require.Equal(t, 3, stats.TasksKept)
			require.Len(t, on, 4)
			for task, once := range on {
				if once {
					require.Equal(t, 1, g.ran(0, task))
				} else {
					require.Equal(t, 2, g.ran(0, task), "it was on the lost node")
				}
			}
			requireEmpty(t, c)
		})
	}
}

// While tasks go on a second node may be lost, or one of them fails for a reason of its own, or the client may go. What is left is
// right, or ends at once.
func TestWhileTasksGoOn(t *testing.T) {
	o := newOracle(t)
	options := Options{Tables: o.tables, Shuffle: "disk", ReplicateBytes: bytesOf(0)}
	want := o.answer(t, groups)
	start := func(t *testing.T, lose func(*testing.T, *Client, *run), then func(c *Client, r *run, g *gate)) (*Client, *gate) {
		c := cluster(t, Config{Nodes: 4, CPUs: 1, Memory: 256 << 20})
		g := gated(c, func(stage, _ int) bool { return stage == 0 })
		first := true
		headOf(c).submitted = func(r *run) {
			if !first {
				return
			}
			first = false
			lose(t, c, r)
			standing(t, r)
			then(c, r, g)
		}
		return c, g
	}
	one := func(t *testing.T, c *Client, _ *run) { lose(t, c) }
	touch := func(_ *testing.T, _ *Client, r *run) {
		r.survivors.fail(fmt.Errorf("%w: for a moment", shuffle.ErrPeer))
	}
	listed := func(t *testing.T, c *Client, text string) {
		require.Eventually(t, func() bool {
			jobs, err := c.Jobs(context.Background())
			return err == nil && len(jobs) == 1 && jobs[0].State == actors.JobStopped && strings.Contains(jobs[0].Error, text)
		}, time.Minute, 10*time.Millisecond)
	}
	t.Run("two nodes had lost touch", func(t *testing.T) {
		c, _ := start(t, touch, func(_ *Client, _ *run, g *gate) { close(g.open) })
		got, stats := query(t, c, groups, options)
		requireSame(t, want, got, false, groups)
		require.Equal(t, 1, stats.Restarts)
		require.Equal(t, 4, stats.TasksKept)
		requireEmpty(t, c)
	})
	t.Run("the job is stopped", func(t *testing.T) {
		c, _ := start(t, one, func(c *Client, r *run, _ *gate) {
			require.NoError(t, c.StopJob(context.Background(), r.job.ID(), "enough of it"))
		})
		require.ErrorContains(t, fails(c, groups, options), "enough of it")
		requireEmpty(t, c)
		listed(t, c, "enough of it")
	})
	t.Run("the job is stopped when its attempt has ended", func(t *testing.T) {
		c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
		headOf(c).submitted = func(r *run) {
			r.survivors.stop(fmt.Errorf("%w: for a moment", shuffle.ErrPeer))
			require.NoError(t, c.StopJob(context.Background(), r.job.ID(), "enough of it"))
		}
		require.ErrorContains(t, fails(c, groups, options), "enough of it")
		requireEmpty(t, c)
		listed(t, c, "enough of it")
	})
	t.Run("a second node is lost", func(t *testing.T) {
		c, _ := start(t, one, func(c *Client, _ *run, g *gate) {
			lose(t, c)
			close(g.open)
		})
		got, stats := query(t, c, groups, options)
		requireSame(t, want, got, false, groups)
		require.Equal(t, 1, stats.Restarts)
		require.Equal(t, 2, stats.TasksKept)
		requireEmpty(t, c)
	})
	t.Run("all others are lost", func(t *testing.T) {
		c, _ := start(t, one, func(c *Client, _ *run, g *gate) {
			lose(t, c)
			lose(t, c)
			close(g.open)
		})
		got, stats := query(t, c, groups, options)
		requireSame(t, want, got, false, groups)
		require.Equal(t, 1, stats.Restarts)
		requireEmpty(t, c)
	})
	t.Run("one fails", func(t *testing.T) {
		c, _ := start(t, one, func(_ *Client, r *run, g *gate) {
			r.survivors.fail(errors.New("it broke here"))
			for _, k := range r.tasks { // nobody waits for what the gate holds
				require.Eventually(t, func() bool { return over(k) }, time.Minute, time.Millisecond)
			}
			close(g.open)
		})
		got, stats := query(t, c, groups, options)
		requireSame(t, want, got, false, groups)
		require.Equal(t, 1, stats.Restarts)
		require.Zero(t, stats.TasksKept)
		requireEmpty(t, c)
	})
	t.Run("the client goes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		c, _ := start(t, one, func(*Client, *run, *gate) { cancel() })
		r, err := c.Query(ctx, groups, options)
		if err == nil {
			for r.Next() {
			}
			err = r.Err()
			r.Release()
		}
		require.ErrorIs(t, err, context.Canceled)
		requireEmpty(t, c)
		listed(t, c, "the client left")
	})
}

// Nothing goes on when no other attempt can follow.
func TestNothingGoesOnInVain(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 3, CPUs: 1, Memory: 256 << 20})
	gated(c, func(stage, _ int) bool { return stage == 0 }) // it never opens
	lost := c.Embedded().Nodes[2].ID()
	headOf(c).submitted = func(r *run) {
		r.out.opened.Store(true)
		lose(t, c)
	}
	err := fails(c, groups, Options{Tables: o.tables, Shuffle: "disk", ReplicateBytes: bytesOf(0)})
	require.ErrorContains(t, err, "a part of its result was sent already")
	require.ErrorContains(t, err, string(lost))
	requireEmpty(t, c)
}
