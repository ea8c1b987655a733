package actors

import (
	"context"
	"fmt"
	"runtime"

	"manta/actors/core"
)

// TaskDef is a declared task: a function that runs anywhere in the cluster.
type TaskDef[A, R any] struct {
	name string
	opt  *core.Options
}

// NewTask declares a task. Declare tasks in package-level variables, in every process under the same name; a name that is
// taken panics.
//
// An Arrow batch or reader that f has as its argument is f's to release. One that is its result is taken, and released once it is in the
// store: f, or an actor, that keeps it besides has to retain it. This holds for all kinds of tasks and methods; what is given to Val, Put,
// Send and a generator's yield is borrowed until they return, or for Val until the call is made.
func NewTask[A, R any](name string, f func(context.Context, A) (R, error), opts ...Option) *TaskDef[A, R] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, arg)
		if err != nil {
			return nil, err
		}
		return one(a, r)
	})
	return &TaskDef[A, R]{name, withOptions(&taskDefaults, opts)}
}

func one[R any](a *attempt, r R) ([]core.Value, error) {
	defer release(r)
	room := int64(core.MaxInline)
	v, err := putValue(a.s, a.m.Spec.Func, r, &room)
	if err != nil {
		return nil, err
	}
	return []core.Value{v}, nil
}

// release gives up what a function gave, which is the runtime's, once it is ready to travel.
func release[R any](rs ...R) {
	switch codecOf[R]().format {
	case asBatch, asReader:
		for _, r := range rs {
			if r, ok := any(r).(interface{ Release() }); ok {
				r.Release()
			}
		}
	}
}

// Call submits the task. It does not wait; whatever goes wrong is the reference's error.
func (t *TaskDef[A, R]) Call(_ context.Context, c *Client, arg Arg[A], opts ...Option) *Ref[R] {
	e := c.launch1(core.KindTask, t.name, 0, withOptions(t.opt, opts), arg)
	runtime.KeepAlive(arg)
	return newRef[R](e)
}

// TaskDef2 is a declared task with two arguments.
type TaskDef2[A, B, R any] struct {
	name string
	opt  *core.Options
}

// NewTask2 declares a task with two arguments.
func NewTask2[A, B, R any](name string, f func(context.Context, A, B) (R, error), opts ...Option) *TaskDef2[A, B, R] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		x, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		y, err := argument[B](ctx, a, 1)
		if err != nil {
			return nil, err
		}
		r, err := f(ctx, x, y)
		if err != nil {
			return nil, err
		}
		return one(a, r)
	})
	return &TaskDef2[A, B, R]{name, withOptions(&taskDefaults, opts)}
}

// Call submits the task.
func (t *TaskDef2[A, B, R]) Call(_ context.Context, c *Client, x Arg[A], y Arg[B], opts ...Option) *Ref[R] {
	e := c.launch1(core.KindTask, t.name, 0, withOptions(t.opt, opts), x, y)
	runtime.KeepAlive(x)
	runtime.KeepAlive(y)
	return newRef[R](e)
}

// GatherDef is a declared task that takes any number of arguments of one type.
type GatherDef[A, R any] struct {
	name string
	opt  *core.Options
}

// NewGather declares a task that takes any number of arguments.
func NewGather[A, R any](name string, f func(context.Context, []A) (R, error), opts ...Option) *GatherDef[A, R] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		args := make([]A, len(a.m.Args))
		for i := range args {
			var err error
			if args[i], err = argument[A](ctx, a, i); err != nil {
				return nil, err
			}
		}
		r, err := f(ctx, args)
		if err != nil {
			return nil, err
		}
		return one(a, r)
	})
	return &GatherDef[A, R]{name, withOptions(&taskDefaults, opts)}
}

// Call submits the task.
func (t *GatherDef[A, R]) Call(_ context.Context, c *Client, args []Arg[A], opts ...Option) *Ref[R] {
	list := make([]argument0, len(args))
	for i, a := range args {
		list[i] = a
	}
	e := c.launch1(core.KindTask, t.name, 0, withOptions(t.opt, opts), list...)
	runtime.KeepAlive(args)
	return newRef[R](e)
}

// MultiDef is a declared task with several results, each with a reference of its own.
type MultiDef[A, R any] struct {
	name string
	opt  *core.Options
}

