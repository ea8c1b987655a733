package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"manta/actors/core"
	"manta/objectstore"
)

// maxInlineValue is the size up to which a value travels in messages and is kept by the head; larger ones stay in the
// store of the node that made them.
const maxInlineValue = 100 << 10

// engine is a node's part of the typed runtime: the handles that this process has, the tasks and actors that run
// here, and the streams that start or end here. What is to happen the head's core decides.
type engine struct {
	n       *Node
	brain   *brain // on the head
	number  uint64 // of this node in ids; set before hello is closed
	hello   chan struct{}
	counter atomic.Uint64
	running group // attempts
	workers workers
	copies  copies
	direct  *direct // nil on the head

	mu        sync.Mutex // guards all below; it comes after no other lock of this package but brain's
	sessions  map[JobID]*session
	entries   map[core.ID]*entry
	attempts  map[attemptKey]*attempt
	instances map[core.ID]*instance
	sources   map[core.ID]*source
	readers   map[readerKey]*inflow
	kept      map[[16]byte]keptValue
}

// keptValue is a value in this node's store that a core knows by its key, which is its id there.
type keptValue struct {
	job    JobID
	copied []NodeID // nodes that fetched it and may have a copy
}

// session is a job as this node sees it.
type session struct {
	rt    *engine
	job   JobID
	ended error // guarded by rt.mu
}

// entry is what this node knows of an object that it has handles of.
type entry struct {
	s       *session
	id      core.ID
	handles int32 // guarded by rt.mu, as all below
	stream  bool
	asked   bool // the head will tell when it is ready
	ready   bool
	value   *core.Value
	failure *core.Failure
	waiters []chan struct{}
	local   bool   // the head does not know of it: it is the result of a call that went straight to its actor
	called  bool   // it is an actor's, and direct knows of it
	awaits  NodeID // that has put it at the head
}

func newEngine(n *Node) *engine {
	rt := &engine{
		n: n, hello: make(chan struct{}),
		sessions: make(map[JobID]*session), entries: make(map[core.ID]*entry), attempts: make(map[attemptKey]*attempt),
		instances: make(map[core.ID]*instance), sources: make(map[core.ID]*source), readers: make(map[readerKey]*inflow),
		kept: make(map[[16]byte]keptValue),
	}
	rt.workers.rt = rt
	rt.copies.rt = rt
	if n.cfg.Head != "" {
		rt.direct = newDirect(rt)
	}
	return rt
}

// send brings messages to the head, in order.
func (rt *engine) send(msgs ...any) {
	if rt.brain != nil {
		rt.brain.handle(rt.n.id, msgs...)
		return
	}
	for _, m := range msgs {
		rt.n.links.send(rt.n.member.head, m)
	}
}

// post is send for who holds rt.mu: what comes back for this node is delivered by somebody else.
func (rt *engine) post(m any) {
	if rt.brain != nil {
		rt.brain.do(func(c *core.Core) { c.Handle(core.NodeID(rt.n.id), m) })
		return
	}
	rt.n.links.send(rt.n.member.head, m)
}

// ids reserves numbers for new objects.
func (rt *engine) ids(n int) core.ID {
	select {
	case <-rt.hello:
	default:
		select {
		case <-rt.hello:
		case <-rt.n.ctx.Done():
		}
	}
	return core.ID(rt.number<<core.NumberBits | (rt.counter.Add(uint64(n)) - uint64(n) + 1))
}

// receive takes a message from the head. It does not block.
func (rt *engine) receive(msg any) {
	switch m := msg.(type) {
	case *core.Welcome:
		if rt.number == 0 {
			rt.number = m.Number
			close(rt.hello)
		}
	case *core.Start:
		rt.start(m)
	case *core.Stop:
		rt.stop(m, "")
	case *core.StopActor:
		rt.stopActor(m.Actor, m.Reason)
	case *core.Ready:
		rt.settle(m)
		if rt.direct != nil {
			rt.direct.byHead(m.ID)
		}
	case *core.Where:
		if rt.direct != nil {
			rt.direct.where(m)
		}
	case *core.Cancel:
		if rt.direct != nil {
			rt.direct.cancelFor(m)
		}
	case *core.StopCalls:
		if rt.direct != nil {
			rt.direct.stopCalls(m.Parent)
		}
	case *core.Free:
		rt.free(m.Key)
	case *core.Credit:
		rt.credit(m)
	case *core.Items:
		rt.arrived(m)
	}
}

// session finds the node's part of a job. That of a job that has ended has ended.
func (rt *engine) session(job JobID) *session {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	s := rt.sessions[job]
	if s == nil {
		s = &session{rt: rt, job: job}
		s.ended = rt.n.runner.refused(job)
		if s.ended == nil {
			rt.sessions[job] = s
		}
	}
	return s
}

