package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

// block waits without a slot until the task is cancelled.
func block(tc *TaskContext, _ []byte) ([]byte, error) {
	err := tc.Yield(func() error { <-tc.Done(); return context.Cause(tc) })
	return nil, err
}

var errSpecial = errors.New("special")

func init() { RegisterError("test.special", errSpecial) }

func TestTaskErrors(t *testing.T) {
	c := newCluster(t, 1, map[string]TaskFunc{
		"panic":   func(*TaskContext, []byte) ([]byte, error) { panic("oh no") },
		"error":   func(*TaskContext, []byte) ([]byte, error) { return nil, errors.New("plain") },
		"binary":  func(*TaskContext, []byte) ([]byte, error) { return nil, errors.New("bad \xff\xfe bytes") },
		"long":    func(*TaskContext, []byte) ([]byte, error) { return nil, errors.New(strings.Repeat("long", 1<<20)) },
		"special": func(*TaskContext, []byte) ([]byte, error) { return nil, fmt.Errorf("in a way: %w", errSpecial) },
	}, nil)
	job := c.job()
	for _, n := range c.nodes {
		for _, test := range []struct {
			f, text string
			is      error
		}{
			{"panic", "oh no", ErrPanic},
			{"error", "plain", nil},
			{"binary", "bytes", nil},
			{"long", "(cut)", nil},
			{"special", "in a way: special", errSpecial},
			{"missing", "missing", ErrNoFunc},
		} {
			task, err := job.Submit(TaskSpec{Name: "stage-1", Func: test.f, Node: n.ID()})
			require.NoError(t, err)
			_, err = task.Wait(testContext(t))
			require.ErrorContains(t, err, test.text)
			require.ErrorContains(t, err, "stage-1")
			require.ErrorContains(t, err, string(n.ID()))
			require.Equal(t, TaskFailed, task.State())
			var te *TaskError
			require.ErrorAs(t, err, &te)
			require.Equal(t, n.ID(), te.Node)
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
		}
	}
	nowhere, err := job.Submit(TaskSpec{Func: "error", Node: "node-nowhere"})
	require.NoError(t, err)
	_, err = nowhere.Wait(testContext(t))
	require.ErrorIs(t, err, ErrUnschedulable)
	require.ErrorIs(t, err, ErrNodeDead)
	job.Finish(errors.New("it went \xff wrong"))
	require.Equal(t, JobFailed, job.Info().State)
	conn, err := Dial(testContext(t), c.head.Address(), "secret")
	require.NoError(t, err)
	defer conn.Close()
	list, err := ListJobs(testContext(t), conn)
	require.NoError(t, err)
	require.Equal(t, "it went \uFFFD wrong", list[0].Error)
	_, err = job.Submit(TaskSpec{Func: "error"})
	require.ErrorIs(t, err, ErrJobEnded)
	c.quiet()
}

// Arguments and results of any size arrive, and leave nothing in any store.
func TestLargeValues(t *testing.T) {
	c := newCluster(t, 1, map[string]TaskFunc{
		"double": func(_ *TaskContext, arg []byte) ([]byte, error) { return append(bytes.Clone(arg), arg...), nil },
	}, nil)
	job := c.job()
	for _, n := range c.nodes {
		for _, size := range []int{0, 1, MaxInline/2 - 1, MaxInline, MaxInline + 1, 2<<20 + 7} {
			arg := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, size/7+1)[:size]
			task, err := job.Submit(TaskSpec{Func: "double", Arg: arg, Node: n.ID()})
			require.NoError(t, err)
			got, err := task.Wait(testContext(t))
			require.NoError(t, err)
			require.True(t, bytes.Equal(append(bytes.Clone(arg), arg...), got), "%d bytes", size)
		}
	}
	job.Finish(nil)
	for _, n := range c.nodes {
		require.Zero(t, n.Store().Stats().Objects)
	}
}

// With one slot, a task that waits for another one must not keep it from running.
func TestYield(t *testing.T) {
	meet := make(chan struct{})
	c := newCluster(t, 0, map[string]TaskFunc{
		"wait": func(tc *TaskContext, _ []byte) ([]byte, error) {
			err := tc.Yield(func() error {
				return tc.Yield(func() error { // a Yield inside a Yield changes nothing
					select {
					case <-meet:
						return nil
					case <-tc.Done():
						return context.Cause(tc)
					}
				})
			})
			return nil, err
		},
		"go": func(*TaskContext, []byte) ([]byte, error) { close(meet); return nil, nil },
	}, func(c *Config) { c.CPUs = 1 })
	job := c.job()
	wait, err := job.Submit(TaskSpec{Func: "wait"})
	require.NoError(t, err)
	_, err = job.Submit(TaskSpec{Func: "go"})
	require.NoError(t, err)
	_, err = wait.Wait(testContext(t))
	require.NoError(t, err)
	job.Finish(nil)
	c.quiet()
}

