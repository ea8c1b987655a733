package actors

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"

	"manta/actors/core"
)

// ActorDef is a declared actor: a *T that lives on some node, and is used through handles.
type ActorDef[T, A any] struct {
	name string
	opt  *core.Options
}

// NewActor declares an actor. make makes it, and makes it again when it is restarted. If *T is an io.Closer it is closed
// at the actor's end, unless its node dies.
func NewActor[T, A any](name string, make func(context.Context, A) (*T, error), opts ...Option) *ActorDef[T, A] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		obj, err := make(ctx, arg)
		if err != nil {
			return nil, err
		}
		return nil, a.inst.set(obj)
	})
	return &ActorDef[T, A]{name, withOptions(&taskDefaults, opts)}
}

// Handle is a handle of an actor. It may travel like a reference. An actor that is not detached ends when its last handle
// is gone and the calls it has are done.
type Handle[T any] struct{ handle }

// Spawn makes an actor and waits until it lives.
func (d *ActorDef[T, A]) Spawn(ctx context.Context, c *Client, arg Arg[A], opts ...Option) (*Handle[T], error) {
	h := d.Start(ctx, c, arg, opts...)
	if _, err := h.e.wait(ctx); err != nil {
		h.Release()
		return nil, fmt.Errorf("actor %s: %w", d.name, err)
	}
	return h, nil
}

// Start is Spawn without the wait. If the actor cannot be made its calls say why.
func (d *ActorDef[T, A]) Start(_ context.Context, c *Client, arg Arg[A], opts ...Option) *Handle[T] {
	e := c.launch1(core.KindCreate, d.name, 0, withOptions(d.opt, opts), arg)
	runtime.KeepAlive(arg)
	return newHandle[T](e)
}

// Find gives a handle of the actor of that name, in the job or detached. ErrActorNotFound if there is none.
func (d *ActorDef[T, A]) Find(ctx context.Context, c *Client, name string) (*Handle[T], error) {
	h := newHandle[T](c.launch1(core.KindLookup, d.name, 0, &core.Options{Name: name}))
	if _, err := h.e.wait(ctx); err != nil {
		h.Release()
		return nil, err
	}
	return h, nil
}

func newHandle[T any](e *entry) *Handle[T] {
	h := new(Handle[T])
	own(h, &h.handle, e)
	return h
}

// Kill ends the actor at once: calls that are not done fail with ErrActorDead. It is not restarted.
func (h *Handle[T]) Kill() { h.kill(false) }

// Restart ends the actor as if its node had died: it is restarted if it has restarts left.
func (h *Handle[T]) Restart() { h.kill(true) }

func (h *Handle[T]) kill(restart bool) {
	if h.check() == nil && h.e.id != 0 {
		h.e.s.rt.send(&core.Kill{Actor: h.e.id, Restart: restart})
	}
}

// MarshalBinary is for the runtime.
func (h *Handle[T]) MarshalBinary() ([]byte, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	return binary.AppendUvarint(nil, uint64(h.e.id)), nil
}

// UnmarshalBinary is for the runtime.
func (h *Handle[T]) UnmarshalBinary(data []byte) error {
	id, n := binary.Uvarint(data)
	if n <= 0 {
		return errUnbound
	}
	h.e = &entry{id: core.ID(id)}
	return nil
}

func (h *Handle[T]) bind(rt *engine, job JobID) {
	if h.e != nil && h.e.s == nil {
		own(h, &h.handle, rt.session(job).learn(h.e.id))
	}
}

// MethodDef is a declared method of an actor.
type MethodDef[T, A, R any] struct {
	name string
	opt  *core.Options
}

// Method declares a method of an actor, from a method expression: Method(Counters, "add", (*Counter).Add). Calls of one caller begin in
// the order in which they are made. With Retries a call may run more than once.
func Method[T, M, A, R any](d *ActorDef[T, M], name string, f func(*T, context.Context, A) (R, error), opts ...Option) *MethodDef[T, A, R] {
	name = d.name + "." + name
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		r, err := f(a.inst.object().(*T), ctx, arg)
		if err != nil {
			return nil, err
		}
		return one(a, r)
	})
	return &MethodDef[T, A, R]{name, withOptions(&callDefaults, opts)}
}

// Call submits the call. It does not wait.
func (m *MethodDef[T, A, R]) Call(ctx context.Context, h *Handle[T], arg Arg[A], opts ...Option) *Ref[R] {
	e := h.call(ctx, launch{kind: core.KindCall, name: m.name, results: 1, opt: withOptions(m.opt, opts)}, arg)
	runtime.KeepAlive(arg)
	runtime.KeepAlive(h)
	return newRef[R](e)
}

// call submits a call on behalf of the task that ctx is of, or else of whom the handle is of.
func (h *handle) call(ctx context.Context, l launch, arg argument0) *entry {
	if err := h.check(); err != nil {
		return (&session{}).failed(err)
	}
	c, ok := ctx.Value(clientKey{}).(*Client)
	if !ok || c.s.rt != h.e.s.rt {
		c = &Client{rt: h.e.s.rt, s: h.e.s}
	}
	if h.e.id == 0 {
		return c.s.failed(fromFailure("", h.e.failure))
	}
	l.actor = h.e.id
	return c.call(l, h.e, arg)
}

// StreamMethodDef is a declared method of an actor that yields a stream.
type StreamMethodDef[T, A, R any] struct {
	name string
	opt  *core.Options
}

// StreamMethod declares a method that yields a stream.
func StreamMethod[T, M, A, R any](d *ActorDef[T, M], name string, f func(*T, context.Context, A, func(R) error) error, opts ...Option) *StreamMethodDef[T, A, R] {
	name = d.name + "." + name
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		return nil, generate(ctx, a, func(yield func(R) error) error { return f(a.inst.object().(*T), ctx, arg, yield) })
	})
	return &StreamMethodDef[T, A, R]{name, withOptions(&callDefaults, opts)}
}

// Call submits the call.
func (m *StreamMethodDef[T, A, R]) Call(ctx context.Context, h *Handle[T], arg Arg[A], opts ...Option) *Stream[R] {
	opt := withOptions(m.opt, opts)
	e := h.call(ctx, launch{kind: core.KindCall, name: m.name, stream: true, opt: opt}, arg)
	runtime.KeepAlive(arg)
	runtime.KeepAlive(h)
	return newStream[R](e, opt.Window, 0)
}
