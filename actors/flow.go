package actors

import (
	"context"
	"sync"

	"manta/actors/core"
)

// source is the sending end of a stream: a generator that runs here, or a Sender.
type source struct {
	rt     *engine
	s      *session
	stream core.ID
	try    int32
	skip   int64
	window int64

	mu       sync.Mutex
	next     int64         // guarded by mu; index of the next item
	consumed int64         // guarded by mu; by the slowest reader
	closed   error         // guarded by mu
	change   chan struct{} // guarded by mu; closed and replaced at each change
}

func (rt *engine) newSource(s *session, id core.ID, try int32, skip, window int64) *source {
	src := &source{rt: rt, s: s, stream: id, try: try, skip: skip, window: max(window, 1), change: make(chan struct{})}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s.ended != nil {
		src.closed = s.ended
		return src
	}
	rt.sources[id] = src
	return src
}

// room waits until the next item may be sent; needed is false when its readers have it already.
func (src *source) room(ctx context.Context) (index int64, needed bool, err error) {
	for {
		src.mu.Lock()
		index, change := src.next, src.change
		switch {
		case src.closed != nil:
			err = src.closed
		case index < src.skip:
			src.next++
			src.mu.Unlock()
			return index, false, nil
		case index < src.consumed+src.window:
			src.next++
			src.mu.Unlock()
			return index, true, nil
		}
		src.mu.Unlock()
		if err != nil {
			return 0, false, err
		}
		err = pause(ctx, func() error {
			select {
			case <-change:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		if err != nil {
			return 0, false, err
		}
	}
}

// emit sends one item.
func emit[T any](ctx context.Context, src *source, v T) error {
	index, needed, err := src.room(ctx)
	if err != nil || !needed {
		return err
	}
	room := int64(core.MaxInline)
	value, err := putValue(src.s, "stream", v, &room)
	if err != nil {
		src.mu.Lock()
		src.next--
		src.mu.Unlock()
		return err
	}
	src.rt.send(&core.Emit{Stream: src.stream, Attempt: src.try, Index: index, Value: value})
	return nil
}

// end says that no item comes any more.
func (src *source) end(err error) {
	src.mu.Lock()
	first := src.closed == nil
	if first {
		src.closed = ErrStreamClosed
	}
	index := src.next
	src.mu.Unlock()
	src.rt.mu.Lock()
	if src.rt.sources[src.stream] == src {
		delete(src.rt.sources, src.stream)
	}
	src.rt.mu.Unlock()
	if first {
		src.rt.send(&core.Emit{Stream: src.stream, Attempt: src.try, Index: index, End: true, Failure: toFailure(err, nil)})
	}
}

func (src *source) close(err error) {
	src.mu.Lock()
	defer src.mu.Unlock()
	if src.closed == nil {
		src.closed = err
	}
	close(src.change)
	src.change = make(chan struct{})
}

// credit takes word of how far the readers are.
func (rt *engine) credit(m *core.Credit) {
	rt.mu.Lock()
	src := rt.sources[m.Stream]
	rt.mu.Unlock()
	if src == nil || src.try != m.Attempt {
		return
	}
	if m.Closed {
		src.close(ErrStreamClosed)
		return
	}
	src.mu.Lock()
	defer src.mu.Unlock()
	if m.Consumed > src.consumed {
		src.consumed = m.Consumed
		close(src.change)
		src.change = make(chan struct{})
	}
}

// dropSource forgets a generator's source.
func (rt *engine) dropSource(src *source) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.sources[src.stream] == src {
		delete(rt.sources, src.stream)
	}
}

type readerKey struct {
	stream core.ID
	reader int32
}

// inflow is the receiving end of a stream for one reader.
type inflow struct {
	rt     *engine
	s      *session
	key    readerKey
	window int64
	turn   core.ID

	mu      sync.Mutex
	opened  bool
	placed  bool // next is known
	next    int64
	told    int64 // consumed, as the head knows
	items   []core.Value
	ended   bool
	failure *core.Failure
	waiters []chan struct{}
}

// reader finds a stream's receiving end here.
func (s *session) reader(key readerKey, window int64) *inflow {
	rt := s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	r := rt.readers[key]
	if r == nil {
		r = &inflow{rt: rt, s: s, key: key, window: max(window, 1), turn: rt.ids(1)}
		if s.ended != nil {
			r.opened, r.ended, r.failure = true, true, toFailure(s.ended, nil)
			return r
		}
		rt.readers[key] = r
	}
	return r
}

// arrived takes items.
func (rt *engine) arrived(m *core.Items) {
	rt.mu.Lock()
	r := rt.readers[readerKey{m.Stream, m.Reader}]
	rt.mu.Unlock()
	if r == nil || r.turn != m.Turn {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.placed {
		r.placed, r.next, r.told = true, m.Index, m.Index
	}
	have := r.next + int64(len(r.items))
	if m.Index > have {
		return // cannot be: they come in order
	}
	if skip := have - m.Index; skip < int64(len(m.Values)) {
		r.items = append(r.items, m.Values[skip:]...)
	}
	if m.End {
		r.ended, r.failure = true, m.Failure
	}
	r.wake()
}

func (r *inflow) wake() {
	for _, w := range r.waiters {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	r.waiters = nil
}

func (r *inflow) fail(f *core.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended, r.failure = true, f
	r.wake()
}

// peek says whether an item, or the end, is there. If not, and w is not nil, w hears when it may be.
func (r *inflow) peek(w chan struct{}) bool {
	r.mu.Lock()
	open := !r.opened
	r.opened = true
	ready := len(r.items) > 0 || r.ended
	if !ready && w != nil {
		r.waiters = append(r.waiters, w)
	}
	r.mu.Unlock()
	if open { // wherever its reader is: the head knows
		r.rt.send(&core.Read{Stream: r.key.stream, Reader: r.key.reader, Turn: r.turn, Upto: r.window})
	}
	return ready
}

func (r *inflow) unwatch(w chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, o := range r.waiters {
		if o == w {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			return
		}
	}
}

// first waits for the next item and gives it without taking it; nil at the end.
func (r *inflow) first(ctx context.Context) (*core.Value, error) {
	w := make(chan struct{}, 1)
	for !r.peek(w) {
		err := pause(ctx, func() error {
			select {
			case <-w:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-r.rt.n.ctx.Done():
				return ErrClosed
			}
		})
		if err != nil {
			r.unwatch(w)
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) > 0 {
		v := r.items[0]
		return &v, nil
	}
	return nil, fromFailure("", r.failure)
}

// taken says that the first item was consumed.
func (r *inflow) taken() {
	r.mu.Lock()
	r.items[0] = core.Value{}
	r.items = r.items[1:]
	r.next++
	tell := r.next-r.told >= max(r.window/2, 1) || len(r.items) == 0
	next := r.next
	if tell {
		r.told = next
	}
	r.mu.Unlock()
	if tell {
		r.rt.send(&core.Read{Stream: r.key.stream, Reader: r.key.reader, Turn: r.turn, Consumed: next, Upto: next + r.window})
	}
}

// again asks for the first item once more: it was not where it was said to be.
func (r *inflow) again(node core.NodeID) {
	r.mu.Lock()
	r.items = nil
	r.opened, r.ended, r.failure = true, false, nil
	next := r.next
	r.told = next
	r.mu.Unlock()
	r.rt.send(&core.Read{Stream: r.key.stream, Reader: r.key.reader, Turn: r.turn, Consumed: next, Upto: next + r.window, Lost: node})
}

// leave tells how far this reader is, and forgets what came for it: it goes on elsewhere.
func (r *inflow) leave() {
	r.mu.Lock()
	opened, next := r.opened && r.placed, r.next
	r.mu.Unlock()
	r.rt.mu.Lock()
	if r.rt.readers[r.key] == r {
		delete(r.rt.readers, r.key)
	}
	r.rt.mu.Unlock()
	if opened {
		r.rt.send(&core.Read{Stream: r.key.stream, Reader: r.key.reader, Turn: r.turn, Consumed: next, Upto: next})
	}
}