// A task that is cancelled while it wants its slot back ends at once, though
// another one keeps the slot.
func TestYieldCancelled(t *testing.T) {
	hog, yielded := make(chan struct{}), make(chan struct{})
	c := newCluster(t, 0, map[string]TaskFunc{
		"yield": func(tc *TaskContext, _ []byte) ([]byte, error) {
			err := tc.Yield(func() error { <-yielded; return nil })
			return nil, err
		},
		"hog": func(*TaskContext, []byte) ([]byte, error) { close(yielded); <-hog; return nil, nil },
	}, func(c *Config) { c.CPUs = 1 })
	defer close(hog)
	job := c.job()
	yield, err := job.Submit(TaskSpec{Func: "yield"})
	require.NoError(t, err)
	eventually(t, func() bool { _, w := c.head.runner.counts(); return w == 1 })
	_, err = job.Submit(TaskSpec{Func: "hog"})
	require.NoError(t, err)
	<-yielded
	eventually(t, func() bool { r, w := c.head.runner.counts(); return r == 1 && w == 1 })
	yield.Cancel()
	_, err = yield.Wait(testContext(t))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, TaskCancelled, yield.State())
	hog <- struct{}{}
	job.Finish(nil)
}

// A task that has left its slot ends though another one keeps that.
func TestLeave(t *testing.T) {
	hog, hogged := make(chan struct{}), make(chan struct{})
	c := newCluster(t, 0, map[string]TaskFunc{
		"leave": func(tc *TaskContext, _ []byte) ([]byte, error) {
			tc.Leave()
			tc.Leave()
			return nil, tc.Yield(func() error { <-hogged; return nil })
		},
		"hog": func(*TaskContext, []byte) ([]byte, error) { close(hogged); <-hog; return nil, nil },
	}, func(c *Config) { c.CPUs = 1 })
	job := c.job()
	tasks, err := job.SubmitAll([]TaskSpec{{Func: "leave"}, {Func: "hog"}})
	require.NoError(t, err)
	_, err = tasks[0].Wait(testContext(t))
	require.NoError(t, err)
	close(hog)
	_, err = tasks[1].Wait(testContext(t))
	require.NoError(t, err)
	job.Finish(nil)
	c.quiet()
}

// Never more tasks work than there are slots, and all of them get through.
func TestSlotsAreShared(t *testing.T) {
	var working, peak, done atomic.Int64
	work := func() {
		now := working.Add(1)
		for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
		}
		time.Sleep(50 * time.Microsecond)
		working.Add(-1)
	}
	c := newCluster(t, 0, map[string]TaskFunc{
		"work": func(tc *TaskContext, _ []byte) ([]byte, error) {
			for range 10 {
				work()
				if err := tc.Yield(func() error { time.Sleep(20 * time.Microsecond); return nil }); err != nil {
					return nil, err
				}
			}
			done.Add(1)
			return nil, nil
		},
	}, func(c *Config) { c.CPUs = 3 })
	job := c.job()
	var tasks []*Task
	for range 60 {
		task, err := job.Submit(TaskSpec{Func: "work"})
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	for _, task := range tasks {
		_, err := task.Wait(testContext(t))
		require.NoError(t, err)
	}
	job.Finish(nil)
	require.Equal(t, int64(60), done.Load())
	require.LessOrEqual(t, peak.Load(), int64(3))
	c.quiet()
}

