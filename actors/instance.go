package actors

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"manta/actors/core"
)

// instance is an actor that lives here: its object, and the calls that came.
type instance struct {
	rt     *engine
	s      *session
	id     core.ID
	groups map[string]int

	incarnation int32

	mu      sync.Mutex
	obj     any // guarded by mu
	lanes   map[string]*callLane
	busy    int
	stopped error
	closed  bool
}

// callLane is a concurrency group's calls.
type callLane struct {
	limit, running int
	queue          []*attempt
}

func newInstance(rt *engine, s *session, m *core.Start) *instance {
	i := &instance{rt: rt, s: s, id: m.Actor, incarnation: m.Attempt, lanes: make(map[string]*callLane), groups: map[string]int{"": max(m.Spec.Opt.Parallel, 1)}}
	for part := range strings.SplitSeq(m.Spec.Opt.Lanes, ",") {
		if name, n, ok := strings.Cut(part, "="); ok {
			i.groups[name], _ = strconv.Atoi(n)
		}
	}
	return i
}

// take runs a call, now or when those before it are done.
func (i *instance) take(a *attempt) {
	i.mu.Lock()
	name := a.m.Spec.Opt.Lane
	l := i.lanes[name]
	if l == nil {
		l = &callLane{limit: max(i.groups[name], 1)}
		i.lanes[name] = l
	}
	if l.running >= l.limit {
		l.queue = append(l.queue, a)
		i.mu.Unlock()
		return
	}
	l.running++
	i.busy++
	i.mu.Unlock()
	go i.work(l, a)
}

// drop runs a cancelled call that waits for its turn, to its end.
func (i *instance) drop(a *attempt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, l := range i.lanes {
		if k := slices.Index(l.queue, a); k >= 0 {
			l.queue = slices.Delete(l.queue, k, k+1)
			go a.run()
			return
		}
	}
}

// work runs calls of a group until none waits.
func (i *instance) work(l *callLane, a *attempt) {
	for a != nil {
		i.mu.Lock()
		if i.stopped != nil {
			a.ctx.cancel(i.stopped)
		}
		i.mu.Unlock()
		a.run()
		i.mu.Lock()
		a = nil
		if len(l.queue) > 0 {
			a = l.queue[0]
			l.queue[0] = nil
			l.queue = l.queue[1:]
		} else {
			l.queue = nil
			l.running--
			i.busy--
		}
		i.mu.Unlock()
	}
	i.finish()
}

// stop ends the actor: calls are cancelled, those that have not begun fail.
func (rt *engine) stopActor(id core.ID, reason string) {
	rt.mu.Lock()
	i := rt.instances[id]
	delete(rt.instances, id)
	var calls []*attempt
	for _, a := range rt.attempts {
		if i != nil && a.inst == i {
			calls = append(calls, a)
		}
	}
	rt.mu.Unlock()
	if i == nil {
		return
	}
	cause := fmt.Errorf("%w: %s", ErrActorDead, reason)
	i.mu.Lock()
	i.stopped = cause
	i.mu.Unlock()
	for _, a := range calls {
		a.ctx.cancel(cause)
	}
	i.finish()
}

// finish closes the object of an actor that has stopped, once no call uses it.
func (i *instance) finish() {
	i.mu.Lock()
	c, ok := i.obj.(io.Closer)
	due := i.stopped != nil && i.busy == 0 && !i.closed
	i.closed = i.closed || due
	i.mu.Unlock()
	if due && ok {
		i.rt.running.goRun(func() {
			defer func() { _ = recover() }()
			_ = c.Close()
		})
	}
}

// set gives the actor its object. It errs when the actor was stopped meanwhile.
func (i *instance) set(obj any) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.obj = obj
	return i.stopped
}

func (i *instance) object() any {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.obj
}

// body is what runs under a name.
type body struct {
	run func(ctx context.Context, a *attempt) ([]core.Value, error)
}

// bodies are the functions of this process by name. It is written by initializers only.
var bodies = make(map[string]body)

func register(name string, run func(ctx context.Context, a *attempt) ([]core.Value, error)) {
	if name == "" || len(name) > maxName {
		panic(fmt.Sprintf("actors: %q is no name for a function", name))
	}
	if _, ok := bodies[name]; ok {
		panic("actors: the name " + name + " is declared twice")
	}
	bodies[name] = body{run}
}