// jobs lists the jobs of which this node has something.
func (rt *engine) jobs() (ids []string) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for job := range rt.sessions {
		ids = append(ids, string(job))
	}
	return ids
}

// own makes the entry of an object that this node has just asked for.
func (s *session) own(id core.ID) *entry {
	e := &entry{s: s, id: id, handles: 1, asked: true}
	rt := s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if s.ended != nil {
		e.ready, e.failure = true, toFailure(s.ended, nil)
		return e
	}
	rt.entries[id] = e
	return e
}

// failed makes an entry that has failed from the start.
func (s *session) failed(err error) *entry {
	return &entry{s: s, handles: 1, ready: true, failure: toFailure(err, nil)}
}

// learn makes, or finds, the entry of an object that came inside a value.
func (s *session) learn(id core.ID) *entry {
	rt := s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e := rt.entries[id]
	if e == nil {
		e = &entry{s: s, id: id}
		if s.ended != nil {
			e.ready, e.failure = true, toFailure(s.ended, nil)
			return e
		}
		rt.entries[id] = e
		rt.post(&core.Hold{ID: id}) // under mu: before a Release that may follow
	}
	e.handles++
	return e
}

// drop takes one handle away.
func (e *entry) drop() {
	if e.letGo() {
		e.s.rt.direct.drop(e.id)
	}
}

// letGo is drop. It is true when direct is to be told.
func (e *entry) letGo() bool {
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e.handles--
	if e.handles == 0 && rt.entries[e.id] == e {
		delete(rt.entries, e.id)
		if e.stream {
			for k := range rt.readers {
				if k.stream == e.id {
					delete(rt.readers, k)
				}
			}
		}
		if !e.local {
			rt.post(&core.Release{ID: e.id})
		}
		return e.called && rt.direct != nil
	}
	return false
}

// settle takes an object's value or failure.
func (rt *engine) settle(m *core.Ready) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	e := rt.entries[m.ID]
	if e == nil && rt.direct != nil {
		rt.post(&core.Release{ID: m.ID}) // its last handle went before the head heard of it
	}
	if e != nil {
		e.local = false
		e.settle(&m.Value, m.Failure)
	}
}

// settle gives an entry its value or failure; it runs under rt.mu.
func (e *entry) settle(v *core.Value, f *core.Failure) {
	if e.ready {
		return
	}
	e.ready, e.failure = true, f
	if f == nil {
		e.value = v
	}
	for _, w := range e.waiters {
		select {
		case w <- struct{}{}:
		default:
		}
	}
	e.waiters = nil
}

// peek says whether the object is ready. If not, and w is not nil, w hears when it may be.
func (e *entry) peek(w chan struct{}) (ready bool) {
	if e.id == 0 {
		return true
	}
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if e.ready || w == nil {
		return e.ready
	}
	e.waiters = append(e.waiters, w)
	if !e.asked {
		e.asked = true
		rt.post(&core.Want{ID: e.id})
	}
	return false
}

func (e *entry) unwatch(w chan struct{}) {
	if e.id == 0 {
		return
	}
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	for i, o := range e.waiters {
		if o == w {
			e.waiters = append(e.waiters[:i], e.waiters[i+1:]...)
			return
		}
	}
}

// wait waits until the object is ready. A task gives its slot back meanwhile.
func (e *entry) wait(ctx context.Context) (*core.Value, error) {
	var w chan struct{}
	if !e.peek(nil) {
		w = make(chan struct{}, 1)
	}
	for !e.peek(w) {
		err := pause(ctx, func() error {
			select {
			case <-w:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-e.s.rt.n.ctx.Done():
				return ErrClosed
			}
		})
		if err != nil {
			e.unwatch(w)
			return nil, err
		}
	}
	if e.id == 0 {
		return nil, fromFailure("", e.failure)
	}
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	return e.value, fromFailure("", e.failure)
}

// again reports that the object's value is not where it was said to be.
func (e *entry) again(node core.NodeID) {
	rt := e.s.rt
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if e.ready && e.value != nil && e.value.Node == node && rt.entries[e.id] == e {
		e.ready, e.value, e.asked = false, nil, true
		rt.post(&core.Lost{ID: e.id, Node: node})
	}
}

// errFetch: another node did not give a value.
var errFetch = errors.New("actors: value could not be fetched")

