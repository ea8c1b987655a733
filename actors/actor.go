package actors

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Handler answers the messages to an actor, one at a time. The context ends at
// the asker's deadline, and when the actor or the node stops. The handler must
// not change m. Its error goes back to the asker.
type Handler func(ctx context.Context, from NodeID, m proto.Message) (proto.Message, error)

// Actor is a named actor of this node.
type Actor struct {
	n       *Node
	name    string
	pid     *actor.PID
	ctx     context.Context // ends with the actor
	cancel  context.CancelCauseFunc
	stopped atomic.Bool
	done    chan struct{} // closed by the actor when it has ended
	run     func(d *delivery)
}

// delivery is one request in an actor's mailbox. reply is called exactly once.
type delivery struct {
	from     NodeID
	msg      proto.Message // nil: body holds it
	body     *anypb.Any
	deadline time.Time
	reply    func(proto.Message, error)
}

// Spawn starts an actor under a name that no other actor of the node has.
func (n *Node) Spawn(name string, h Handler) (*Actor, error) {
	if name == "" || strings.HasPrefix(name, "@") || !validName(name) {
		return nil, fmt.Errorf("actors: %q is not a name for an actor", name)
	}
	return n.control.start(name, func(a *Actor, d *delivery) { a.handle(h, d) })
}

// validName: the name can travel.
func validName(name string) bool { return len(name) <= maxName && utf8.ValidString(name) }

// start makes an actor. run must call the delivery's reply, now or later.
func (c *control) start(name string, run func(*Actor, *delivery)) (*Actor, error) {
	a := &Actor{n: c.n, name: name, done: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(c.n.ctx)
	a.run = func(d *delivery) { run(a, d) }
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *delivery:
			a.receive(m)
		case *actor.Stopped:
			close(a.done)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		a.cancel(ErrClosed)
		return nil, ErrClosed
	case c.actors[name] != nil:
		a.cancel(ErrActorExists)
		return nil, fmt.Errorf("%w: %s", ErrActorExists, a.Address())
	}
	a.pid = c.n.system.Root.Spawn(props)
	c.actors[name] = a
	return a, nil
}

// Address is what other nodes ask it by.
func (a *Actor) Address() Address { return Address{a.n.id, a.name} }

// Stop ends the actor. Its name is free at once; requests that it has not begun
// are answered with ErrActorNotFound; the context of one that it is working on
// ends. Stop does not wait for that one. Stopping twice does no harm.
func (a *Actor) Stop() {
	if a.stopped.Swap(true) {
		return
	}
	c := a.n.control
	c.mu.Lock()
	if c.actors[a.name] == a {
		delete(c.actors, a.name)
	}
	c.mu.Unlock()
	a.cancel(fmt.Errorf("%w: %s has stopped", ErrActorNotFound, a.Address()))
	// Poison comes after what is in the mailbox, so nothing there goes unanswered.
	a.n.system.Root.Poison(a.pid)
}

// receive runs in the actor.
func (a *Actor) receive(d *delivery) {
	if a.stopped.Load() {
		d.reply(nil, fmt.Errorf("%w: %s", ErrActorNotFound, a.Address()))
		return
	}
	if d.msg == nil {
		m, err := d.body.UnmarshalNew()
		if err != nil {
			d.reply(nil, fmt.Errorf("actors: message to %s: %w", a.Address(), err))
			return
		}
		d.msg = m
	}
	a.run(d)
}

// handle runs a user's handler.
func (a *Actor) handle(h Handler, d *delivery) {
	ctx, cancel := context.WithDeadline(a.ctx, d.deadline)
	defer cancel()
	if ctx.Err() != nil {
		d.reply(nil, asked(ctx, a.n.id, a.name))
		return
	}
	m, err := a.protect(ctx, h, d)
	d.reply(m, err)
}

func (a *Actor) protect(ctx context.Context, h Handler, d *delivery) (m proto.Message, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.n.log.Error("panic in an actor", "actor", a.Address().String(), "panic", p, "stack", string(debug.Stack()))
			m, err = nil, fmt.Errorf("%w in actor %s: %v", ErrPanic, a.Address(), p)
		}
	}()
	return h(ctx, d.from, d.msg)
}

// Ask sends m to an actor of any node and waits for its answer. The handler runs
// at most once, however often the message has to be sent. Without a deadline in
// ctx, Ask gives up after 10 s. m must not change afterwards. The reply may be
// nil, when the handler's was.
//
// Errors: ErrNodeDead as soon as the node is known to be dead, ErrActorNotFound,
// ErrTooLarge, ErrTimeout, or the handler's error with its text.
func (n *Node) Ask(ctx context.Context, to Address, m proto.Message) (proto.Message, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
	}
	if ctx.Err() != nil {
		return nil, asked(ctx, to.Node, to.Name)
	}
	if !validName(to.Name) {
		return nil, fmt.Errorf("%w: %q", ErrActorNotFound, to.Name)
	}
	if to.Node == n.id {
		return n.control.askHere(ctx, to.Name, m)
	}
	info, err := n.find(ctx, to.Node)
	if err != nil {
		return nil, err
	}
	return n.control.ask(ctx, info, to.Name, m)
}

// askHere asks an actor of this node, without a transport.
func (c *control) askHere(ctx context.Context, name string, m proto.Message) (proto.Message, error) {
	if size := proto.Size(m); size > MaxMessage {
		return nil, fmt.Errorf("%w: %T to %s is %d bytes, at most %d", ErrTooLarge, m, name, size, MaxMessage)
	}
	type result struct {
		m   proto.Message
		err error
	}
	ch := make(chan result, 1)
	d := &delivery{from: c.n.id, msg: m, reply: func(m proto.Message, err error) { ch <- result{m, err} }}
	d.deadline, _ = ctx.Deadline()
	c.mu.Lock()
	closed := c.closed
	found := !closed && c.hand(name, d)
	c.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case !found:
		return nil, fmt.Errorf("%w: %s", ErrActorNotFound, Address{c.n.id, name})
	}
	select {
	case r := <-ch:
		return r.m, r.err
	case <-ctx.Done():
		return nil, asked(ctx, c.n.id, name)
	}
}
