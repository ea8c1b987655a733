package actors

import (
	"cmp"
	"context"
	"errors"
	"time"

	"manta/actors/core"
)

// TaskSpec describes a task that runs a function of its node's Config.Tasks.
type TaskSpec struct {
	Name string // for people; default Func
	Func string // name in Config.Tasks of the node that runs it
	Arg  []byte
	Node NodeID // where it must run; "" takes the node with the least to do
}

// TaskState is where a task stands.
type TaskState string

const (
	TaskPending   TaskState = "PENDING" // its gang waits for admission
	TaskStarted   TaskState = "STARTED" // it has its place: it is on its way there, queues for a slot, runs or waits
	TaskSucceeded TaskState = "SUCCEEDED"
	TaskFailed    TaskState = "FAILED"
	TaskCancelled TaskState = "CANCELLED"
)

// Task is a task of a job, as its owner on the head sees it.
type Task struct {
	job  *Job
	name string
	ref  *Ref[[]byte]
}

// Submit is SubmitAll of one task.
func (j *Job) Submit(spec TaskSpec) (*Task, error) {
	tasks, err := j.SubmitAll([]TaskSpec{spec})
	if err != nil {
		return nil, err
	}
	return tasks[0], nil
}

// SubmitAll submits a gang: tasks that may wait for one another, and so start together or, if one of them has no place,
// not at all. They are not tried again. It does not wait; it errs when the job has ended, or when an argument finds no room.
func (j *Job) SubmitAll(specs []TaskSpec) ([]*Task, error) {
	if err := j.mayRun(); err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, nil
	}
	c := j.client()
	first := c.rt.ids(len(specs))
	tasks := make([]*Task, len(specs))
	msgs := make([]any, len(specs))
	for i := range specs {
		s := &specs[i]
		name := cleanText(cmp.Or(s.Name, s.Func))
		opt := taskDefaults
		opt.Name, opt.Node, opt.Retries, opt.Gang, opt.GangSize = name, core.NodeID(s.Node), 0, first, int32(len(specs))
		spec, err := c.spec(launch{kind: core.KindTask, name: cleanText(s.Func), results: 1, opt: &opt}, []argument0{Val(s.Arg).(argument0)})
		if err != nil {
			return nil, err
		}
		spec.ID = first + core.ID(i)
		tasks[i] = &Task{job: j, name: name, ref: newRef[[]byte](c.s.own(spec.ID))}
		msgs[i] = &core.Submit{Spec: spec}
	}
	c.rt.send(msgs...)
	return tasks, nil
}

// mayRun says why the job takes no more tasks; nil if it does.
func (j *Job) mayRun() error {
	j.mu().Lock()
	defer j.mu().Unlock()
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	if j.closing || j.state != JobRunning {
		return ErrJobEnded
	}
	return nil
}

// client submits for the job's owner.
func (j *Job) client() *Client {
	rt := j.jobs.n.engine
	return &Client{rt: rt, s: rt.session(j.id), ctx: j.ctx}
}

// Wait waits for the task's result. A task's failure is a TaskError that names the task and its node; if the node was lost it
// is ErrNodeDead.
func (t *Task) Wait(ctx context.Context) ([]byte, error) {
	result, err := t.ref.Get(ctx)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return result, err
	}
	failed := &TaskError{Task: TaskID(t.ref.ID()), Name: t.name, Err: err}
	var run *RunError
	if errors.As(err, &run) {
		failed.Node = run.Node
	}
	return nil, failed
}

// Cancel ends the task's context. It does not wait. Before its gang has started it ends the gang.
func (t *Task) Cancel() { t.ref.Cancel() }

// State tells where the task stands.
func (t *Task) State() TaskState {
	if !t.ref.Ready() {
		started := false
		t.job.jobs.n.engine.brain.do(func(c *core.Core) { started = c.OnNode(t.ref.objectID()) })
		if started {
			return TaskStarted
		}
		return TaskPending
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err := t.ref.e.wait(ctx)
	switch {
	case err == nil:
		return TaskSucceeded
	case errors.Is(err, context.Canceled), errors.Is(err, ErrJobEnded):
		return TaskCancelled
	}
	return TaskFailed
}
