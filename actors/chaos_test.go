package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestChaos runs jobs from several clients while workers are lost and join, and
// messages are lost, late and repeated. Every job ends; a task's result is right,
// or its error is the loss of its node or the end of its job; afterwards every
// slot, task and object is back.
func TestChaos(t *testing.T) {
	t.Parallel()
	const clients, jobsEach = 6, 6
	there := Fault{Lose: 0.05, Repeat: 0.1, Hold: 0.1, Delay: 20 * time.Millisecond}
	back := there
	back.Reply = true
	c := newCluster(t, 3, map[string]TaskFunc{
		"echo": func(tc *TaskContext, arg []byte) ([]byte, error) { return arg, nil },
		"yield": func(tc *TaskContext, arg []byte) ([]byte, error) {
			for range 5 {
				if err := tc.Yield(func() error { time.Sleep(time.Millisecond); return nil }); err != nil {
					return nil, err
				}
			}
			return arg, nil
		},
		"block": block,
	}, func(c *Config) {
		c.Heartbeat, c.Lease = 100*time.Millisecond, time.Second // a death more than was meant is one more of them
		c.MaxJobs = 3
		c.Faults = NewFaults(3, there, back)
	})
	var ok, lost, stopped atomic.Int64

	client := func(seed uint64) error {
		rng := rand.New(rand.NewPCG(seed, 1))
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		job, err := c.head.NewJob(ctx, JobSpec{Name: fmt.Sprint(seed)})
		if err != nil {
			return err
		}
		end := error(nil)
		defer func() { job.Finish(end) }()
		args := map[*Task][]byte{}
		for range 12 {
			size := rng.IntN(100)
			if rng.IntN(4) == 0 {
				size += MaxInline
			}
			spec := TaskSpec{Func: "echo", Arg: bytes.Repeat([]byte{byte(rng.Uint32())}, size)}
			switch rng.IntN(4) {
			case 0:
				spec.Func = "yield"
			case 1:
				nodes := c.head.Nodes()
				spec.Node = nodes[rng.IntN(len(nodes))].ID
			}
			task, err := job.Submit(spec)
			if errors.Is(err, ErrNodeDead) {
				lost.Add(1)
				continue
			}
			if err != nil {
				return fmt.Errorf("submit: %w", err)
			}
			args[task] = spec.Arg
		}
		if rng.IntN(3) == 0 {
			if task, err := job.Submit(TaskSpec{Func: "block"}); err == nil {
				args[task] = nil
			}
			time.AfterFunc(time.Duration(rng.IntN(50))*time.Millisecond, cancel)
		}
		for task, arg := range args {
			got, err := task.Wait(testContext(t))
			switch {
			case err == nil && bytes.Equal(got, arg):
				ok.Add(1)
			case errors.Is(err, ErrNodeDead), errors.Is(context.Cause(job.Context()), ErrNodeDead):
				lost.Add(1)
				end = err
			case job.Context().Err() != nil:
				stopped.Add(1)
				end = err
			default:
				return fmt.Errorf("task %s: %d bytes, %w", task.name, len(got), err)
			}
		}
		return nil
	}

	var all sync.WaitGroup
	for i := range uint64(clients) {
		all.Go(func() {
			for k := range uint64(jobsEach) {
				if err := client(i*100 + k); err != nil {
					t.Errorf("client %d job %d: %v", i, k, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	rng := rand.New(rand.NewPCG(9, 9))
	var deaths int
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-time.After(150 * time.Millisecond):
			victim := c.nodes[1+rng.IntN(len(c.nodes)-1)]
			if victim.Err() != nil || victim.ctx.Err() != nil {
				continue
			}
			deaths++
			if rng.IntN(2) == 0 {
				victim.fail(errors.New("test")) // silent from now on
			} else {
				require.NoError(t, victim.Close())
			}
			c.start(c.head.Address())
		}
	}
	t.Logf("%d deaths; tasks: %d ok, %d lost, %d stopped", deaths, ok.Load(), lost.Load(), stopped.Load())
	require.Positive(t, ok.Load())
	c.quiet()
	for _, info := range c.head.Jobs() {
		require.Contains(t, []JobState{JobSucceeded, JobFailed, JobStopped}, info.State)
		require.Equal(t, info.Tasks, info.TasksDone)
	}
	js := c.head.jobs
	js.mu.Lock()
	require.Empty(t, js.live)
	require.Zero(t, js.admission.Running()+js.admission.Queued())
	js.mu.Unlock()
	eventually(t, func() bool { // nodes that were taken for dead learn it soon
		left := c.head.Runtime() != RuntimeStats{}
		for _, n := range c.nodes {
			left = left || n.ctx.Err() == nil && n.Store().Stats().Objects > 0
		}
		return !left
	}, "something of a job is left")
}
