package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"manta/actors/internal/wire"
)

const (
	// tasksActor receives the head's orders about tasks and jobs.
	tasksActor = "@tasks"
	// endWait is how long the end of a job waits for tasks that were cancelled.
	endWait = 10 * time.Second
	// keepEnded is how many ended jobs are remembered, to refuse late orders.
	keepEnded = 4096
)

// runner runs this node's tasks. Every task is an actor with a goroutine for its
// function, which may spend its life in C; slots bound how many work at a time.
type runner struct {
	n     *Node
	slots *slots
	live  group // functions that run, and results on their way

	mu    sync.Mutex
	tasks map[TaskID]*running           // guarded by mu
	jobs  map[JobID]map[TaskID]*running // guarded by mu
	ended map[JobID]*endedJob           // guarded by mu
	order []JobID                       // guarded by mu; of ended
}

// endedJob is a job that gets no more tasks here.
type endedJob struct {
	cause   error // for new tasks
	dropped bool  // what the job held was released; tasks that end now release again
}

// running is one task on this node.
type running struct {
	start  *wire.StartTask
	head   NodeID
	f      TaskFunc
	ctx    context.Context
	cancel context.CancelCauseFunc
	pid    *actor.PID
	done   chan struct{} // closed when the function has returned
}

// Messages to a task's actor.
type (
	cancelTask struct{ cause error }
	taskEnded  struct{}
)

func newRunner(n *Node) *runner {
	return &runner{
		n: n, slots: newSlots(n.cfg.CPUs),
		tasks: make(map[TaskID]*running),
		jobs:  make(map[JobID]map[TaskID]*running),
		ended: make(map[JobID]*endedJob),
	}
}

func (r *runner) counts() (running, waiting int) { return r.slots.counts() }

// receive answers the orders of the head, in the tasks actor.
func (r *runner) receive(_ *Actor, d *delivery) {
	switch m := d.msg.(type) {
	case *wire.StartTask:
		d.reply(&wire.Ack{}, r.start(d.from, m))
	case *wire.CancelTask:
		r.cancel(TaskID(m.Task), fmt.Errorf("%w: %s", context.Canceled, m.Reason))
		d.reply(&wire.Ack{}, nil)
	case *wire.CancelJob:
		r.refuse(JobID(m.Job), fmt.Errorf("%w: %s", context.Canceled, m.Reason))
		d.reply(&wire.Ack{}, nil)
	case *wire.EndJob:
		ok := r.live.goRun(func() {
			r.endJob(JobID(m.Job))
			d.reply(&wire.Ack{}, nil)
		})
		if !ok {
			d.reply(nil, ErrClosed)
		}
	default:
		d.reply(nil, fmt.Errorf("actors: %T is no order about tasks", m))
	}
}

// start starts a task. Starting it again does nothing.
func (r *runner) start(head NodeID, m *wire.StartTask) error {
	f, ok := r.n.cfg.Tasks[m.Func]
	if !ok {
		return fmt.Errorf("%w: %s on node %s", ErrNoFunc, m.Func, r.n.id)
	}
	job, id := JobID(m.Job), TaskID(m.Task)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.ended[job]; ok {
		return e.cause
	}
	if _, ok := r.tasks[id]; ok {
		return nil
	}
	if !r.live.enter() {
		return ErrClosed
	}
	t := &running{start: m, head: head, f: f, done: make(chan struct{})}
	t.ctx, t.cancel = context.WithCancelCause(r.n.ctx)
	r.tasks[id] = t
	if r.jobs[job] == nil {
		r.jobs[job] = make(map[TaskID]*running)
	}
	r.jobs[job][id] = t
	r.slots.enter(m.Task)
	t.pid = r.n.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch m := c.Message().(type) {
		case *actor.Started:
			go r.run(t)
		case *cancelTask:
			t.cancel(m.cause)
		case *taskEnded:
			c.Stop(c.Self())
		}
	}))
	return nil
}

func (r *runner) cancel(id TaskID, cause error) {
	r.mu.Lock()
	t := r.tasks[id]
	r.mu.Unlock()
	if t != nil {
		r.n.system.Root.Send(t.pid, &cancelTask{cause})
	}
}