// Whatever ends a job ends its tasks on every node, soon.
func TestJobEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		end   func(c *cluster, job *Job, cancel context.CancelFunc)
		state JobState
	}{
		{"client leaves", func(_ *cluster, job *Job, cancel context.CancelFunc) { cancel() }, JobStopped},
		{"stopped", func(c *cluster, job *Job, _ context.CancelFunc) {
			conn, err := Dial(testContext(c.t), c.head.Address(), "secret")
			require.NoError(c.t, err)
			defer conn.Close()
			require.NoError(c.t, StopJob(testContext(c.t), conn, job.ID(), "not wanted any more"))
			require.ErrorIs(c.t, StopJob(testContext(c.t), conn, "job-none", ""), ErrJobUnknown)
			list, err := ListJobs(testContext(c.t), conn)
			require.NoError(c.t, err)
			require.Len(c.t, list, 1)
		}, JobStopped},
		{"finished with a long reason", func(_ *cluster, job *Job, _ context.CancelFunc) {
			job.cancel(errors.New(strings.Repeat("\xff", 2*MaxMessage)))
		}, JobFailed},
		{"finished", func(_ *cluster, job *Job, _ context.CancelFunc) { job.Finish(errors.New("enough")) }, JobFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCluster(t, 2, map[string]TaskFunc{"block": block}, nil)
			ctx, cancel := context.WithCancel(testContext(t))
			defer cancel()
			job, err := c.head.NewJob(ctx, JobSpec{Name: test.name})
			require.NoError(t, err)
			var tasks []*Task
			for range 5 {
				for _, n := range c.nodes {
					task, err := job.Submit(TaskSpec{Func: "block", Node: n.ID()})
					require.NoError(t, err)
					tasks = append(tasks, task)
				}
			}
			eventually(t, func() bool {
				for _, task := range tasks {
					if task.State() != TaskStarted {
						return false
					}
				}
				return true
			})
			begin := time.Now()
			test.end(c, job, cancel)
			<-job.Context().Done()
			for _, task := range tasks {
				_, err := task.Wait(testContext(t))
				require.Error(t, err)
				require.Equal(t, TaskCancelled, task.State(), "%v", err)
			}
			t.Logf("its tasks have ended after %v", time.Since(begin))
			job.Finish(context.Cause(job.Context()))
			require.Equal(t, test.state, job.Info().State)
			for _, p := range c.probe {
				require.True(t, p.sawEnd(job.ID()))
			}
			c.quiet()
		})
	}
}

// A job whose owner has vanished is ended by the head.
func TestOrphan(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, map[string]TaskFunc{"block": block}, nil)
	c.head.jobs.grace = 200 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	job, err := c.head.NewJob(ctx, JobSpec{})
	require.NoError(t, err)
	_, err = job.Submit(TaskSpec{Func: "block", Node: c.nodes[1].ID()})
	require.NoError(t, err)
	cancel()
	c.quiet()
	select {
	case <-job.ended:
	case <-time.After(patience):
		t.Fatal("nobody ended the job")
	}
	require.Equal(t, JobStopped, job.Info().State)
	require.True(t, c.probe[1].sawEnd(job.ID()))
}

// A task that ignores the end of its job may end late: what it makes until then is
// dropped all the same.
func TestStubbornTask(t *testing.T) {
	running, release, stored := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	c := newCluster(t, 1, map[string]TaskFunc{
		"deaf": func(tc *TaskContext, _ []byte) ([]byte, error) {
			close(running)
			<-release
			_, err := tc.Node.Store().Put(string(tc.Job), make([]byte, 1<<20))
			stored <- err
			return nil, err
		},
	}, nil)
	worker := c.nodes[1]
	job := c.job()
	_, err := job.Submit(TaskSpec{Func: "deaf", Node: worker.ID()})
	require.NoError(t, err)
	<-running

	// What endJob does once it has lost its patience.
	worker.runner.refuse(job.ID(), ErrJobEnded)
	worker.engine.endJob(job.ID(), time.Millisecond)
	worker.runner.mu.Lock()
	worker.runner.ended[job.ID()].dropped = true
	worker.runner.mu.Unlock()
	worker.runner.drop(job.ID())

	close(release)
	c.quiet()
	require.ErrorIs(t, <-stored, objectstore.ErrOwnerEnded, "the store holds nothing for a job that has ended")
	eventually(t, func() bool {
		c.probe[1].mu.Lock()
		defer c.probe[1].mu.Unlock()
		return c.probe[1].ended[job.ID()] == 2
	}, "services hear of it again")
	job.Finish(nil)
}

