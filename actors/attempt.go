package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"manta/actors/core"
)

type attemptKey struct {
	id  core.ID
	try int32
}

// attempt is a task, an actor's making or a call that runs here.
type attempt struct {
	rt     *engine
	s      *session
	m      *core.Start
	ctx    lazyContext
	client Client
	places []*entry      // of actors that its arguments have handles of, held while it runs
	inst   *instance     // of an actor and its calls
	from   NodeID        // of the caller, when the call came straight from there; "": the head started it
	slot   string        // "": it needs none
	worker bool          // the slot is its worker's
	queued bool          // guarded by rt.mu; for a worker
	done   chan struct{} // guarded by rt.mu; made by who waits for the end

	mu    sync.Mutex
	waits int // guarded by mu; of its goroutines that wait
}

func (a *attempt) key() attemptKey { return attemptKey{a.m.Spec.ID, a.m.Attempt} }

// start begins an attempt that the head wants.
func (rt *engine) start(m *core.Start) { rt.begin(m, "", 0) }

// begin begins an attempt; of a call that came straight from another node, for that incarnation of the actor.
func (rt *engine) begin(m *core.Start, from NodeID, incarnation int32) {
	job := JobID(m.Spec.Job)
	if m.Spec.Kind == core.KindCreate && m.Spec.Opt.Detached {
		job = JobID(core.DetachedJob)
	}
	s := rt.session(job)
	a := &attempt{rt: rt, s: s, m: m, from: from}
	a.client = Client{rt: rt, s: s, parent: m.Spec.ID, attempt: a}
	a.ctx.parent, a.ctx.client = rt.n.ctx, &a.client
	a.hold(m.Places)
	rt.mu.Lock()
	err := s.ended
	if err == nil && !rt.running.enter() {
		err = ErrClosed
	}
	if err == nil && m.Spec.Kind == core.KindCall {
		if a.inst = rt.instances[m.Actor]; a.inst == nil || from != "" && a.inst.incarnation != incarnation {
			rt.running.leave()
			if from != "" {
				rt.mu.Unlock()
				rt.direct.reply(from, &core.Answer{ID: m.Spec.ID, Missed: true})
				return
			}
			err = fmt.Errorf("%w: it is not on node %s any more", ErrActorDead, rt.n.id)
		}
	}
	if err != nil {
		rt.mu.Unlock()
		a.unhold()
		f := toFailure(err, nil)
		f.System = true
		a.report(&core.Done{ID: m.Spec.ID, Attempt: m.Attempt, Failure: f})
		return
	}
	if m.Spec.Kind == core.KindCreate {
		a.inst = newInstance(rt, s, m)
		rt.instances[m.Actor] = a.inst
	}
	a.worker = m.Spec.Kind == core.KindTask && m.Spec.Opt.CPU == 1000 && m.Spec.Opt.Gang == 0
	share := m.Spec.Kind == core.KindTask && m.Spec.Opt.CPU > 0 && !a.worker
	if share {
		a.slot = "typed-" + strconv.FormatUint(uint64(m.Spec.ID), 36) + "." + strconv.Itoa(int(m.Attempt))
	}
	rt.attempts[a.key()] = a // and with it all that is set before
	if a.worker {
		rt.workers.put(a)
		rt.mu.Unlock()
		return
	}
	rt.mu.Unlock()
	if m.Spec.Kind == core.KindCall {
		a.inst.take(a)
		return
	}
	if share {
		rt.n.runner.slots.enterShare(a.slot, m.Spec.Opt.CPU)
	}
	go a.run()
}

// run runs the attempt on its own goroutine, and reports.
func (a *attempt) run() {
	begun := time.Now()
	results, err := a.work(&begun)
	nanos := time.Since(begun).Nanoseconds()
	a.rt.mu.Lock()
	delete(a.rt.attempts, a.key())
	ended, done := a.s.ended, a.done
	a.rt.mu.Unlock()
	if a.slot != "" && !a.worker {
		a.rt.n.runner.slots.remove(a.slot)
	}
	if err != nil && a.m.Spec.Kind == core.KindCreate {
		a.rt.stopActor(a.m.Actor, "it could not be made")
	}
	a.ctx.cancel(nil)
	a.unhold()
	m := &core.Done{ID: a.m.Spec.ID, Attempt: a.m.Attempt, Results: results, Nanos: nanos}
	if err != nil {
		m.Failure = a.failure(err)
	}
	switch {
	case ended != nil:
		a.rt.n.runner.dropLate(a.s.job)
	case err != nil && a.rt.n.ctx.Err() != nil:
		// It failed because its node ends, which is what the head will hear.
	default:
		a.report(m)
	}
	if done != nil {
		close(done)
	}
	a.rt.running.leave()
}

