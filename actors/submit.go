package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"manta/actors/internal/wire"
)

// startWait is how long a node may take to confirm that it has a task.
const startWait = 30 * time.Second

// TaskSpec describes a task to be.
type TaskSpec struct {
	Name string // for people; default Func
	Func string // name in Config.Tasks of the node that runs it
	Arg  []byte // must not change after Submit
	Node NodeID // where it must run; "" lets the scheduler choose
}

// TaskState is where a task stands, as its job knows.
type TaskState string

const (
	TaskPending   TaskState = "PENDING" // on its way to its node
	TaskStarted   TaskState = "STARTED" // its node has it: it queues, runs or waits there
	TaskSucceeded TaskState = "SUCCEEDED"
	TaskFailed    TaskState = "FAILED"
	TaskCancelled TaskState = "CANCELLED"
)

// Task is a task of a job, as its owner on the head sees it.
type Task struct {
	job  *Job
	id   TaskID
	spec TaskSpec
	node NodeID
	done chan struct{} // closed when it has ended

	started bool   // guarded by jobs.mu
	result  []byte // immutable once done
	err     error  // immutable once done
}

// Submit places a task and has it started. It does not wait: a node that cannot
// start it fails the task. It errs when there is no place for the task, or the
// job has ended.
func (j *Job) Submit(spec TaskSpec) (*Task, error) {
	spec.Name = cleanText(cmp.Or(spec.Name, spec.Func))
	spec.Func = cleanText(spec.Func)
	js := j.jobs
	js.mu.Lock()
	if j.closing || j.state != JobRunning {
		js.mu.Unlock()
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	if j.ctx.Err() != nil {
		js.mu.Unlock()
		return nil, context.Cause(j.ctx)
	}
	id := TaskID(fmt.Sprintf("%s.%d", j.id, j.tasks))
	node, err := js.placement.Place(string(j.id), string(id), string(spec.Node))
	if err != nil {
		js.mu.Unlock()
		if info, ok := js.n.peers.get(spec.Node); ok && info.State == NodeDead {
			err = &NodeDeadError{Node: spec.Node, Reason: info.Reason}
		}
		return nil, fmt.Errorf("actors: task %s: %w", spec.Name, err)
	}
	t := &Task{job: j, id: id, spec: spec, node: NodeID(node), done: make(chan struct{})}
	j.tasks++
	j.used[t.node] = struct{}{}
	j.open[id] = t
	js.open[id] = t
	js.mu.Unlock()
	if !j.asks.goRun(t.start) {
		t.end(nil, ErrJobEnded)
	}
	return t, nil
}

// start has the task's node start it.
func (t *Task) start() {
	n := t.job.jobs.n
	ctx, cancel := context.WithTimeout(t.job.ctx, startWait)
	defer cancel()
	arg, err := n.pack(string(t.job.id), t.spec.Arg)
	if err == nil {
		_, err = n.Ask(ctx, Address{t.node, tasksActor}, &wire.StartTask{
			Job: string(t.job.id), Task: string(t.id), Name: t.spec.Name, Func: t.spec.Func, Arg: arg,
		})
	}
	if err != nil {
		if errors.Is(err, ErrTimeout) {
			t.job.order(t.node, &wire.CancelTask{Job: string(t.job.id), Task: string(t.id), Reason: "its start was not confirmed"})
		}
		t.end(nil, err)
		return
	}
	t.job.mu().Lock()
	t.started = true
	t.job.mu().Unlock()
}

// end settles the task; the first end counts.
func (t *Task) end(result []byte, err error) {
	j, js := t.job, t.job.jobs
	js.mu.Lock()
	defer js.mu.Unlock()
	if _, ok := js.open[t.id]; !ok {
		return
	}
	delete(js.open, t.id)
	js.placement.Done(string(t.id))
	delete(j.open, t.id)
	j.tasksDone++
	if err != nil {
		err = &TaskError{Task: t.id, Name: t.spec.Name, Node: t.node, Err: err}
	}
	t.result, t.err = result, err
	close(t.done)
	if j.idle != nil && len(j.open) == 0 {
		close(j.idle)
		j.idle = nil
	}
}

// ID names the task in the cluster.
func (t *Task) ID() TaskID { return t.id }

// Node is where it runs.
func (t *Task) Node() NodeID { return t.node }

// Done is closed when the task has ended.
func (t *Task) Done() <-chan struct{} { return t.done }

// Wait waits for the task's result. A task's failure is a TaskError that names
// the task and its node; if the node was lost it is ErrNodeDead.
func (t *Task) Wait(ctx context.Context) ([]byte, error) {
	select {
	case <-t.done:
		return t.result, t.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Cancel ends the task's context, with the reason. It does not wait.
func (t *Task) Cancel(reason string) {
	t.job.mu().Lock()
	defer t.job.mu().Unlock()
	if _, ok := t.job.open[t.id]; ok {
		t.job.order(t.node, &wire.CancelTask{Job: string(t.job.id), Task: string(t.id), Reason: cleanText(reason)})
	}
}

// State tells where the task stands.
func (t *Task) State() TaskState {
	t.job.mu().Lock()
	defer t.job.mu().Unlock()
	select {
	case <-t.done:
	default:
		if t.started {
			return TaskStarted
		}
		return TaskPending
	}
	switch {
	case t.err == nil:
		return TaskSucceeded
	case errors.Is(t.err, context.Canceled), errors.Is(t.err, ErrJobEnded):
		return TaskCancelled
	}
	return TaskFailed
}