// A node that is lost takes its tasks along, and the contexts of the jobs that
// use it; other jobs go on.
func TestNodeLost(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, map[string]TaskFunc{"block": block}, quick)
	hit, spared := c.job(), c.job()
	lost, err := hit.Submit(TaskSpec{Func: "block", Node: c.nodes[1].ID()})
	require.NoError(t, err)
	other, err := spared.Submit(TaskSpec{Func: "block", Node: c.nodes[2].ID()})
	require.NoError(t, err)
	c.nodes[1].fail(errors.New("test"))

	_, err = lost.Wait(testContext(t))
	require.ErrorIs(t, err, ErrNodeDead)
	require.ErrorContains(t, err, string(c.nodes[1].ID()))
	<-hit.Context().Done()
	require.ErrorIs(t, context.Cause(hit.Context()), ErrNodeDead)
	require.NoError(t, spared.Context().Err())
	require.Contains(t, []TaskState{TaskPending, TaskStarted}, other.State())
	_, err = hit.Submit(TaskSpec{Func: "block"})
	require.ErrorIs(t, err, ErrNodeDead)
	late, err := spared.Submit(TaskSpec{Func: "block", Node: c.nodes[1].ID()})
	require.NoError(t, err)
	_, err = late.Wait(testContext(t))
	require.ErrorIs(t, err, ErrNodeDead)
	hit.Finish(err)
	require.Equal(t, JobFailed, hit.Info().State)
	spared.Finish(nil)
	c.quiet()
}

// A job that wants to hear of a lost node goes on with its other tasks.
func TestNodeLostToOneThatGoesOn(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	c := newCluster(t, 2, map[string]TaskFunc{"wait": func(tc *TaskContext, _ []byte) ([]byte, error) {
		select {
		case <-release:
			return []byte("done"), nil
		case <-tc.Done():
			return nil, context.Cause(tc)
		}
	}}, quick)
	heard := make(chan error, 2)
	job, err := c.head.NewJob(testContext(t), JobSpec{Name: "goes on", NodeLost: func(err error) { heard <- err }})
	require.NoError(t, err)
	tasks, err := job.SubmitAll([]TaskSpec{{Func: "wait", Node: c.nodes[1].ID()}, {Func: "wait", Node: c.nodes[2].ID()}})
	require.NoError(t, err)
	eventually(t, func() bool { return tasks[0].State() == TaskStarted }, "it started")
	c.nodes[1].fail(errors.New("test"))

	err = <-heard
	require.ErrorIs(t, err, ErrNodeDead)
	require.ErrorContains(t, err, string(c.nodes[1].ID()))
	_, err = tasks[0].Wait(testContext(t))
	require.ErrorIs(t, err, ErrNodeDead)
	close(release)
	result, err := tasks[1].Wait(testContext(t))
	require.NoError(t, err)
	require.Equal(t, "done", string(result))
	require.NoError(t, job.Context().Err())
	job.Finish(nil)
	require.Equal(t, JobSucceeded, job.Info().State)
	require.Empty(t, heard)
	c.quiet()
}

// Twenty jobs at once, two of which may run: all get through, in order.
func TestJobsQueue(t *testing.T) {
	var running, peak atomic.Int64
	c := newCluster(t, 1, map[string]TaskFunc{
		"work": func(*TaskContext, []byte) ([]byte, error) { time.Sleep(time.Millisecond); return nil, nil },
	}, func(c *Config) { c.MaxJobs = 2 })
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			job, err := c.head.NewJob(testContext(t), JobSpec{Name: fmt.Sprint(i)})
			if err != nil {
				t.Errorf("job %d: %v", i, err)
				return
			}
			now := running.Add(1)
			for p := peak.Load(); now > p && !peak.CompareAndSwap(p, now); p = peak.Load() {
			}
			mu.Lock()
			order = append(order, job.spec.Name)
			mu.Unlock()
			task, err := job.Submit(TaskSpec{Func: "work"})
			if err == nil {
				_, err = task.Wait(testContext(t))
			}
			running.Add(-1)
			job.Finish(err)
		})
	}
	all.Wait()
	require.Len(t, order, 20)
	require.LessOrEqual(t, peak.Load(), int64(2))
	jobs := c.head.Jobs()
	require.Len(t, jobs, 20)
	for i, info := range jobs {
		require.Equal(t, JobSucceeded, info.State, info.Error)
		if i > 0 {
			require.False(t, info.Started.Before(jobs[i-1].Started), "first come, first served")
		}
	}
	c.quiet()
}

func TestPendingJobGivesUp(t *testing.T) {
	c := newCluster(t, 0, nil, func(c *Config) { c.MaxJobs = 1 })
	first := c.job()
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error)
	go func() {
		_, err := c.head.NewJob(ctx, JobSpec{Name: "second"})
		errs <- err
	}()
	eventually(t, func() bool { return len(c.head.Jobs()) == 2 })
	require.Equal(t, JobPending, c.head.Jobs()[1].State)
	cancel()
	require.ErrorIs(t, <-errs, context.Canceled)
	require.Equal(t, JobStopped, c.head.Jobs()[1].State)
	go func() {
		_, err := c.head.NewJob(context.Background(), JobSpec{Name: "third"})
		errs <- err
	}()
	eventually(t, func() bool { return len(c.head.Jobs()) == 3 })
	require.NoError(t, c.head.StopJob(c.head.Jobs()[2].ID, "no"))
	require.ErrorIs(t, <-errs, ErrJobStopped)
	first.Finish(nil)
	c.job().Finish(nil) // the queue is empty
}