// NewMulti declares a task with several results; f must give as many as Call asks for.
func NewMulti[A, R any](name string, f func(context.Context, A) ([]R, error), opts ...Option) *MultiDef[A, R] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		rs, err := f(ctx, arg)
		if err != nil {
			return nil, err
		}
		defer release(rs...)
		if len(rs) != a.m.Spec.Results {
			return nil, fmt.Errorf("actors: %s gave %d results, %d were asked for", name, len(rs), a.m.Spec.Results)
		}
		room := int64(core.MaxInline)
		vs := make([]core.Value, len(rs))
		for i, r := range rs {
			if vs[i], err = putValue(a.s, a.m.Spec.Func, r, &room); err != nil {
				return nil, err
			}
		}
		return vs, nil
	})
	return &MultiDef[A, R]{name, withOptions(&taskDefaults, opts)}
}

// Call submits the task, which gives n results.
func (t *MultiDef[A, R]) Call(_ context.Context, c *Client, n int, arg Arg[A], opts ...Option) []*Ref[R] {
	es := c.launch(launch{kind: core.KindTask, name: t.name, results: n, opt: withOptions(t.opt, opts)}, arg)
	runtime.KeepAlive(arg)
	refs := make([]*Ref[R], n)
	for i, e := range es {
		refs[i] = newRef[R](e)
	}
	return refs
}

// TaskDef1x2 is a declared task with two results of different types.
type TaskDef1x2[A, R, S any] struct {
	name string
	opt  *core.Options
}

// NewTask1x2 declares a task with two results.
func NewTask1x2[A, R, S any](name string, f func(context.Context, A) (R, S, error), opts ...Option) *TaskDef1x2[A, R, S] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		r, s, err := f(ctx, arg)
		if err != nil {
			return nil, err
		}
		defer release(r)
		defer release(s)
		room := int64(core.MaxInline)
		v, err := putValue(a.s, a.m.Spec.Func, r, &room)
		if err != nil {
			return nil, err
		}
		w, err := putValue(a.s, a.m.Spec.Func, s, &room)
		if err != nil {
			return nil, err
		}
		return []core.Value{v, w}, nil
	})
	return &TaskDef1x2[A, R, S]{name, withOptions(&taskDefaults, opts)}
}

// Call submits the task.
func (t *TaskDef1x2[A, R, S]) Call(_ context.Context, c *Client, arg Arg[A], opts ...Option) (*Ref[R], *Ref[S]) {
	es := c.launch(launch{kind: core.KindTask, name: t.name, results: 2, opt: withOptions(t.opt, opts)}, arg)
	runtime.KeepAlive(arg)
	return newRef[R](es[0]), newRef[S](es[1])
}

// GeneratorDef is a declared task that yields a stream.
type GeneratorDef[A, R any] struct {
	name string
	opt  *core.Options
}

// NewGenerator declares a task that yields a stream. yield waits while the stream's window is full; its error is to be returned. When
// an attempt is lost the generator runs again, and what readers have is not sent again: it must yield the same items each time.
func NewGenerator[A, R any](name string, f func(ctx context.Context, a A, yield func(R) error) error, opts ...Option) *GeneratorDef[A, R] {
	register(name, func(ctx context.Context, a *attempt) ([]core.Value, error) {
		arg, err := argument[A](ctx, a, 0)
		if err != nil {
			return nil, err
		}
		return nil, generate(ctx, a, func(yield func(R) error) error { return f(ctx, arg, yield) })
	})
	return &GeneratorDef[A, R]{name, withOptions(&taskDefaults, opts)}
}

// generate runs a generator's function with the stream's source.
func generate[R any](ctx context.Context, a *attempt, f func(yield func(R) error) error) error {
	src := a.rt.newSource(a.s, a.m.Spec.ID, a.m.Attempt, a.m.Skip, a.m.Window)
	src.consumed = a.m.Base
	defer a.rt.dropSource(src)
	return f(func(v R) error { return emit(ctx, src, v) })
}

// Call submits the task.
func (t *GeneratorDef[A, R]) Call(_ context.Context, c *Client, arg Arg[A], opts ...Option) *Stream[R] {
	opt := withOptions(t.opt, opts)
	es := c.launch(launch{kind: core.KindTask, name: t.name, stream: true, opt: opt}, arg)
	runtime.KeepAlive(arg)
	return newStream[R](es[0], opt.Window, 0)
}
