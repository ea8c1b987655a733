package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"manta/actors/core"
	"manta/actors/internal/wire"
)

// orphanGrace is how long the owner of a cancelled job has to finish it.
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
	asks      group         // orders on their way

	// guarded by jobs.mu:
	state     JobState
	started   time.Time
	over      time.Time
	err       error
	closing   bool                // no more tasks
	parked    bool                // gave its admission away
	used      map[NodeID]struct{} // nodes that got tasks
	open      map[TaskID]*Task
	idle      chan struct{} // when closing: closed when no task is open
	tasks     int
	tasksDone int
	stopWatch func() bool
	orphan    *time.Timer
}

func (j *Job) mu() *sync.Mutex { return &j.jobs.mu }

// ID names the job in the cluster.
func (j *Job) ID() JobID { return j.id }

// Context ends when the job is cancelled, finishes, or a node that it uses is dead;
// its cause says which.
func (j *Job) Context() context.Context { return j.ctx }

// Park gives the job's admission to the next in line, for good: its owner waits
// for somebody outside the cluster, and others must not wait for that. The job
// goes on as before. Beyond maxParked of them jobs keep what they have.
func (j *Job) Park() { j.jobs.park(j) }

// TaskContext is for the owner's own work in the job, on the head. It holds no
// slot: its Yield just waits.
func (j *Job) TaskContext() *TaskContext {
	return &TaskContext{Context: j.ctx, Job: j.id, Task: TaskID(j.id) + ".owner", Node: j.jobs.n}
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
		tasks, done := j.typed()
		info.Tasks, info.TasksDone = info.Tasks+tasks, info.TasksDone+done
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
		j.orphan = time.AfterFunc(j.jobs.grace, func() { j.Finish(cause) })
		j.cancelTasks(cause)
		j.jobs.n.engine.brain.do(func(c *core.Core) { c.CloseJob(core.JobID(j.id)) })
	}
}

// typed counts the job's typed tasks and calls, and those that have ended.
func (j *Job) typed() (tasks, done int) {
	j.jobs.n.engine.brain.do(func(c *core.Core) { tasks, done = c.JobTasks(core.JobID(j.id)) })
	return tasks, done
}

// cancelTasks tells every node that the job uses to cancel its tasks. It runs
// under mu.
func (j *Job) cancelTasks(cause error) {
	for node := range j.used {
		j.order(node, &wire.CancelJob{Job: string(j.id), Reason: cleanText(cause.Error())})
	}
}

// order sends a node an order until it has arrived. It does not wait.
func (j *Job) order(node NodeID, m proto.Message) {
	n := j.jobs.n
	j.asks.goRun(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), endWait)
		defer cancel()
		_, err := n.Ask(ctx, Address{node, tasksActor}, m)
		if err != nil && !errors.Is(err, ErrNodeDead) && !errors.Is(err, ErrClosed) {
			n.log.Warn("an order did not arrive", "order", fmt.Sprintf("%T", m), "job", j.id, "node", node, "error", err)
		}
	})
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
		idle := make(chan struct{})
		if len(j.open) == 0 {
			close(idle)
		} else {
			j.idle = idle
		}
		if j.stopWatch != nil {
			j.stopWatch()
		}
		if len(j.open) > 0 {
			j.cancelTasks(fmt.Errorf("%w: %s", ErrJobEnded, j.id))
		}
		j.mu().Unlock()

		cause := context.Cause(j.ctx) // nil if it is Finish that ends the context
		j.cancel(fmt.Errorf("%w: %s", ErrJobEnded, j.id))
		brain := j.jobs.n.engine.brain
		brain.do(func(c *core.Core) { c.CloseJob(core.JobID(j.id)) })
		j.waitIdle(idle)
		if ran {
			j.endEverywhere()
		}
		tasks, done := j.typed()
		brain.do(func(c *core.Core) { c.EndJob(core.JobID(j.id)) })
		j.asks.close(2 * endWait)

		j.mu().Lock()
		j.over, j.err = time.Now(), err
		j.tasks, j.tasksDone = j.tasks+tasks, j.tasksDone+done
		switch {
		case err == nil:
			j.state = JobSucceeded
		case errors.Is(err, ErrJobStopped), errors.Is(cause, ErrJobStopped):
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

// waitIdle waits until no task is open. Tasks that do not end in time fail here;
// what they make later their nodes drop.
func (j *Job) waitIdle(idle chan struct{}) {
	timer := time.NewTimer(endWait)
	defer timer.Stop()
	select {
	case <-idle:
		return
	case <-timer.C:
	}
	j.mu().Lock()
	var stuck []*Task
	for _, t := range j.open {
		stuck = append(stuck, t)
	}
	j.mu().Unlock()
	for _, t := range stuck {
		j.jobs.n.log.Error("task does not end after it was cancelled", "job", j.id, "task", t.spec.Name, "node", t.node)
		t.end(nil, fmt.Errorf("%w: it did not end within %v after it was cancelled", ErrTimeout, endWait))
	}
}

// endEverywhere makes every node drop the job, and waits until they have.
func (j *Job) endEverywhere() {
	var all sync.WaitGroup
	n := j.jobs.n
	for _, info := range n.peers.list() {
		if info.State == NodeDead {
			continue
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(n.ctx), endWait+5*time.Second)
			defer cancel()
			_, err := n.Ask(ctx, Address{info.ID, tasksActor}, &wire.EndJob{Job: string(j.id)})
			if err != nil && !errors.Is(err, ErrNodeDead) && !errors.Is(err, ErrClosed) {
				n.log.Warn("could not end a job on a node", "job", j.id, "node", info.ID, "error", err)
			}
		})
	}
	all.Wait()
}