// A job that comes after another one has its place, whoever waits, and whether or not it was cancelled.
func TestJobAfterAnother(t *testing.T) {
	c := newCluster(t, 0, nil, func(c *Config) { c.MaxJobs = 1 })
	first, err := c.head.NewJob(context.Background(), JobSpec{Name: "first", Grace: time.Minute})
	require.NoError(t, err)
	jobs := make(chan *Job)
	go func() {
		j, _ := c.head.NewJob(context.Background(), JobSpec{Name: "waits"})
		jobs <- j
	}()
	require.Eventually(t, func() bool { return len(c.head.Jobs()) == 2 }, 5*time.Second, time.Millisecond)
	require.NoError(t, c.head.StopJob(first.ID(), "no"))
	second, err := c.head.NewJob(context.Background(), JobSpec{Name: "second", After: first})
	require.NoError(t, err)
	first.Finish(nil)
	second.Park() // whose place goes on, too
	waits := <-jobs
	third, err := c.head.NewJob(context.Background(), JobSpec{Name: "third", After: second})
	require.NoError(t, err)
	second.Finish(nil)
	waits.Finish(nil)
	third.Finish(nil)
	_, err = c.head.NewJob(testContext(t), JobSpec{After: third}) // it has no place any more, and there is one
	require.NoError(t, err)
	for _, j := range c.head.jobs.live {
		j.Finish(nil)
	}
	require.Zero(t, c.head.jobs.parked)
}

func TestStopOfAnEndedJob(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	job, err := c.head.NewJob(testContext(t), JobSpec{})
	require.NoError(t, err)
	job.Finish(nil)
	conn, err := Dial(testContext(t), c.head.Address(), "secret")
	require.NoError(t, err)
	defer conn.Close()
	require.ErrorIs(t, StopJob(testContext(t), conn, job.ID(), ""), ErrJobEnded)
	list, err := ListJobs(testContext(t), conn)
	require.NoError(t, err)
	require.Equal(t, JobSucceeded, list[0].State)
}

func TestJobsAreMadeOnTheHead(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	_, err := c.nodes[1].NewJob(testContext(t), JobSpec{})
	require.ErrorIs(t, err, ErrNotHead)
	require.ErrorIs(t, c.nodes[1].StopJob("job-none", ""), ErrNotHead)
	require.ErrorIs(t, c.head.StopJob("job-none", ""), ErrJobUnknown)
	require.Empty(t, c.nodes[1].Jobs())
}

// A node that never got the order to end a job learns with a heartbeat that it has ended, and drops what it has of it.
func TestMissedEnd(t *testing.T) {
	t.Parallel()
	stored := make(chan error, 2)
	c := newCluster(t, 1, map[string]TaskFunc{
		"store": func(tc *TaskContext, _ []byte) ([]byte, error) {
			_, err := tc.Node.Store().Put(string(tc.Job), make([]byte, 1<<20))
			stored <- err
			return nil, tc.Yield(func() error { <-tc.Done(); return context.Cause(tc) })
		},
	}, func(c *Config) {
		c.Heartbeat = 100 * time.Millisecond
		c.Faults = NewFaults(1, Fault{Kind: "EndJob", Lose: 1}, Fault{Kind: "Stop", Lose: 1})
	})
	c.head.jobs.patience = 50 * time.Millisecond
	ended, lives := c.job(), c.job()
	for _, job := range []*Job{ended, lives} {
		_, err := job.Submit(TaskSpec{Func: "store", Node: c.nodes[1].ID()})
		require.NoError(t, err)
		require.NoError(t, <-stored)
	}
	ended.Finish(nil)
	eventually(t, func() bool { return c.probe[1].sawEnd(ended.ID()) })
	require.EqualValues(t, 1, c.nodes[1].Store().Stats().Objects, "what lives keeps what it has")
	require.Len(t, c.nodes[1].engine.jobs(), 1)
	lives.Finish(nil)
	eventually(t, func() bool { return c.nodes[1].Store().Stats().Objects == 0 })
	c.quiet()
}