// refuse cancels a job's tasks and refuses new ones.
func (r *runner) refuse(job JobID, cause error) (tasks []*running) {
	r.mu.Lock()
	if _, ok := r.ended[job]; !ok {
		r.ended[job] = &endedJob{cause: cause}
		r.order = append(r.order, job)
		if len(r.order) > keepEnded {
			delete(r.ended, r.order[0])
			r.order = r.order[1:]
		}
	}
	for _, t := range r.jobs[job] {
		tasks = append(tasks, t)
	}
	r.mu.Unlock()
	for _, t := range tasks {
		r.n.system.Root.Send(t.pid, &cancelTask{cause})
	}
	return tasks
}

// refused says why a job gets no more tasks here; nil if it does.
func (r *runner) refused(job JobID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.ended[job]; ok {
		return e.cause
	}
	return nil
}

// endJob ends what is left of a job on this node and drops all that it held.
func (r *runner) endJob(job JobID) {
	tasks := r.refuse(job, fmt.Errorf("%w: %s", ErrJobEnded, job))
	wait := time.NewTimer(endWait)
	defer wait.Stop()
	for _, t := range tasks {
		select {
		case <-t.done:
			continue
		case <-wait.C:
			// When it does, it will drop what it has made since.
			r.n.log.Error("task does not end after it was cancelled", "job", job, "task", t.start.Name)
		}
		break
	}
	r.n.engine.endJob(job, endWait)
	r.mu.Lock()
	if e, ok := r.ended[job]; ok {
		e.dropped = true
	}
	r.mu.Unlock()
	r.drop(job)
}

// drop releases what a job holds on this node.
func (r *runner) drop(job JobID) {
	for _, s := range r.n.cfg.Services {
		s.JobEnded(job)
	}
	r.n.store.ReleaseOwner(string(job))
}

// run is a task's goroutine.
func (r *runner) run(t *running) {
	defer r.live.leave()
	result, err := r.call(t)
	r.slots.remove(t.start.Task)
	done := &wire.TaskDone{Job: t.start.Job, Task: t.start.Task, Attempt: t.start.Attempt}
	if err == nil {
		done.Result, err = r.n.pack(t.start.Job, result)
	}
	done.Failure = encodeError(err)
	t.cancel(nil)

	job, id := JobID(t.start.Job), TaskID(t.start.Task)
	r.mu.Lock()
	delete(r.tasks, id)
	delete(r.jobs[job], id)
	if len(r.jobs[job]) == 0 {
		delete(r.jobs, job)
	}
	e := r.ended[job]
	late := e != nil && e.dropped
	r.mu.Unlock()
	close(t.done)
	r.n.system.Root.Send(t.pid, &taskEnded{})
	if late {
		r.drop(job)
	}
	r.report(t.head, done)
}

// call runs the task's function with a slot.
func (r *runner) call(t *running) (result []byte, err error) {
	if err := r.slots.acquire(t.ctx, t.start.Task); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			r.n.log.Error("panic in a task", "task", t.start.Name, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, fmt.Errorf("%w: %v", ErrPanic, p)
		}
	}()
	arg, err := r.n.unpack(t.ctx, t.start.Arg)
	if err != nil {
		return nil, fmt.Errorf("argument: %w", err)
	}
	return t.f(&TaskContext{
		Context: t.ctx, Job: JobID(t.start.Job), Task: TaskID(t.start.Task),
		Attempt: int(t.start.Attempt), Node: r.n, slots: r.slots,
	}, arg)
}

// report tells the head of a task's end until it knows, or is gone.
func (r *runner) report(head NodeID, done *wire.TaskDone) {
	for {
		ctx, cancel := context.WithTimeout(r.n.ctx, time.Minute)
		_, err := r.n.Ask(ctx, Address{head, jobsActor}, done)
		cancel()
		if !errors.Is(err, ErrTimeout) {
			if err != nil && r.n.ctx.Err() == nil {
				r.n.log.Warn("could not report the end of a task", "task", done.Task, "error", err)
			}
			return
		}
	}
}

// close cancels every task and waits for them. It is false if some did not end
// within the time.
func (r *runner) close(limit time.Duration) bool {
	r.mu.Lock()
	for _, t := range r.tasks {
		t.cancel(ErrClosed)
	}
	r.mu.Unlock()
	return r.live.close(limit)
}
