package actors

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"manta/actors/core"
)

// handle is what references, streams and actor handles are made of. It keeps its object until it is released, or collected.
type handle struct {
	e        *entry
	cleanup  runtime.Cleanup
	released atomic.Bool
}

// own makes h a handle of e; holder is what h is part of.
func own[H any](holder *H, h *handle, e *entry) {
	h.e = e
	if e.id != 0 {
		h.cleanup = runtime.AddCleanup(holder, (*entry).drop, e)
	}
}

// Release lets the object go: it is freed when nobody else keeps it. Releasing twice does no harm. What is not released
// is when it is collected.
func (h *handle) Release() {
	if h.e != nil && !h.released.Swap(true) && h.e.id != 0 {
		h.cleanup.Stop()
		h.e.drop()
	}
}

func (h *handle) objectID() core.ID {
	if h.e == nil || h.released.Load() {
		return 0
	}
	return h.e.id
}

// shared is objectID for a handle that is about to travel.
func (h *handle) shared() core.ID {
	if h.objectID() == 0 {
		return 0
	}
	return h.e.share()
}

// ID names the object in the cluster.
func (h *handle) ID() string { return idText(h.objectID()) }

func idText(id core.ID) string { return fmt.Sprintf("%012x", uint64(id)) }

func (h *handle) check() error {
	if h == nil || h.e == nil || h.released.Load() {
		return ErrReleased
	}
	return nil
}

// Cancel ends the task or call that makes it, queued or running, and all that this one has submitted. It does not wait.
func (h *handle) Cancel() { h.cancel(true) }

// CancelSelf is Cancel without what it has submitted.
func (h *handle) CancelSelf() { h.cancel(false) }

func (h *handle) cancel(recursive bool) {
	if h.check() == nil && h.e.id != 0 {
		rt := h.e.s.rt
		if rt.direct == nil || !rt.direct.cancel(h.e.id) || recursive {
			rt.send(&core.Cancel{ID: h.e.id, Recursive: recursive})
		}
	}
}

// Ref refers to a value that is, or will be, somewhere in the cluster. It may be passed as an argument, inside one, or be part of a
// result. It is safe for concurrent use.
type Ref[T any] struct{ handle }

func newRef[T any](e *entry) *Ref[T] {
	r := new(Ref[T])
	own(r, &r.handle, e)
	return r
}

// Get waits for the value. An error of what makes it is a *RunError. Arrow batches and readers are the caller's to release. A task gives its
// CPU back while it waits.
func (r *Ref[T]) Get(ctx context.Context) (v T, err error) {
	defer runtime.KeepAlive(r)
	if err := r.check(); err != nil {
		return v, err
	}
	for {
		value, err := r.e.wait(ctx)
		if err != nil {
			return v, err
		}
		if value == nil {
			continue // it was lost meanwhile
		}
		v, err = takeValue[T](ctx, r.e.s, value)
		if err == nil || ctx.Err() != nil || !gone(err) {
			return v, err
		}
		r.e.again(value.Node)
	}
}

// Ready says whether the value, or its failure, is there.
func (r *Ref[T]) Ready() bool { return r.check() != nil || r.e.peek(nil) }

// View calls f with the bytes of a []byte value where they are; f must not keep or change them. On the value's node nothing is copied.
func View(ctx context.Context, r *Ref[[]byte], f func([]byte) error) error {
	defer runtime.KeepAlive(r)
	if err := r.check(); err != nil {
		return err
	}
	for {
		value, err := r.e.wait(ctx)
		if err != nil {
			return err
		}
		if value == nil {
			continue
		}
		data, _, done, err := r.e.s.rt.load(ctx, r.e.s.job, value)
		if err == nil {
			defer done()
			return f(data)
		}
		if ctx.Err() != nil || !gone(err) {
			return err
		}
		r.e.again(value.Node)
	}
}

var errUnbound = errors.New("actors: a reference travels only inside arguments, results and items")

// MarshalBinary is for the runtime: it writes what bind needs.
func (r *Ref[T]) MarshalBinary() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if r.e.id == 0 {
		return nil, fromFailure("", r.e.failure)
	}
	return binary.AppendUvarint(nil, uint64(r.e.id)), nil
}

// UnmarshalBinary is for the runtime.
func (r *Ref[T]) UnmarshalBinary(data []byte) error {
	id, n := binary.Uvarint(data)
	if n <= 0 {
		return errUnbound
	}
	r.e = &entry{id: core.ID(id)}
	return nil
}

func (r *Ref[T]) bind(rt *engine, job JobID) {
	if r.e != nil && r.e.s == nil {
		own(r, &r.handle, rt.session(job).learn(r.e.id))
	}
}

// Arg is an argument: Val of a value, or a *Ref of one, which is resolved before the task starts. A *Ref inside a value
// stays a reference.
type Arg[A any] interface {
	arg(s *session, room *int64) (core.Arg, error)
	argOf(A)
}

func (r *Ref[T]) argOf(T) {}
func (r *Ref[T]) arg(*session, *int64) (core.Arg, error) {
	if err := r.check(); err != nil {
		return core.Arg{}, err
	}
	if r.e.id == 0 {
		return core.Arg{}, fromFailure("", r.e.failure)
	}
	return core.Arg{Ref: r.e.share()}, nil
}

type val[A any] struct{ v A }

func (v val[A]) argOf(A) {}
func (v val[A]) arg(s *session, room *int64) (core.Arg, error) {
	value, err := putValue(s, "argument", v.v, room)
	return core.Arg{Val: &value}, err
}

// Val is a value as an argument. It is copied, or encoded, at once; an Arrow batch is copied into the node's store.
func Val[A any](v A) Arg[A] { return val[A]{v} }

// None is the argument, or the result, of what has none.
type None = struct{}

// NoArg is the argument of a task that takes None.
var NoArg Arg[None] = val[None]{}
