package objectstore

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// idleAfter is how long an empty store keeps its mapped memory for the next job.
const idleAfter = time.Second

// spillLoop writes dirty values to disk when memory gets short, and removes files that nobody needs. It is the
// only writer of the current file.
func (s *Store) spillLoop() {
	defer s.loops.Done()
	retry, idle := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer retry.Stop()
	defer idle.Stop()
	timing := false // idle runs
	for {
		select {
		case <-s.done:
			return
		case <-s.spillKick:
		case <-retry.C:
		case <-idle.C:
			timing = false
			s.trimIdle()
		}
		s.mu.Lock()
		again := s.removeGarbage()
		for !s.closed && s.mustSpill() {
			if wait := time.Until(s.disk.retryAt); wait > 0 {
				again = true
				break
			}
			s.spillOne()
			again = s.removeGarbage()
		}
		idling := s.idle
		s.mu.Unlock()
		if again {
			retry.Reset(retryAfter)
		}
		if idling && !timing {
			timing = true
			idle.Reset(idleAfter)
		}
	}
}

// trimIdle returns mapped memory to the system if the store is still empty.
func (s *Store) trimIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = false
	if s.mem.used == 0 {
		s.pool.trim(idleReserve)
	}
}

// spillOne writes the oldest dirty value to disk. mu held; let go while writing.
func (s *Store) spillOne() {
	e := s.dirtyLarge.first
	need := recordSize(e.size)
	if err := s.disk.take(need); err != nil {
		s.diskFailed(err)
		return
	}
	e.unlist()
	e.busy = true
	sf := s.disk.current
	if sf == nil {
		sf = s.disk.newFile()
		s.disk.current = sf
	}
	sf.busy = true
	off := sf.size
	s.mu.Unlock()

	sum, err := appendRecord(s.disk.files, sf, e)
	if err != nil && sf.f != nil {
		_ = sf.f.Truncate(off) // gives space back; what stays all the same, the next record overwrites
	}

	s.mu.Lock()
	sf.busy, e.busy = false, false
	if err != nil {
		s.disk.bytes -= need
		s.diskFailed(fmt.Errorf("spill to %s: %w", sf.path, err))
		if !e.dropped && !e.pinned {
			s.dirtyLarge.pushFront(e)
		}
	} else {
		s.diskWorks()
		sf.size += need
		sf.live++
		e.loc = &location{file: sf, off: off, sum: sum}
		s.indexed++
		s.count.spills++
		s.count.bytesSpilled += e.size
		s.changes = append(s.changes, indexOp{id: e.id, owner: e.owner, loc: e.loc, size: e.size})
		kick(s.flushKick)
	}
	if e.dropped {
		s.reclaim(e)
	} else {
		s.place(e)
	}
	s.disk.settle(sf)
}

// appendRecord writes e after what the file has, and makes the file first if need be. Borrows e.buf.
func appendRecord(files filesystem, sf *spillFile, e *entry) (uint64, error) {
	if sf.f == nil {
		f, err := files.Create(sf.path)
		if err != nil {
			return 0, err
		}
		sf.f, sf.made = f, true
	}
	return writeRecord(sf.f, sf.size, e.id, e.buf)
}

// diskFailed remembers why spilling stopped and when to try again. mu held.
func (s *Store) diskFailed(err error) {
	s.disk.trouble = err
	s.disk.retryAt = time.Now().Add(retryAfter)
}

// diskWorks ends the caution after a failed write. mu held.
func (s *Store) diskWorks() {
	s.disk.trouble, s.disk.retryAt = nil, time.Time{}
}

// removeGarbage removes files without live values and says whether some could not be. mu held; let go meanwhile.
func (s *Store) removeGarbage() (failed bool) {
	list := s.disk.garbage
	s.disk.garbage = nil
	for _, sf := range list {
		s.mu.Unlock()
		var err error
		if sf.f != nil {
			_ = sf.f.Close() // nothing in it matters any more
			sf.f = nil
		}
		if sf.made {
			err = s.disk.files.Remove(sf.path)
		}
		s.mu.Lock()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.disk.garbage = append(s.disk.garbage, sf)
			failed = true
			continue
		}
		s.disk.forget(sf)
	}
	return failed
}
