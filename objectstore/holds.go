package objectstore

import (
	"errors"
	"fmt"

	"manta/objectstore/refcount"
)

// Hold adds a holder to an object. A holder is a name; one that holds already changes nothing.
func (s *Store) Hold(id ID, holder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return holdError(s.refs.Hold(id, holder), id, holder)
}

// Release takes a holder away; the owner's name is the first holder. An object goes when it has neither holder
// nor pin. Errors: ErrNotFound, ErrNotHeld.
func (s *Store) Release(id ID, holder string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	free, err := s.refs.Release(id, holder)
	if err != nil {
		return holdError(err, id, holder)
	}
	if free {
		s.drop(s.entries[id])
	}
	return nil
}

// ReleaseOwner ends an owner: all its objects lose all holds, its unsealed writers and its waiting calls end with
// ErrOwnerEnded, and so does what it tries later. It may be called again.
func (s *Store) ReleaseOwner(owner string) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	ended := fmt.Errorf("%w: %s", ErrOwnerEnded, owner)
	for _, id := range s.refs.EndOwner(owner) {
		s.drop(s.entries[id])
	}
	s.mem.fail(func(w *waiter) bool { return w.owner == owner }, ended)
	s.makeRoom()
	writers := s.openWriters(func(w *Writer) bool { return w.owner == owner })
	s.mu.Unlock()
	for _, w := range writers {
		w.end(ended)
	}
}

// holdError says a refcount error in the words of this package.
func holdError(err error, id ID, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, refcount.ErrNotFound):
		return fmt.Errorf("%w: %s", ErrNotFound, id)
	case errors.Is(err, refcount.ErrNotHeld):
		return fmt.Errorf("%w: %s by %q", ErrNotHeld, id, name)
	case errors.Is(err, refcount.ErrOwnerEnded):
		return fmt.Errorf("%w: %s", ErrOwnerEnded, name)
	}
	return fmt.Errorf("objectstore: %s: %w", id, err)
}

// drop ends an object that nobody holds or reads. mu held.
func (s *Store) drop(e *entry) {
	delete(s.entries, e.id)
	s.count.remove(e)
	e.dropped = true
	if e.busy {
		return // whoever writes it reclaims it
	}
	s.reclaim(e)
}

// reclaim gives back what a dropped object takes in memory and on disk. mu held.
func (s *Store) reclaim(e *entry) {
	s.dropMemory(e)
	if e.onDisk() {
		s.indexed--
		s.changes = append(s.changes, indexOp{id: e.id})
		kick(s.flushKick)
	}
	if e.loc != nil {
		s.disk.release(e.loc)
		kick(s.spillKick)
	}
	s.makeRoom()
}

// setMemory puts the value's bytes, already counted in the budget, in their place. mu held.
func (s *Store) setMemory(e *entry, buf []byte) {
	e.buf = buf
	if !e.inline {
		s.count.resident.add(e)
	}
}

// dropMemory takes the value out of memory. mu held.
func (s *Store) dropMemory(e *entry) {
	if e.buf == nil {
		return
	}
	e.unlist()
	if !e.inline && !e.dropped {
		s.count.resident.remove(e)
	}
	buf := e.buf
	e.buf = nil
	s.free(buf, e.inline)
}
