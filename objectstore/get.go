package objectstore

import (
	"fmt"
	"sync/atomic"
)

// Object is a pinned value. Its bytes stay where they are until Release, even when the object is released by
// all holders or the store is closed meanwhile.
type Object struct {
	s        *Store
	e        *entry
	data     []byte
	released atomic.Bool
}

// ID returns the object's id.
func (o *Object) ID() ID { return o.e.id }

// Size returns the number of bytes.
func (o *Object) Size() int64 { return o.e.size }

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
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.unpin(o.e)
}

// Get pins an object. A value that is only on disk is read back into memory, for which Get waits as Put does.
// Errors: ErrNotFound; ErrLost when the bytes on disk are not those that were written; ErrFull when there is no
// room, and always for a value larger than the memory limit: read that one with NewReader.
func (s *Store) Get(id ID) (*Object, error) {
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
	return &Object{s: s, e: e, data: data}, nil
}

// pin finds a held object and keeps its bytes from being dropped. mu held.
func (s *Store) pin(id ID) (*entry, error) {
	if err := s.refs.Pin(id); err != nil {
		return nil, holdError(err, id, "")
	}
	e := s.entries[id]
	e.pinned = true
	if e.list == &s.clean || e.list == &s.dirtyLarge {
		e.unlist()
	}
	return e, nil
}

// unpin takes one pin away. mu held.
func (s *Store) unpin(e *entry) {
	free, err := s.refs.Unpin(e.id)
	if err != nil {
		panic(fmt.Sprintf("objectstore: unpin %s: %v", e.id, err)) // pins are ours alone to count
	}
	e.pinned = s.refs.Pins(e.id) > 0
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
	data, counted, err := s.space(e)
	if err == nil {
		loc := e.loc
		s.mu.Unlock()
		if e.inline {
			err = s.index.read(e.id, data)
		} else {
			err = readValue(loc, data)
		}
		s.mu.Lock()
		switch {
		case err != nil && counted:
			s.free(data, e.inline)
			s.makeRoom()
		case err == nil && counted:
			s.setMemory(e, data)
		}
		if err == nil {
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

// space finds memory to read a value into. A small one that finds no room gets a buffer of its own that the
// budget does not count: it is the reader's, and no larger than what a message carries. mu held; may be let go.
func (s *Store) space(e *entry) (data []byte, counted bool, err error) {
	if e.inline {
		return alignedHeap(int(e.size)), s.tryReserve(e.size), nil
	}
	need := capacityFor(e.size, s.mem.limit)
	if err := s.reserve(need, e.owner); err != nil {
		return nil, false, err
	}
	data, err = s.allocate(e.size, need)
	return data, err == nil, err
}
