package objectstore

import (
	"fmt"
	"sync/atomic"
	"time"

	"manta/objectstore/refcount"
)

// Object is a pinned value. Its bytes stay where they are until Release, even when the object is released by
// all holders or the store is closed meanwhile.
type Object struct {
	s        *Store
	id       ID
	size     int64
	data     []byte
	released atomic.Bool

	e *entry // a large value

	shard *shard // a small one
	slot  refcount.Slot
	page  *page // where it is; nil when the object has a copy of its own
}

// ID returns the object's id.
func (o *Object) ID() ID { return o.id }

// Size returns the number of bytes.
func (o *Object) Size() int64 { return o.size }

// Bytes returns the value, aligned to 64 bytes. It must not be written to, nor used after Release; then Bytes
// returns nil.
func (o *Object) Bytes() []byte {
	if o.released.Load() {
		return nil
	}
	return o.data
}

// Release ends the pin. It may be called from any goroutine; further calls do nothing.
func (o *Object) Release() {
	if o.released.Swap(true) {
		return
	}
	if o.shard != nil {
		o.shard.release(o.slot)
		if o.page != nil {
			o.s.leavePage(o.page)
		}
		return
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.unpin(o.e)
}

// Get pins an object. A value that is only on disk is read back into memory, for which Get waits as Put does.
// Errors: ErrNotFound; ErrLost when the bytes on disk are not those that were written; ErrFull when there is no
// room, and always for a value larger than the memory limit: read that one with NewReader.
func (s *Store) Get(id ID) (*Object, error) {
	if id.small() {
		return s.getSmall(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	e, err := s.pin(id)
	if err != nil {
		return nil, err
	}
	data, err := s.resident(e)
	if err != nil {
		s.unpin(e)
		return nil, fmt.Errorf("object %s: %w", id, err)
	}
	s.count.gets++
	s.count.bytesGot += e.size
	return &Object{s: s, id: id, size: e.size, e: e, data: data}, nil
}

// pin finds a held object and keeps its bytes from being dropped. mu held.
func (s *Store) pin(id ID) (*entry, error) {
	slot, err := s.refs.Pin(id)
	if err != nil {
		return nil, s.pinError(err, id)
	}
	e := *s.refs.Value(slot)
	e.pinned = true
	if e.list == &s.clean || e.list == &s.dirtyLarge {
		e.unlist()
	}
	return e, nil
}

// pinError says why an object cannot be read.
func (s *Store) pinError(err error, id ID) error {
	if why, ok := s.recovery.Lost[id]; ok {
		return fmt.Errorf("%w: %s: %s", ErrLost, id, why)
	}
	return holdError(err, id, "")
}

// unpin takes one pin away. mu held.
func (s *Store) unpin(e *entry) {
	_, free, err := s.refs.Unpin(e.slot)
	if err != nil {
		panic(fmt.Sprintf("objectstore: unpin %s: %v", e.id, err)) // pins are ours alone to count
	}
	e.pinned = !free && s.refs.Pins(e.slot) > 0
	switch {
	case e.pinned:
	case free:
		s.drop(e)
	case s.closed:
		s.dropMemory(e)
	default:
		s.place(e)
	}
}

// resident returns the bytes of a pinned object, reading them back if need be. mu held; may be let go.
func (s *Store) resident(e *entry) ([]byte, error) {
	for e.buf == nil {
		l := e.load
		if l == nil {
			return s.restore(e)
		}
		s.mu.Unlock()
		<-l.done
		s.mu.Lock()
		if l.err != nil {
			return nil, l.err
		}
	}
	return e.buf, nil
}

// restore reads a pinned object back from disk, for all who want it meanwhile. mu held; let go meanwhile.
func (s *Store) restore(e *entry) ([]byte, error) {
	l := &load{done: make(chan struct{})}
	e.load = l
	data, err := s.space(e)
	if err == nil {
		loc := e.loc
		loc.file.users++
		started := time.Now()
		s.mu.Unlock()
		err = readValue(loc, data, &s.moved)
		s.mu.Lock()
		s.count.restoreTime += time.Since(started)
		s.disk.leave(loc.file)
		if err != nil {
			s.free(data)
			s.makeRoom()
		} else {
			s.setMemory(e, data)
			s.count.restores++
			s.count.bytesRestored += e.size
		}
	}
	e.load, l.err = nil, err
	close(l.done)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// space finds memory to read a value into. mu held; may be let go.
func (s *Store) space(e *entry) ([]byte, error) {
	need := capacityFor(e.size, s.mem.limit)
	if err := s.reserve(need, e.owner); err != nil {
		return nil, err
	}
	return s.allocate(e.size, need)
}
