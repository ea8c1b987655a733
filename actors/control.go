package actors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"manta/actors/internal/wire"
	"manta/actors/once"
)

// control is the one actor of a node that envelopes go to. It refuses stale
// ones, runs each request at most once, hands requests to the node's actors and
// replies to who asked.
//
// The control actor itself only looks things up; a handler runs in its own
// actor.
type control struct {
	n         *Node
	pid       *actor.PID // immutable after start
	transport transport  // immutable after start

	mu     sync.Mutex
	closed bool                                   // guarded by mu
	out    map[NodeID]*outgoing                   // guarded by mu; requests from here
	in     map[NodeID]*once.Inbox[*wire.Envelope] // guarded by mu; requests to here
	actors map[string]*Actor                      // guarded by mu
}

// outgoing is what this node has asked another one.
type outgoing struct {
	box     once.Outbox
	waiting map[uint64]chan answer // capacity 1
}

// answer is a reply, or the reason why there will be none.
type answer struct {
	reply *wire.Envelope
	err   error
}

// controlName is the control actor's name: it holds the incarnation, so that a
// message for a node that was at this address before finds nobody.
func controlName(node NodeID) string { return "control-" + string(node) }

func newControl(n *Node) *control {
	return &control{
		n:      n,
		out:    make(map[NodeID]*outgoing),
		in:     make(map[NodeID]*once.Inbox[*wire.Envelope]),
		actors: make(map[string]*Actor),
	}
}

// spawn starts the control actor; the transport may deliver to it from now on.
func (c *control) spawn() error {
	props := actor.PropsFromFunc(func(ctx actor.Context) {
		if e, ok := ctx.Message().(*wire.Envelope); ok {
			c.receive(e)
		}
	})
	pid, err := c.n.system.Root.SpawnNamed(props, controlName(c.n.id))
	c.pid = pid
	return err
}

// deliver puts an envelope that arrived into the control actor's mailbox.
func (c *control) deliver(e *wire.Envelope) { c.n.system.Root.Send(c.pid, e) }

func (c *control) receive(e *wire.Envelope) {
	if NodeID(e.To) != c.n.id {
		return // meant for an earlier incarnation at this address
	}
	from := NodeID(e.From)
	if _, known := c.n.peers.get(from); !known {
		// Perhaps it joined a moment ago. The sender repeats its request.
		c.n.refreshSoon()
		return
	}
	if e.Reply {
		c.settle(from, e.Request, answer{reply: e})
		return
	}
	c.request(from, e)
}

func (c *control) request(from NodeID, e *wire.Envelope) {
	timeout := time.Duration(e.TimeoutMs) * time.Millisecond
	deadline := time.Now().Add(timeout)

	c.mu.Lock()
	// nodeDead forgets a dead node's requests under mu: look again, so that nothing
	// of it comes after.
	if info, _ := c.n.peers.get(from); c.closed || info.State == NodeDead {
		c.mu.Unlock()
		return
	}
	in, ok := c.in[from]
	if !ok {
		in = new(once.Inbox[*wire.Envelope])
		c.in[from] = in
	}
	verdict, kept := in.Accept(e.Request, e.Settled, c.n.since(deadline))
	found := true
	if verdict == once.Run {
		d := &delivery{from: from, body: e.Body, deadline: deadline}
		d.reply = func(m proto.Message, err error) { c.reply(from, e.Request, m, err) }
		found = c.hand(e.Actor, d)
	}
	c.mu.Unlock()

	switch {
	case verdict == once.Replay:
		c.post(from, kept)
	case !found:
		c.reply(from, e.Request, nil, fmt.Errorf("%w: %s", ErrActorNotFound, Address{c.n.id, e.Actor}))
	}
}

// hand puts a delivery into an actor's mailbox. It runs under mu, like the
// removal of a name: what is handed over comes before the actor's poison, so it
// will be answered.
func (c *control) hand(name string, d *delivery) (found bool) {
	a, ok := c.actors[name]
	if ok {
		c.n.system.Root.Send(a.pid, d)
	}
	return ok
}

// reply keeps and sends the reply to a request.
func (c *control) reply(from NodeID, request uint64, m proto.Message, err error) {
	e := &wire.Envelope{From: string(c.n.id), To: string(from), Request: request, Reply: true}
	if err == nil && m != nil {
		e.Body, err = anypb.New(m)
	}
	if err == nil && proto.Size(e) > MaxMessage {
		err = fmt.Errorf("%w: a reply of %d bytes, at most %d", ErrTooLarge, proto.Size(e), MaxMessage)
	}
	if err != nil {
		e.Body, e.Failure = nil, encodeError(err)
	}
	c.mu.Lock()
	in, ok := c.in[from]
	wanted := ok && !c.closed && in.Reply(request, e)
	c.mu.Unlock()
	if wanted {
		c.post(from, e)
	}
}

