package actors

import (
	"context"
	"encoding/binary"
	"io"
	"iter"
	"runtime"

	"manta/actors/core"
)

// Stream is a sequence of values that something yields while they are read. Its source is at most Window items ahead of its
// slowest reader. It may travel like a reference, to a task, an actor or back: whoever reads goes on where the one before stopped.
// Items are consumed once; a stream has as many readers as Readers says, each with a position of its own.
//
// It is not safe for concurrent use.
type Stream[T any] struct {
	handle
	window int64
	reader int32
	in     *inflow
}

func newStream[T any](e *entry, window int64, reader int32) *Stream[T] {
	s := &Stream[T]{window: window, reader: reader}
	e.stream = true
	own(s, &s.handle, e)
	return s
}

// Reader is the stream as its k-th reader has it, from 0. The stream itself is reader 0.
func (s *Stream[T]) Reader(k int) *Stream[T] {
	e := s.e
	if s.check() == nil && e.id != 0 {
		e = e.s.learn(e.id)
	}
	return newStream[T](e, s.window, int32(k))
}

func (s *Stream[T]) inflow() *inflow {
	if s.in == nil {
		s.in = s.e.s.reader(readerKey{s.e.id, s.reader}, s.window)
	}
	return s.in
}

// Next waits for the next item; io.EOF after the last. The item counts as consumed when Next returns.
func (s *Stream[T]) Next(ctx context.Context) (v T, err error) {
	err = s.take(ctx, func(item T) { v = item })
	return v, err
}

// All gives the items that are left. An item counts as consumed when the loop's body is done with it. An error ends the loop, after
// it was given.
func (s *Stream[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		more := true
		for more {
			switch err := s.take(ctx, func(v T) { more = yield(v, nil) }); err {
			case nil:
			case io.EOF:
				return
			default:
				var zero T
				yield(zero, err)
				return
			}
		}
	}
}

// take gives f the next item, and then counts it as consumed.
func (s *Stream[T]) take(ctx context.Context, f func(T)) error {
	defer runtime.KeepAlive(s)
	if err := s.check(); err != nil {
		return err
	}
	if s.e.id == 0 {
		return fromFailure("", s.e.failure)
	}
	in := s.inflow()
	for {
		item, err := in.first(ctx)
		if err != nil {
			return err
		}
		if item == nil {
			return io.EOF
		}
		v, err := takeValue[T](ctx, s.e.s, item)
		if err == nil {
			defer in.taken()
			f(v)
			return nil
		}
		if ctx.Err() != nil || !gone(err) {
			return err
		}
		in.again(item.Node)
	}
}

// MarshalBinary is for the runtime. The stream's position stays with it.
func (s *Stream[T]) MarshalBinary() ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.e.id == 0 {
		return nil, fromFailure("", s.e.failure)
	}
	if s.in != nil {
		s.in.leave()
		s.in = nil
	}
	data := binary.AppendUvarint(nil, uint64(s.e.id))
	data = binary.AppendUvarint(data, uint64(s.reader))
	return binary.AppendUvarint(data, uint64(s.window)), nil
}

// UnmarshalBinary is for the runtime.
func (s *Stream[T]) UnmarshalBinary(data []byte) error {
	var parts [3]uint64
	for i := range parts {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return errUnbound
		}
		parts[i], data = v, data[n:]
	}
	s.e, s.reader, s.window = &entry{id: core.ID(parts[0])}, int32(parts[1]), int64(parts[2])
	return nil
}

func (s *Stream[T]) bind(rt *engine, job JobID) {
	if s.e != nil && s.e.s == nil {
		own(s, &s.handle, rt.session(job).learn(s.e.id))
		s.e.stream = true
	}
}

// Sender is the sending end of a stream that Open made.
type Sender[T any] struct{ src *source }

// Open makes a stream that this process fills: between actors, or between a driver and a task.
func Open[T any](_ context.Context, c *Client, opts ...Option) (*Sender[T], *Stream[T]) {
	opt := withOptions(&callDefaults, opts)
	e := c.launch(launch{kind: core.KindOpen, name: "stream", stream: true, opt: opt})[0]
	src := c.rt.newSource(c.s, e.id, 0, 0, opt.Window)
	return &Sender[T]{src}, newStream[T](e, opt.Window, 0)
}

// Send sends an item; it waits while the window is full. ErrStreamClosed when nobody reads any more. One goroutine sends.
func (s *Sender[T]) Send(ctx context.Context, v T) error { return emit(ctx, s.src, v) }

// Close ends the stream; with an error its readers get that after the items.
func (s *Sender[T]) Close(err error) { s.src.end(err) }
