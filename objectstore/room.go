package objectstore

import (
	"errors"
	"time"
)

// This file decides who gets memory: first what is free, then clean values are dropped, then dirty ones are
// written to disk and dropped, and meanwhile the request waits in line.

// spillAbove is the share of the memory limit, in percent, that dirty, pinned and unsealed values may take
// before the oldest dirty ones are written to disk ahead of need.
const spillAbove = 80

var errBeyondMemory = errors.New("the value is larger than the memory limit and can only be read as a stream")

// tryReserve takes n bytes of memory if that needs no waiting. mu held.
func (s *Store) tryReserve(n int64) bool {
	if len(s.mem.line) == 0 && s.hardUse()+n <= s.mem.limit {
		for s.mem.used+n > s.mem.limit && s.evict() {
		}
	}
	return s.mem.take(n)
}

// reserve takes n bytes of memory for owner, and waits in line for them as long as anything gets free. mu held;
// it is let go while waiting.
func (s *Store) reserve(n int64, owner string) error {
	if s.tryReserve(n) {
		s.wakeSpill()
		return nil
	}
	if n > s.mem.limit {
		full := s.full(n)
		full.Cause = errBeyondMemory
		return full
	}
	w := s.mem.queue(n, owner)
	s.makeRoom()
	// Progress is being nearer to the head, less memory in hard use than ever since, and bytes on their way to or
	// from the disk. The first two only go one way, and the last comes to its end: what would move more bytes
	// needs memory first, and stands in line behind this. So the wait ends, whatever others do meanwhile.
	place, hard, moved := s.mem.place(w), s.hardUse(), s.moved.Load()
	timer := time.NewTimer(s.cfg.Wait)
	defer timer.Stop()
	for !w.done {
		s.mu.Unlock()
		select {
		case <-w.ready:
		case <-timer.C:
		}
		s.mu.Lock()
		switch p, h, m := s.mem.place(w), s.hardUse(), s.moved.Load(); {
		case w.done:
		case p < place || h < hard || m > moved:
			place, hard, moved = min(p, place), min(h, hard), m
			timer.Reset(s.cfg.Wait)
		default:
			s.mem.leave(w, s.full(n))
			s.mem.serve()
			s.makeRoom() // for whom this one stood in the way of
		}
	}
	return w.err
}

// hardUse is the memory that dropping all clean values would not free. mu held.
func (s *Store) hardUse() int64 { return s.mem.used - s.clean.bytes - s.cleanPageBytes }

// makeRoom serves the line as far as dropping clean values does, and has the rest written to disk. mu held.
func (s *Store) makeRoom() {
	for w := s.mem.head(); w != nil; w = s.mem.head() {
		if s.hardUse()+w.need > s.mem.limit {
			break // keep what would be dropped in vain
		}
		if !s.evict() {
			break
		}
	}
	s.wakeSpill()
}

// evict drops the value, or page of small values, that has been clean the longest, and says whether there was
// one. mu held.
func (s *Store) evict() bool {
	e := s.clean.first
	if p := s.cleanPages.Front(); p != nil && (e == nil || p.Value.(*page).turn < e.turn) && s.evictPage() {
		s.count.evictions++
		return true
	}
	if e = s.clean.first; e == nil {
		return false
	}
	s.count.evictions++
	if e.secondary {
		s.evictSecondary(e)
		return true
	}
	s.dropMemory(e)
	return true
}

// mustSpill says whether a dirty value should be written now. mu held.
func (s *Store) mustSpill() bool {
	if s.dirtyLarge.count == 0 {
		return false
	}
	hard := s.hardUse() - s.spilling
	if w := s.mem.head(); w != nil && hard+w.need > s.mem.limit {
		return true
	}
	return hard > s.mem.limit/100*spillAbove
}

// wakeSpill wakes those who write to disk if they are needed. mu held.
func (s *Store) wakeSpill() {
	if s.mustSpill() {
		kick(s.spillKick)
	}
	if s.mem.head() != nil || s.hardUse() > s.mem.limit/100*spillAbove {
		kick(s.flushKick)
		kick(s.pressKick)
	}
}

// place puts an entry that is in memory and that nobody reads or writes where it can be found when room is
// needed. mu held.
func (s *Store) place(e *entry) {
	switch {
	case e.buf == nil || e.pinned || e.busy || e.list != nil:
	case e.loc != nil || e.secondary:
		s.turn++
		e.turn = s.turn
		s.clean.pushBack(e)
		s.makeRoom()
	default:
		s.dirtyLarge.pushBack(e)
		s.wakeSpill()
	}
}

// allocate returns n bytes for a value, whose capacity was reserved before. mu held; let go when memory with a
// name has to be made, which takes time.
func (s *Store) allocate(n int64, reserved int64) ([]byte, error) {
	buf, err := s.pool.reuse(reserved), error(nil)
	if buf == nil {
		count := s.pool.begin(reserved, s.mem.used)
		var name string
		if s.pool.shared != nil {
			s.mu.Unlock()
		}
		buf, name, err = s.pool.mapFresh(count, reserved)
		if s.pool.shared != nil {
			s.mu.Lock()
		}
		buf = s.pool.end(buf, name, count, reserved)
	}
	if err != nil {
		s.mem.give(reserved)
		full := s.full(reserved)
		full.Cause = err
		return nil, full
	}
	return buf[:n], nil
}

// free takes the memory of a value back. mu held.
func (s *Store) free(buf []byte) {
	s.pool.put(buf)
	s.mem.give(int64(cap(buf)))
	if s.pool.limit == 0 {
		s.pool.trim(0) // the store is closed
	} else if s.pool.cached > idleReserve && !s.relaxing {
		s.relaxing = true
		kick(s.spillKick) // to look again in a while
	}
}

// full describes why a request for memory was refused. mu held.
func (s *Store) full(need int64) *FullError {
	e := &FullError{Need: need, Limit: s.mem.limit, Unsealed: s.unsealed, Dirty: s.dirtyLarge.bytes + s.dirtySmall()}
	e.Pinned = max(s.hardUse()-e.Unsealed-e.Dirty, 0)
	if s.dirtyLarge.count > 0 {
		e.Cause = s.disk.trouble
	} else if s.dirtySmall() > 0 {
		e.Cause = s.indexTrouble
	}
	return e
}

// notFull is err, but nil when it says that there is no room.
func notFull(err error) error {
	if errors.Is(err, ErrFull) {
		return nil
	}
	return err
}

// evictSecondary drops a clean copy of what another store keeps. Holders of it find it gone. mu held.
func (s *Store) evictSecondary(e *entry) {
	if _, free, err := s.refs.Drop(e.id); err == nil && free {
		s.count.remove(e)
		e.dropped = true
	}
	s.dropMemory(e)
}
