package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"manta/actors/core"
	"manta/actors/internal/wire"
)

// orphanGrace is how long the owner of a cancelled job has to finish it, unless it asked for more.
const orphanGrace = 5 * time.Second

// Job is a job on the head.
type Job struct {
	jobs      *jobs
	id        JobID
	spec      JobSpec
	ctx       context.Context
	cancel    context.CancelCauseFunc
	admitted  chan struct{} // closed when admitted
	submitted time.Time
	finishing sync.Once
	ended     chan struct{} // closed when finished

	// guarded by jobs.mu:
	state     JobState
	started   time.Time
	over      time.Time
	err       error
	closing   bool   // no more tasks
	parked    bool   // gave its admission away
	stopped   error  // why, by request
	driver    NodeID // where its driver is; "": here
	tasks     int    // when it is over, as tasksDone
	tasksDone int
	stopWatch func() bool
	orphan    *time.Timer
}

func (j *Job) mu() *sync.Mutex { return &j.jobs.mu }

// ID names the job in the cluster.
func (j *Job) ID() JobID { return j.id }

// Context ends when the job is cancelled, finishes, or a node that it uses is dead (but see JobSpec.NodeLost);
// its cause says which.
func (j *Job) Context() context.Context { return j.ctx }

// stop ends the job's context, and notes why.
func (j *Job) stop(reason string) {
	err := fmt.Errorf("%w: %s", ErrJobStopped, reason)
	j.mu().Lock()
	if j.stopped == nil {
		j.stopped = err
	}
	j.mu().Unlock()
	j.cancel(err)
}

// Stopped is why the job was stopped by request, if it was: also when its context had ended before, for another cause.
func (j *Job) Stopped() error {
	j.mu().Lock()
	defer j.mu().Unlock()
	return j.stopped
}

// Park gives the job's admission to the next in line, for good: its owner waits
// for somebody outside the cluster, and others must not wait for that. The job
// goes on as before. Beyond maxParked of them jobs keep what they have.
func (j *Job) Park() { j.jobs.park(j) }

// TaskContext is for the owner's own work in the job, on the head. It holds no
// slot: its Yield just waits.
func (j *Job) TaskContext() *TaskContext {
	return &TaskContext{Context: j.ctx, Job: j.id, Task: TaskID(j.id), Node: j.jobs.n}
}

// Info describes the job.
func (j *Job) Info() JobInfo {
	j.mu().Lock()
	defer j.mu().Unlock()
	return j.infoLocked()
}

func (j *Job) infoLocked() JobInfo {
	info := JobInfo{
		ID: j.id, Name: j.spec.Name, User: j.spec.User, State: j.state,
		Submitted: j.submitted, Started: j.started, Ended: j.over, Tasks: j.tasks, TasksDone: j.tasksDone,
	}
	if j.over.IsZero() {
		info.Tasks, info.TasksDone = j.count()
	}
	if j.err != nil {
		info.Error = j.err.Error()
	}
	return info
}

// cancelled runs once the job's context has ended before its Finish: it ends the
// tasks at once, and later the job if its owner does not.
func (j *Job) cancelled() {
	cause := context.Cause(j.ctx)
	j.mu().Lock()
	defer j.mu().Unlock()
	if !j.closing {
		j.orphan = time.AfterFunc(cmp.Or(j.spec.Grace, j.jobs.grace), func() { j.Finish(cause) })
		j.closeTasks(cause)
	}
}

// closeTasks ends the job's tasks and lets no more begin. It does not wait.
func (j *Job) closeTasks(cause error) {
	reason := cleanText(cause.Error())
	j.jobs.n.engine.brain.do(func(c *core.Core) { c.CloseJob(core.JobID(j.id), reason) })
}

// count counts the job's tasks and calls, and those that have ended.
func (j *Job) count() (tasks, done int) {
	j.jobs.n.engine.brain.do(func(c *core.Core) { tasks, done = c.JobTasks(core.JobID(j.id)) })
	return tasks, done
}

// Finish ends the job: SUCCEEDED without an error, STOPPED when it was stopped or
// its client went away, else FAILED. What still runs is cancelled and waited for;
// then every node drops what it holds for the job. Tasks that ignore that they were
// cancelled hold Finish up for some seconds, not for ever. A further call waits for
// the first.
func (j *Job) Finish(err error) {
	j.finish(err)
	<-j.ended
}

func (j *Job) finish(err error) {
	j.finishing.Do(func() {
		defer close(j.ended)
		j.mu().Lock()
		j.closing = true
		if j.orphan != nil {
			j.orphan.Stop()
		}
		ran := j.state == JobRunning
		if j.stopWatch != nil {
			j.stopWatch()
		}
		j.mu().Unlock()

		cause := context.Cause(j.ctx) // nil if it is Finish that ends the context
		over := fmt.Errorf("%w: %s", ErrJobEnded, j.id)
		j.cancel(over)
		j.closeTasks(over)
		if ran {
			j.endEverywhere()
		}
		tasks, _ := j.count()
		j.jobs.n.engine.brain.do(func(c *core.Core) { c.EndJob(core.JobID(j.id)) })

		j.mu().Lock()
		j.over, j.err = time.Now(), err
		j.tasks, j.tasksDone = tasks, tasks
		switch {
		case err == nil:
			j.state = JobSucceeded
		case j.stopped != nil, errors.Is(err, ErrJobStopped), errors.Is(cause, ErrJobStopped):
			j.state = JobStopped
		case errors.Is(err, ErrNodeDead): // also when it is the error of a task that was cancelled because of it
			j.state = JobFailed
		case errors.Is(err, context.Canceled), errors.Is(cause, context.Canceled):
			j.state = JobStopped
		default:
			j.state = JobFailed
		}
		j.mu().Unlock()
		j.jobs.remove(j)
	})
}

// endEverywhere makes every node drop the job, and waits until they have, or have not answered for long: such a node hears of it
// with a heartbeat, if it lives.
func (j *Job) endEverywhere() {
	var all sync.WaitGroup
	n := j.jobs.n
	for _, info := range n.peers.list() {
		if info.State == NodeDead {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), j.jobs.patience)
			defer cancel()
			_, err := n.Ask(ctx, Address{info.ID, jobsActor}, &wire.EndJob{Job: string(j.id)})
			if err != nil && !errors.Is(err, ErrNodeDead) && !errors.Is(err, ErrClosed) {
				n.log.Warn("could not end a job on a node", "job", j.id, "node", info.ID, "error", err)
			}
		})
	}
	all.Wait()
}
