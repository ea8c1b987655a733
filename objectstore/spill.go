package objectstore

import (
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"
	"time"
)

// relaxEvery is how long memory is kept for the next values without being needed.
const relaxEvery = 10 * time.Second

// spiller is one of the goroutines that write dirty values to disk when memory gets short. Each fills files of
// its own. They also remove files that nobody needs, and compact those that are mostly dead.
type spiller struct {
	s       *Store
	current *spillFile // guarded by the store's mutex
	copyBuf []byte
}

func (w *spiller) loop() {
	s := w.s
	defer s.loops.Done()
	retry, relax := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer retry.Stop()
	defer relax.Stop()
	timing := false // relax runs
	for {
		select {
		case <-s.done:
			return
		case <-s.spillKick:
		case <-retry.C:
		case <-relax.C:
			timing = false
			s.relax()
		}
		s.mu.Lock()
		again := w.work()
		relaxing := s.relaxing
		s.mu.Unlock()
		if again {
			retry.Reset(retryAfter)
		}
		if relaxing && !timing {
			timing = true
			relax.Reset(relaxEvery)
		}
	}
}

// work does what there is to do, and says whether to look again in a while. mu held; let go meanwhile.
func (w *spiller) work() (again bool) {
	s := w.s
	again = s.removeGarbage()
	for !s.closed {
		must := s.mustSpill()
		if must {
			kick(s.spillKick) // another writer may help
		}
		if wait := time.Until(s.disk.retryAt); wait > 0 {
			return again || must
		}
		switch victim := s.disk.victim(); {
		case must:
			w.spillOne()
		case victim != nil:
			if !w.compact(victim) {
				return true
			}
		default:
			return again
		}
		again = s.removeGarbage()
	}
	return again
}

// relax returns memory to the system that was not needed for a while.
func (s *Store) relax() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relaxing = s.pool.relax(time.Now(), relaxEvery)
}

// file returns the file to append to, marked busy. mu held.
func (w *spiller) file() *spillFile {
	if w.current == nil || !w.current.filling {
		w.current = w.s.disk.newFile()
		w.current.filling = true
	}
	w.current.busy = true
	return w.current
}

// spillOne writes the oldest dirty value to disk. mu held; let go while writing.
func (w *spiller) spillOne() {
	s := w.s
	e := s.dirtyLarge.first
	need := recordSize(e.size)
	if err := s.disk.take(need); err != nil {
		s.diskFailed(err)
		return
	}
	e.unlist()
	e.busy = true
	charge := e.charge()
	s.spilling += charge
	sf := w.file()
	off := sf.size
	started := time.Now()
	s.mu.Unlock()

	sum, err := appendRecord(s.disk.files, sf, e, &s.moved)
	if err != nil && sf.f != nil {
		_ = sf.f.Truncate(off) // gives space back; what stays all the same, the next record overwrites
	}

	s.mu.Lock()
	s.spilling -= charge
	sf.busy, e.busy = false, false
	s.count.spillTime += time.Since(started)
	if err != nil {
		s.disk.bytes -= need
		s.diskFailed(fmt.Errorf("spill to %s: %w", sf.path, err))
		if !e.dropped && !e.pinned {
			s.dirtyLarge.pushFront(e)
		}
	} else {
		s.spilled(e, &location{file: sf, off: off, sum: sum})
		sf.size += need
		sf.records++
	}
	s.written(e, sf)
}

// written takes note that a value is no longer being written. mu held.
func (s *Store) written(e *entry, sf *spillFile) {
	if e.dropped {
		s.reclaim(e)
	} else {
		s.place(e)
	}
	s.disk.settle(sf)
}

// spilled takes note that a value is on disk. mu held.
func (s *Store) spilled(e *entry, loc *location) {
	s.diskWorks()
	s.disk.adopt(e, loc)
	s.indexed.Add(1)
	s.count.spills++
	s.count.bytesSpilled += e.size
	s.noteLocation(e)
}

// noteLocation has the index say where a value is. mu held.
func (s *Store) noteLocation(e *entry) {
	l := spilled{owner: e.owner, size: e.size, off: e.loc.off, sum: e.loc.sum, file: e.loc.file.name()}
	s.changes = append(s.changes, indexOp{key: locationKey(e.id), value: l.encode()})
	s.changed++
	kick(s.flushKick)
}

// appendRecord writes e after what the file has, and makes the file first if need be. Borrows e.buf.
func appendRecord(files filesystem, sf *spillFile, e *entry, moved *atomic.Int64) (uint64, error) {
	if err := sf.make(files); err != nil {
		return 0, err
	}
	return writeRecord(sf.f, sf.size, e.id, e.buf, moved)
}

func (sf *spillFile) make(files filesystem) error {
	if sf.f != nil {
		return nil
	}
	f, err := files.Create(sf.path)
	if err != nil {
		return err
	}
	sf.f, sf.made = f, true
	return nil
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
		if s.cfg.Recover && sf.after > s.settled {
			s.disk.garbage = append(s.disk.garbage, sf) // the index may still lead here; flushing kicks again
			continue
		}
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