func (c *control) post(to NodeID, e *wire.Envelope) {
	if info, ok := c.n.peers.get(to); ok && info.State != NodeDead {
		c.transport.send(peer{to, info.control}, e)
	}
}

// ask sends a request to another node until it is answered.
func (c *control) ask(ctx context.Context, info NodeInfo, name string, m proto.Message) (proto.Message, error) {
	body, err := anypb.New(m)
	if err != nil {
		return nil, fmt.Errorf("actors: message %T: %w", m, err)
	}
	deadline, _ := ctx.Deadline()
	e := &wire.Envelope{
		From: string(c.n.id), To: string(info.ID), Actor: name, Body: body,
		TimeoutMs: uint32(min(max(time.Until(deadline).Milliseconds(), 1), 1<<31)),
	}
	// The two numbers that are still missing take at most 22 bytes.
	if size := proto.Size(e) + 22; size > MaxMessage {
		return nil, fmt.Errorf("%w: %s to %s is %d bytes, at most %d", ErrTooLarge, body.MessageName().Name(), name, size, MaxMessage)
	}
	ch, err := c.open(info.ID, e)
	if err != nil {
		return nil, err
	}
	defer c.settle(info.ID, e.Request, answer{})

	to := peer{info.ID, info.control}
	pause := firstRetry
	timer := time.NewTimer(pause)
	defer timer.Stop()
	c.transport.send(to, e)
	for {
		select {
		case a := <-ch:
			if a.err != nil {
				return nil, a.err
			}
			return opened(a.reply)
		case <-timer.C:
			c.transport.send(to, e)
			pause = min(2*pause, lastRetry)
			timer.Reset(pause)
		case <-ctx.Done():
			return nil, asked(ctx, info.ID, name)
		}
	}
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = time.Second
)

// asked is the error of a request whose context has ended.
func asked(ctx context.Context, node NodeID, name string) error {
	if ctx.Err() == context.DeadlineExceeded {
		return fmt.Errorf("%w: %s", ErrTimeout, Address{node, name})
	}
	return context.Cause(ctx)
}

// opened gives a reply's message or error.
func opened(e *wire.Envelope) (proto.Message, error) {
	if e.Failure != nil {
		return nil, decodeError(e.Failure)
	}
	if e.Body == nil {
		return nil, nil
	}
	m, err := e.Body.UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("actors: reply: %w", err)
	}
	return m, nil
}

// open numbers a request and makes room for its answer.
func (c *control) open(to NodeID, e *wire.Envelope) (chan answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	// A node that dies takes its pending requests along (nodeDead, under mu): look
	// again, now that this one would be among them.
	if info, ok := c.n.peers.get(to); !ok || info.State == NodeDead {
		return nil, &NodeDeadError{Node: to, Reason: info.Reason}
	}
	o, ok := c.out[to]
	if !ok {
		o = &outgoing{waiting: make(map[uint64]chan answer)}
		c.out[to] = o
	}
	e.Request = o.box.Open()
	e.Settled = o.box.Settled()
	ch := make(chan answer, 1)
	o.waiting[e.Request] = ch
	return ch, nil
}

// settle ends a request; whoever waits for it gets the answer. Later answers to
// it are dropped.
func (c *control) settle(to NodeID, request uint64, a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.out[to]
	if !ok {
		return
	}
	if ch, ok := o.waiting[request]; ok {
		ch <- a
		delete(o.waiting, request)
		o.box.Settle(request)
	}
}

// nodeDead fails what waits for a dead node and forgets what it asked.
func (c *control) nodeDead(node NodeID, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o, ok := c.out[node]; ok {
		for _, ch := range o.waiting {
			ch <- answer{err: &NodeDeadError{Node: node, Reason: reason}}
		}
		delete(c.out, node)
	}
	delete(c.in, node)
}

// expire frees the kept replies that nobody can wait for any more.
func (c *control) expire() {
	now := c.n.since(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, in := range c.in {
		in.Expire(now)
	}
}

// close fails every request from here, drops those to here and stops the actors.
func (c *control) close() {
	c.mu.Lock()
	c.closed = true
	for _, o := range c.out {
		for _, ch := range o.waiting {
			ch <- answer{err: ErrClosed}
		}
	}
	c.out, c.in = nil, nil
	stop := make([]*Actor, 0, len(c.actors))
	for _, a := range c.actors {
		stop = append(stop, a)
	}
	c.mu.Unlock()
	for _, a := range stop {
		a.Stop()
	}
	limit := time.NewTimer(endWait)
	defer limit.Stop()
	for _, a := range stop {
		select {
		case <-a.done:
		case <-limit.C:
			c.n.log.Error("an actor does not end after it was stopped", "actor", a.Address().String())
			limit.Reset(0)
		}
	}
	if c.transport != nil {
		c.transport.close()
	}
	if c.pid != nil {
		_ = c.n.system.Root.StopFuture(c.pid).Wait()
	}
}
