package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// runs counts how often each task ran.
type runs struct {
	mu    sync.Mutex
	count map[TaskID]int
}

func (r *runs) add(id TaskID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[id]++
}

func faultyCluster(t *testing.T, faults *Faults) (*cluster, *runs) {
	r := &runs{count: make(map[TaskID]int)}
	c := newCluster(t, 2, map[string]TaskFunc{
		"once": func(tc *TaskContext, arg []byte) ([]byte, error) {
			r.add(tc.Task)
			return fmt.Appendf(nil, "%s!", arg), nil
		},
		"block": func(tc *TaskContext, arg []byte) ([]byte, error) {
			r.add(tc.Task)
			return block(tc, arg)
		},
	}, func(c *Config) { c.Faults = faults })
	return c, r
}

// exercise runs a job whose tasks run once each, and one that is cancelled.
func exercise(t *testing.T, c *cluster, r *runs, tasks int) {
	job := c.job()
	var submitted []*Task
	for i := range tasks {
		for _, n := range c.nodes {
			task, err := job.Submit(TaskSpec{Func: "once", Arg: fmt.Append(nil, i), Node: n.ID()})
			require.NoError(t, err)
			submitted = append(submitted, task)
		}
	}
	for i, task := range submitted {
		got, err := task.Wait(testContext(t))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%d!", i/len(c.nodes)), string(got))
	}
	job.Finish(nil)

	stopped := c.job()
	var blocked []*Task
	for _, n := range c.nodes {
		task, err := stopped.Submit(TaskSpec{Func: "block", Node: n.ID()})
		require.NoError(t, err)
		blocked = append(blocked, task)
	}
	eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.count) == len(submitted)+len(blocked)
	})
	require.NoError(t, c.head.StopJob(stopped.ID(), "test"))
	for _, task := range blocked {
		_, err := task.Wait(testContext(t))
		require.Error(t, err)
		require.Equal(t, TaskCancelled, task.State(), "%v", err)
	}
	stopped.Finish(ErrJobStopped)
	require.Equal(t, JobStopped, stopped.Info().State)

	for _, p := range c.probe {
		require.True(t, p.sawEnd(job.ID()))
		require.True(t, p.sawEnd(stopped.ID()))
	}
	c.quiet()
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(t, r.count, len(submitted)+len(blocked))
	for id, n := range r.count {
		require.Equal(t, 1, n, "task %s", id)
	}
}

// Each kind of message is lost, on the way there or back, comes twice, comes late:
// every task runs exactly once, with the right result, and nothing is left.
func TestFaults(t *testing.T) {
	for _, kind := range []string{"Start", "Done", "Stop", "Ack", "EndJob"} {
		for _, fault := range []Fault{
			{Lose: 1, First: 2},
			{Reply: true, Lose: 1, First: 2},
			{Repeat: 1},
			{Reply: true, Repeat: 1},
			{Hold: 1, Delay: 150 * time.Millisecond, First: 2}, // longer than the first retry
			{Reply: true, Hold: 1, Delay: 150 * time.Millisecond, First: 2},
		} {
			if fault.Reply && kind != "EndJob" {
				continue // a link's messages have no replies but its acknowledgements
			}
			fault.Kind = kind
			t.Run(fmt.Sprintf("%s/reply=%v lose=%v repeat=%v hold=%v", kind, fault.Reply, fault.Lose, fault.Repeat, fault.Hold), func(t *testing.T) {
				t.Parallel()
				faults := NewFaults(1, fault)
				c, r := faultyCluster(t, faults)
				exercise(t, c, r, 2)
				require.Positive(t, faults.Hits(), "the fault did not happen")
			})
		}
	}
}

// Everything at once, by seed.
func TestFaultsStorm(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			storm := Fault{Lose: 0.2, Repeat: 0.3, Hold: 0.3, Delay: 30 * time.Millisecond}
			back := storm
			back.Reply = true
			faults := NewFaults(seed, storm, back)
			c, r := faultyCluster(t, faults)
			exercise(t, c, r, 10)
			require.Positive(t, faults.Hits())
		})
	}
}

// Requests to an actor run at most once, and exactly once if they are answered,
// also when the handler takes longer than the first repeats.
func TestFaultsAsk(t *testing.T) {
	storm := Fault{Kind: "StringValue", Lose: 0.2, Repeat: 0.3, Hold: 0.3, Delay: 30 * time.Millisecond}
	back := storm
	back.Reply = true
	faults := NewFaults(7, storm, back)
	c, _ := faultyCluster(t, faults)
	var mu sync.Mutex
	ran := map[string]int{}
	count := func(_ context.Context, _ NodeID, m proto.Message) (proto.Message, error) {
		mu.Lock()
		defer mu.Unlock()
		ran[m.(*wrapperspb.StringValue).Value]++
		time.Sleep(2 * time.Millisecond)
		return m, nil
	}
	var all sync.WaitGroup
	for _, to := range c.nodes {
		a, err := to.Spawn("count", count)
		require.NoError(t, err)
		for _, from := range c.nodes {
			for i := range 20 {
				all.Go(func() {
					key := fmt.Sprint(from.ID(), a.Address(), i)
					got, err := from.Ask(testContext(t), a.Address(), text(key))
					if err != nil || got.(*wrapperspb.StringValue).Value != key {
						t.Errorf("%s: %v, %v", key, got, err)
					}
				})
			}
		}
	}
	all.Wait()
	require.Positive(t, faults.Hits())
	require.Len(t, ran, 9*20)
	for key, n := range ran {
		require.Equal(t, 1, n, key)
	}
}
