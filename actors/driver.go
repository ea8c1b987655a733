package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"manta/actors/core"
	"manta/actors/internal/wire"
)

// Client submits tasks, makes actors and puts values, for a driver or for a task. It is safe for concurrent use.
type Client struct {
	rt      *engine
	s       *session
	parent  core.ID  // the task it is of; 0: the driver's
	attempt *attempt // of the same
	finish  func(error) error
	ctx     context.Context // the job's
}

type clientKey struct{}

// From gives the client of the task or actor that runs with the context; nil outside of one.
func From(ctx context.Context) *Client {
	c, _ := ctx.Value(clientKey{}).(*Client)
	return c
}

// NewClient starts a job whose driver is the caller. It waits until the job is admitted. On a node that is not the head the job is
// stopped when this node dies. Close ends it.
func (n *Node) NewClient(ctx context.Context, spec JobSpec) (*Client, error) {
	if n.jobs == nil {
		return n.drive(ctx, spec)
	}
	j, err := n.NewJob(ctx, spec)
	if err != nil {
		return nil, err
	}
	c := j.client()
	c.finish = func(err error) error { j.Finish(err); return nil }
	return c, nil
}

// Close ends the job, successfully without an error. What still runs is cancelled; every value and actor of the job that is not detached
// is gone afterwards. On a task's client it does nothing.
func (c *Client) Close(err error) error {
	if c.finish == nil {
		return nil
	}
	return c.finish(err)
}

// Job names the job.
func (c *Client) Job() JobID { return c.s.job }

// Node is the node in this process.
func (c *Client) Node() *Node { return c.rt.n }

// Context ends when the job is stopped or ends; of a task's client it is the task's.
func (c *Client) Context() context.Context {
	if c.attempt != nil {
		return &c.attempt.ctx
	}
	return c.ctx
}

// argument0 is an Arg of any type.
type argument0 interface {
	arg(s *session, room *int64) (core.Arg, error)
}

// launch is what is to be submitted.
type launch struct {
	kind    core.Kind
	name    string
	results int
	stream  bool
	actor   core.ID
	opt     *core.Options
}

func (c *Client) launch1(kind core.Kind, name string, actor core.ID, opt *core.Options, args ...argument0) *entry {
	spec, err := c.spec(launch{kind: kind, name: name, results: 1, actor: actor, opt: opt}, args)
	if err != nil {
		return c.s.failed(err)
	}
	spec.ID = c.rt.ids(1)
	e := c.s.own(spec.ID)
	c.rt.send(&core.Submit{Spec: spec})
	return e
}

// call submits a call of an actor, or makes it by itself.
func (c *Client) call(l launch, actor *entry, arg argument0) *entry {
	spec, err := c.spec(l, []argument0{arg})
	if err != nil {
		return c.s.failed(err)
	}
	spec.ID = c.rt.ids(1)
	e := c.s.own(spec.ID)
	if c.rt.direct != nil {
		c.rt.direct.call(spec, e, actor)
	} else {
		c.rt.send(&core.Submit{Spec: spec})
	}
	return e
}

// spec says what is to be run.
func (c *Client) spec(l launch, args []argument0) (*core.Spec, error) {
	spec := &core.Spec{
		Job: core.JobID(c.s.job), Kind: l.kind, Stream: l.stream, Results: l.results, Func: l.name, Parent: c.parent, Actor: l.actor, Opt: l.opt,
	}
	room := int64(core.MaxInline)
	if len(args) > 0 {
		spec.Args = make([]core.Arg, len(args))
	}
	for i, a := range args {
		var err error
		if spec.Args[i], err = a.arg(c.s, &room); err != nil {
			return nil, fmt.Errorf("%s: argument %d: %w", l.name, i, err)
		}
	}
	return spec, nil
}

// launch submits. It gives the entries of the results, or of the stream; of what cannot be submitted they have failed.
func (c *Client) launch(l launch, args ...argument0) []*entry {
	n := max(l.results, 1)
	es := make([]*entry, n)
	spec, err := c.spec(l, args)
	if err != nil {
		for k := range es {
			es[k] = c.s.failed(err)
		}
		return es
	}
	spec.ID = c.rt.ids(n)
	for k := range es {
		es[k] = c.s.own(spec.ID + core.ID(k))
	}
	c.rt.send(&core.Submit{Spec: spec})
	return es
}

// Put makes a reference of a value. It fails when the node's store is full or the value cannot travel. A value that is lost with its node
// cannot be made again.
func Put[T any](_ context.Context, c *Client, v T) (*Ref[T], error) {
	room := int64(core.MaxInline)
	value, err := putValue(c.s, "put", v, &room)
	if err != nil {
		return nil, err
	}
	e := c.s.own(c.rt.ids(1))
	c.rt.mu.Lock()
	if !e.ready {
		e.ready, e.value = true, &value
	}
	c.rt.mu.Unlock()
	c.rt.send(&core.Put{ID: e.id, Job: core.JobID(c.s.job), Value: value})
	return newRef[T](e), nil
}

// PlacementGroup is CPUs that are reserved together.
type PlacementGroup struct{ ref Ref[None] }

// Layout is how the bundles of a placement group lie on nodes.
type Layout = core.Layout

const (
	Pack         = core.Pack         // on few nodes, if possible
	SpreadOut    = core.SpreadOut    // on different nodes, if possible
	StrictPack   = core.StrictPack   // on one node
	StrictSpread = core.StrictSpread // on different nodes
)