// hold takes handles of actors that the arguments have handles of, so that it is known where they live when these are used.
func (a *attempt) hold(places []core.Where) {
	if a.rt.direct == nil {
		return
	}
	for i := range places {
		a.places = append(a.places, a.s.learn(places[i].Actor))
		a.rt.direct.where(&places[i])
	}
}

func (a *attempt) unhold() {
	for _, e := range a.places {
		e.drop()
	}
	a.places = nil
}

// report tells who started it how an attempt ended.
func (a *attempt) report(m *core.Done) {
	if a.from != "" {
		a.answerCall(m)
		return
	}
	a.rt.send(m)
}

func (a *attempt) failure(err error) *core.Failure {
	f := toFailure(err, a.m.Spec.Opt)
	var arg *lostArgument
	if errors.As(err, &arg) {
		f.System, f.Lost, f.LostAt = true, arg.id, arg.at
	}
	if errors.Is(err, ErrClosed) || errors.Is(err, errSystem) {
		f.System = true
	}
	return f
}

// errSystem marks what is no fault of the function.
var errSystem = errors.New("actors: it was the system")

// lostArgument says that an argument's value could not be had.
type lostArgument struct {
	id  core.ID
	at  core.NodeID
	err error
}

func (e *lostArgument) Error() string { return fmt.Sprintf("argument: %v", e.err) }
func (e *lostArgument) Unwrap() error { return e.err }

// work calls the function once it may run.
func (a *attempt) work(begun *time.Time) (results []core.Value, err error) {
	if a.slot != "" && !a.worker {
		if err := a.rt.n.runner.slots.acquire(&a.ctx, a.slot); err != nil {
			return nil, err
		}
	}
	*begun = time.Now()
	ctx := context.Context(&a.ctx)
	if limit := time.Duration(a.m.Spec.Opt.Timeout); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w after %v", ErrTaskTimeout, limit))
		defer cancel()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	defer func() {
		if p := recover(); p != nil {
			stack := string(debug.Stack())
			a.rt.n.log.Error("panic in a task", "task", a.m.Spec.Func, "panic", p, "stack", stack)
			results, err = nil, &RunError{Stack: stack, text: fmt.Sprintf("%v: %v", ErrPanic, p), kinds: []error{ErrPanic}}
		}
		if err != nil && ctx.Err() != nil {
			// Whatever it made of the end of its context, this is why it ended.
			if cause := context.Cause(ctx); errors.Is(cause, ErrTaskTimeout) || errors.Is(cause, context.Canceled) {
				err = cause
			}
		}
	}()
	if b, ok := bodies[a.m.Spec.Func]; ok {
		return b.run(ctx, a)
	}
	if f, ok := a.rt.n.cfg.Tasks[a.m.Spec.Func]; ok {
		return a.runHere(ctx, f)
	}
	return nil, fmt.Errorf("%w: %s on node %s", ErrNoFunc, a.m.Spec.Func, a.rt.n.id)
}

// runHere calls a function that belongs to the node.
func (a *attempt) runHere(ctx context.Context, f TaskFunc) ([]core.Value, error) {
	arg, err := argument[[]byte](ctx, a, 0)
	if err != nil {
		return nil, err
	}
	result, err := f(&TaskContext{
		Context: ctx, Job: a.s.job, Task: TaskID(idText(a.m.Spec.ID)), Attempt: int(a.m.Attempt), Node: a.rt.n, attempt: a,
	}, arg)
	if err != nil {
		return nil, err
	}
	return one(a, result)
}

// yield gives the slot back while wait runs.
func (a *attempt) yield(ctx context.Context, wait func() error) (err error) {
	if a.slot == "" {
		return wait()
	}
	a.mu.Lock()
	if a.waits++; a.waits == 1 {
		a.rt.n.runner.slots.yield(a.slot)
		if a.worker {
			a.rt.workers.waiting(true)
		}
		a.tell(true)
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.waits--; a.waits == 0 {
			a.tell(false)
			if a.worker {
				a.rt.workers.waiting(false)
			}
			if serr := a.rt.n.runner.slots.acquire(&a.ctx, a.slot); err == nil {
				err = serr
			}
		}
	}()
	return wait()
}