// gone says whether an error of load means that the value is not there any more.
func gone(err error) bool {
	for _, kind := range []error{errFetch, ErrNodeDead, ErrUnreachable, objectstore.ErrNotFound, objectstore.ErrLost} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// load brings a value's bytes here; done must be called when they are not used any more. shared says that they
// are not the caller's own.
func (rt *engine) load(ctx context.Context, job JobID, v *core.Value) (data []byte, shared bool, done func(), err error) {
	done = func() {}
	switch {
	case v.Live != nil:
		data, err = v.Live.Encode()
		return data, false, done, err
	case v.Node == "":
		return v.Data, true, done, nil
	case NodeID(v.Node) == rt.n.id:
		object, err := rt.n.store.Get(objectstore.ID(v.Key))
		if errors.Is(err, objectstore.ErrFull) { // it is too large for the store's memory, or that is busy: read it from disk
			data, err = rt.readAll(objectstore.ID(v.Key))
			return data, false, done, err
		}
		if err != nil {
			return nil, false, done, err
		}
		return object.Bytes(), true, object.Release, nil
	}
	return rt.fetch(ctx, job, v)
}

// readAll reads a stored value into memory that is not the store's.
func (rt *engine) readAll(id objectstore.ID) ([]byte, error) {
	r, err := rt.n.store.NewReader(id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, r.Size())
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, err
	}
	if _, err := r.Read(nil); err != io.EOF { // it is whole only if this says so
		return nil, err
	}
	return data, nil
}

// keepBytes puts an encoded value into the node's store.
func (s *session) keepBytes(by string, data []byte) (core.Value, error) {
	id, err := s.rt.n.store.PutLabelled(string(s.job), by, data)
	if err != nil {
		return core.Value{}, noRoom(fmt.Sprintf("a value of %d bytes", len(data)), err)
	}
	return s.keep([16]byte(id), keptValue{job: s.job}, int64(len(data))), nil
}

// keepBatch copies a batch into the node's store.
func (s *session) keepBatch(by string, b arrow.RecordBatch) (core.Value, error) {
	id, err := s.rt.n.store.PutBatchLabelled(string(s.job), by, b)
	if err != nil {
		return core.Value{}, noRoom(fmt.Sprintf("a batch of %d rows", b.NumRows()), err)
	}
	return s.keep([16]byte(id), keptValue{job: s.job}, batchBytes(b)), nil
}

// noRoom is the error of what could not be put into the store.
func noRoom(what string, err error) error {
	if errors.Is(err, objectstore.ErrFull) {
		err = fmt.Errorf("%w: %w", ErrOutOfMemory, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (s *session) keep(key [16]byte, k keptValue, size int64) core.Value {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.rt.kept[key] = k
	return core.Value{Node: core.NodeID(s.rt.n.id), Key: key, Size: size}
}

// free drops a value of this node, and the copies that others have of it; or the copy that this node has of another's.
func (rt *engine) free(key [16]byte) {
	rt.copies.drop(key)
	rt.mu.Lock()
	k, ok := rt.kept[key]
	delete(rt.kept, key)
	rt.mu.Unlock()
	for _, node := range k.copied {
		rt.n.links.send(node, &core.Free{Key: key})
	}
	if ok {
		_ = rt.n.store.Release(objectstore.ID(key), string(k.job)) // its job may have ended
	}
}

// putValue makes a value ready to travel; by says what made it, for people. Of what the message has room for in place, room is what is left.
func putValue[T any](s *session, by string, v T, room *int64) (core.Value, error) {
	c := codecOf[T]()
	switch c.format {
	case asPlain:
		if size := plainBytes(c, v); size <= maxInlineValue {
			return core.Value{Live: &plainValue[T]{v}, Size: size}, nil
		}
	case asBatch:
		return s.keepBatch(by, any(v).(arrow.RecordBatch))
	}
	data, contains, err := c.encode(v)
	if err != nil {
		return core.Value{}, err
	}
	size := int64(len(data))
	if size > maxInlineValue || size > *room && size > 0 {
		kept, err := s.keepBytes(by, data)
		kept.Contains = contains
		return kept, err
	}
	*room -= size
	if c.format == asBytes {
		data = append([]byte(nil), data...)
	}
	return core.Value{Data: data, Size: size, Contains: contains}, nil
}

// takeValue gives a value that came.
func takeValue[T any](ctx context.Context, s *session, v *core.Value) (out T, err error) {
	if p, ok := v.Live.(*plainValue[T]); ok {
		return p.v, nil
	}
	if codecOf[T]().format == asBatch && NodeID(v.Node) == s.rt.n.id {
		b, err := s.rt.n.store.GetBatch(objectstore.ID(v.Key)) // its memory is the store's
		if err == nil {
			return b.(T), nil
		} else if !errors.Is(err, objectstore.ErrFull) { // else it is read from disk
			return out, err
		}
	}
	data, shared, done, err := s.rt.load(ctx, s.job, v)
	if err != nil {
		return out, err
	}
	defer done()
	return decode[T](s.rt, s.job, data, shared)
}