// NewPlacementGroup reserves bundles of CPUs, all or none. It does not wait; Ready does.
func NewPlacementGroup(_ context.Context, c *Client, layout Layout, cpus ...float64) *PlacementGroup {
	parts := make([]string, len(cpus))
	for i, n := range cpus {
		parts[i] = fmt.Sprint(milli(n))
	}
	e := c.launch1(core.KindGroup, "group", 0, &core.Options{Bundles: strings.Join(parts, ","), Layout: layout})
	g := new(PlacementGroup)
	own(g, &g.ref.handle, e)
	return g
}

// Ready waits until the group is placed.
func (g *PlacementGroup) Ready(ctx context.Context) error {
	_, err := g.ref.e.wait(ctx)
	return err
}

// Remove gives the reservation back. What runs in it is cancelled. A group that is not removed is when it is collected.
func (g *PlacementGroup) Remove() { g.ref.Release() }

// Waitable is a reference or a stream: it is ready when its value, its next item, or its error or end is there.
type Waitable interface {
	watch(w chan struct{}) bool
	unwatch(w chan struct{})
}

func (r *Ref[T]) watch(w chan struct{}) bool { return r.check() != nil || r.e.peek(w) }
func (r *Ref[T]) unwatch(w chan struct{}) {
	if r.check() == nil {
		r.e.unwatch(w)
	}
}
func (s *Stream[T]) watch(w chan struct{}) bool {
	return s.check() != nil || s.e.id == 0 || s.inflow().peek(w)
}
func (s *Stream[T]) unwatch(w chan struct{}) {
	if s.check() == nil && s.e.id != 0 {
		s.inflow().unwatch(w)
	}
}

// Wait waits until n of the references and streams are ready, or the context ends: then err says so and ready is what there is. ready has
// never more than n, in the order of refs; rest are the others. A task gives its CPU back while it waits.
func Wait[W Waitable](ctx context.Context, refs []W, n int) (ready, rest []W, err error) {
	n = min(n, len(refs))
	count := 0
	for i := 0; i < len(refs) && count < n; i++ {
		if refs[i].watch(nil) {
			count++
		}
	}
	for count < n {
		w := make(chan struct{}, 1)
		count = 0
		for i := range refs {
			if refs[i].watch(w) {
				count++
			}
		}
		if count < n {
			err = pause(ctx, func() error {
				select {
				case <-w:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
		}
		for i := range refs {
			refs[i].unwatch(w)
		}
		if err != nil {
			break
		}
	}
	ready = make([]W, 0, n)
	rest = make([]W, 0, len(refs)-min(count, n))
	for i := range refs {
		if len(ready) < n && refs[i].watch(nil) {
			ready = append(ready, refs[i])
		} else {
			rest = append(rest, refs[i])
		}
	}
	return ready, rest, err
}

// drive starts a job whose driver is at this node, at the head.
func (n *Node) drive(ctx context.Context, spec JobSpec) (*Client, error) {
	life, cancel := context.WithCancelCause(n.ctx)
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	fail := func(err error) error {
		stop()
		cancel(err)
		return fmt.Errorf("actors: start a job: %w", fromStatus(n.cfg.Head, err))
	}
	stream, err := wire.NewHeadClient(n.member.conn).Drive(life)
	if err != nil {
		return nil, fail(err)
	}
	if err := stream.Send(&wire.DriveRequest{Name: cleanText(spec.Name), User: cleanText(spec.User), Node: string(n.id)}); err != nil {
		return nil, fail(err)
	}
	reply, err := stream.Recv()
	if err != nil {
		return nil, fail(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_, err := stream.Recv() // until the job ends
		cancel(fmt.Errorf("%w: %s: %w", ErrJobEnded, reply.Job, fromStatus(n.cfg.Head, err)))
	}()
	var once sync.Once
	return &Client{
		rt: n.engine, s: n.engine.session(JobID(reply.Job)), ctx: life,
		finish: func(jobErr error) (err error) {
			once.Do(func() {
				defer stop()
				m := &wire.DriveRequest{Finish: true}
				if jobErr != nil {
					m.Error = cleanText(jobErr.Error())
				}
				err = stream.Send(m)
				_ = stream.CloseSend()
				<-over
				cancel(ErrJobEnded)
			})
			return err
		},
	}, nil
}

// Drive is a remote driver's job.
func (s *headServer) Drive(stream grpc.BidiStreamingServer[wire.DriveRequest, wire.DriveReply]) error {
	if _, err := s.head(); err != nil {
		return err
	}
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	j, err := s.n.NewJob(stream.Context(), JobSpec{Name: m.Name, User: m.User})
	if err != nil {
		return toStatus(codes.Aborted, err)
	}
	j.drivenFrom(NodeID(m.Node))
	if err := stream.Send(&wire.DriveReply{Job: string(j.id)}); err != nil {
		j.Finish(err)
		return err
	}
	m, err = stream.Recv()
	switch {
	case err != nil:
		j.Finish(fmt.Errorf("%w: its driver is gone", context.Canceled))
	case m.Error != "":
		j.Finish(errors.New(m.Error))
	default:
		j.Finish(nil)
	}
	return nil
}

// drivenFrom ends the job when its driver's node dies.
func (j *Job) drivenFrom(node NodeID) {
	j.mu().Lock()
	defer j.mu().Unlock()
	j.driver = node
}
