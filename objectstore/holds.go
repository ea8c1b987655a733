package objectstore

import (
	"errors"
	"fmt"

	"manta/objectstore/refcount"
)

// Hold adds a holder to an object. A holder is a name; one that holds already changes nothing.
func (s *Store) Hold(id ID, holder string) error {
	if id.small() {
		sh := s.shardOf(id)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if sh.closed {
			return ErrClosed
		}
		return holdError(sh.refs.Hold(id, holder), id, holder)
	}
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
	if id.small() {
		return s.shardOf(id).unhold(id, holder, func(t *refcount.Table[ID, spot]) (spot, bool, error) { return t.Release(id, holder) })
	}
	return s.unhold(id, holder, func(t *refcount.Table[ID, *entry]) (*entry, bool, error) { return t.Release(id, holder) })
}

// Delete takes all holders of an object away, whoever they are. Readers that have it pinned keep its bytes.
func (s *Store) Delete(id ID) error {
	if id.small() {
		return s.shardOf(id).unhold(id, "", func(t *refcount.Table[ID, spot]) (spot, bool, error) { return t.Drop(id) })
	}
	return s.unhold(id, "", func(t *refcount.Table[ID, *entry]) (*entry, bool, error) { return t.Drop(id) })
}

// unhold lets do take holders away, and frees the object if it says so.
func (s *Store) unhold(id ID, holder string, do func(*refcount.Table[ID, *entry]) (*entry, bool, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	e, free, err := do(s.refs)
	if free {
		s.drop(e)
	}
	return holdError(err, id, holder)
}

func (sh *shard) unhold(id ID, holder string, do func(*refcount.Table[ID, spot]) (spot, bool, error)) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return ErrClosed
	}
	v, free, err := do(sh.refs)
	if free {
		sh.free(v)
	}
	return holdError(err, id, holder)
}

// Move gives an object to another owner, who is its only holder then. Errors: ErrNotFound, ErrOwnerEnded.
func (s *Store) Move(id ID, owner string) error {
	if id.small() {
		sh := s.shardOf(id)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if sh.closed {
			return ErrClosed
		}
		_, err := sh.refs.Move(id, owner)
		return holdError(err, id, owner)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	slot, err := s.refs.Move(id, owner)
	if err != nil {
		return holdError(err, id, owner)
	}
	(*s.refs.Value(slot)).owner = owner
	return nil
}

// ReleaseOwner ends an owner: all its objects lose all holds, its unsealed writers and its waiting calls end with
// ErrOwnerEnded, and so does what it tries later. It may be called again.
func (s *Store) ReleaseOwner(owner string) {
	ended := fmt.Errorf("%w: %s", ErrOwnerEnded, owner)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	var gone []*entry
	s.refs.EndOwner(owner, func(e *entry) { gone = append(gone, e) })
	for _, e := range gone {
		s.drop(e)
	}
	s.refs.Shrink()
	s.mem.fail(func(w *waiter) bool { return w.owner == owner }, ended)
	s.makeRoom()
	writers := s.openWriters(func(w *Writer) bool { return w.owner == owner })
	s.mu.Unlock()
	for _, w := range writers {
		w.end(ended)
	}
	for _, sh := range s.shards {
		sh.mu.Lock()
		if !sh.closed {
			sh.refs.EndOwner(owner, sh.free)
		}
		sh.mu.Unlock()
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

// drop ends a large object that nobody holds or reads. mu held.
func (s *Store) drop(e *entry) {
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
	if e.loc != nil {
		s.indexed.Add(-1)
		s.changes = append(s.changes, indexOp{key: locationKey(e.id)})
		kick(s.flushKick)
		s.changed++
		e.loc.file.after = s.changed
		s.disk.release(e, e.loc)
		kick(s.spillKick)
	}
	s.makeRoom()
}

// setMemory puts the value's bytes, already counted in the budget, in their place. mu held.
func (s *Store) setMemory(e *entry, buf []byte) {
	e.buf = buf
	s.count.resident.add(e)
}

// dropMemory takes the value out of memory. mu held.
func (s *Store) dropMemory(e *entry) {
	if e.buf == nil {
		return
	}
	e.unlist()
	if !e.dropped {
		s.count.resident.remove(e)
	}
	buf := e.buf
	e.buf = nil
	s.free(buf)
}