// leave is a yield without an end.
func (a *attempt) leave() {
	if a.slot == "" || a.worker {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waits++; a.waits == 1 {
		a.rt.n.runner.slots.yield(a.slot)
		a.tell(true)
	}
}

// tell tells the head whether the task waits. A gang's tasks do little else, and are placed as if they did.
func (a *attempt) tell(waits bool) {
	if a.m.Spec.Opt.Gang == 0 {
		a.rt.send(&core.Blocked{ID: a.m.Spec.ID, Attempt: a.m.Attempt, On: waits})
	}
}

// pause runs wait; if it is within a task, without the task's slot.
func pause(ctx context.Context, wait func() error) error {
	if c, ok := ctx.Value(clientKey{}).(*Client); ok && c.attempt != nil {
		return c.attempt.yield(ctx, wait)
	}
	return wait()
}

// stop cancels an attempt that was started from there.
func (rt *engine) stop(m *core.Stop, from NodeID) {
	rt.mu.Lock()
	a := rt.attempts[attemptKey{m.ID, m.Attempt}]
	if a != nil && a.from != from {
		a = nil
	}
	if a != nil {
		a.ctx.cancel(fmt.Errorf("%w: %s", context.Canceled, cmp.Or(m.Reason, "on request")))
		rt.workers.drop(a)
	}
	rt.mu.Unlock()
	if a != nil && a.inst != nil {
		a.inst.drop(a)
	}
}

// argument gives the k-th argument's value.
func argument[T any](ctx context.Context, a *attempt, k int) (v T, err error) {
	if k >= len(a.m.Args) {
		return v, fmt.Errorf("actors: %s got %d arguments", a.m.Spec.Func, len(a.m.Args))
	}
	in := &a.m.Args[k]
	ref := a.m.Spec.Args[k].Ref
	if in.Size == core.Asked {
		e := a.s.learn(ref)
		defer e.drop()
		if in, err = e.wait(ctx); err != nil {
			return v, err
		}
	}
	v, err = takeValue[T](ctx, a.s, in)
	switch {
	case err == nil || ctx.Err() != nil:
	case gone(err) && ref != 0:
		err = &lostArgument{ref, in.Node, err}
	case gone(err): // the node that submitted it has it, or had it
		err = fmt.Errorf("argument: %w: %w", errSystem, err)
	}
	return v, err
}

// endJob ends what is left of a job here.
func (rt *engine) endJob(job JobID, limit time.Duration) {
	cause := fmt.Errorf("%w: %s", ErrJobEnded, job)
	rt.mu.Lock()
	if s := rt.sessions[job]; s != nil {
		s.ended = cause
		delete(rt.sessions, job)
	}
	var running []*attempt
	for _, a := range rt.attempts {
		if a.s.job == job {
			if a.done == nil {
				a.done = make(chan struct{})
			}
			running = append(running, a)
		}
	}
	var actors []core.ID
	for id, i := range rt.instances {
		if i.s.job == job {
			actors = append(actors, id)
		}
	}
	f := toFailure(cause, nil)
	var called []core.ID
	for id, e := range rt.entries {
		if e.s.job == job {
			delete(rt.entries, id)
			if e.called {
				called = append(called, id)
			}
			rt.post(&core.Release{ID: id}) // it may be of an actor that outlives the job
			if !e.ready {
				e.ready, e.failure = true, f
				for _, w := range e.waiters {
					select {
					case w <- struct{}{}:
					default:
					}
				}
				e.waiters = nil
			}
		}
	}
	var sources []*source
	for id, s := range rt.sources {
		if s.s.job == job {
			delete(rt.sources, id)
			sources = append(sources, s)
		}
	}
	var readers []*inflow
	for k, r := range rt.readers {
		if r.s.job == job {
			delete(rt.readers, k)
			readers = append(readers, r)
		}
	}
	rt.mu.Unlock()
	if rt.direct != nil {
		rt.direct.endJob(job, called)
	}
	for _, s := range sources {
		s.close(cause)
	}
	for _, r := range readers {
		r.fail(f)
	}
	for _, a := range running {
		a.ctx.cancel(fmt.Errorf("%w: %w", context.Canceled, cause))
		rt.mu.Lock()
		rt.workers.drop(a)
		rt.mu.Unlock()
	}
	for _, id := range actors {
		rt.stopActor(id, "its job has ended")
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, a := range running {
		select {
		case <-a.done:
			continue
		case <-timer.C:
			rt.n.log.Error("task does not end after it was cancelled", "job", job, "task", a.m.Spec.Func)
		}
		break
	}
}

// dropValues forgets what this node keeps of a job's values; the store drops them.
func (rt *engine) dropValues(job JobID) {
	rt.copies.dropAll(job, "")
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for key, k := range rt.kept {
		if k.job == job {
			delete(rt.kept, key)
		}
	}
}

// close cancels everything that runs here and waits for it. It is false if something did not end within the time.
func (rt *engine) close(limit time.Duration) bool {
	rt.mu.Lock()
	var actors []core.ID
	for id := range rt.instances {
		actors = append(actors, id)
	}
	for _, a := range rt.attempts {
		a.ctx.cancel(ErrClosed)
		rt.workers.drop(a)
	}
	if rt.workers.timer != nil {
		rt.workers.timer.Stop()
	}
	rt.mu.Unlock()
	for _, id := range actors {
		rt.stopActor(id, "its node is closing")
	}
	return rt.running.close(limit)
}
