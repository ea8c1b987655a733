package objectstore

import "time"

const (
	// flushWindow is how long a small value may wait for company before it is written to Badger. Many a small
	// value is freed before, and then never written at all.
	flushWindow = 20 * time.Millisecond
	flushCount  = 1024
	flushBytes  = 4 << 20
)

// flushLoop writes small values and changes of the index to Badger, behind the calls that made them.
func (s *Store) flushLoop() {
	defer s.loops.Done()
	for {
		select {
		case <-s.done:
			return
		case <-s.flushKick:
		}
		for s.flushWait() {
			if err := s.index.reset(s.indexUnneeded); err != nil {
				s.indexFailed(err)
			}
			if err := s.flushSome(); err != nil {
				s.sleep(retryAfter)
			}
		}
	}
}

// flushWait waits for a batch worth writing and says whether there is one.
func (s *Store) flushWait() bool {
	s.mu.Lock()
	some := s.dirtySmall.count > 0 || len(s.changes) > 0
	now := s.mem.head() != nil || s.dirtySmall.count+len(s.changes) >= flushCount || s.dirtySmall.bytes >= flushBytes
	s.mu.Unlock()
	if some && !now {
		s.sleep(s.cfg.flushWindow)
	}
	select {
	case <-s.done:
		return false
	default:
		return some
	}
}

// indexUnneeded says whether all that was ever written to Badger may go, and if so forgets what was to be written.
func (s *Store) indexUnneeded() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexed > 0 {
		return false
	}
	s.changes = nil // they can only be about objects that are gone
	return true
}

func (s *Store) indexFailed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexTrouble = err
}

// sleep waits unless the store closes.
func (s *Store) sleep(d time.Duration) {
	select {
	case <-s.done:
	case <-time.After(d):
	}
}

// flushSome writes one batch.
func (s *Store) flushSome() error {
	s.mu.Lock()
	ops, rest := s.changes, []indexOp(nil)
	if len(ops) > flushCount {
		ops, rest = ops[:flushCount:flushCount], ops[flushCount:]
	}
	s.changes = rest
	changes := len(ops)
	var batch []*entry
	for size := int64(0); len(batch) < flushCount && size < flushBytes && s.dirtySmall.first != nil; {
		e := s.dirtySmall.first
		e.unlist()
		e.busy = true
		size += e.size
		batch = append(batch, e)
		ops = append(ops, indexOp{id: e.id, owner: e.owner, value: e.buf, inline: true})
	}
	s.flushing = true
	s.mu.Unlock()

	var err error
	if len(ops) > 0 {
		err = s.index.write(ops)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing = false
	s.indexTrouble = err
	if err != nil {
		s.changes = append(ops[:changes:changes], s.changes...)
	}
	for i := len(batch) - 1; i >= 0; i-- { // backwards: after a failure the oldest is first again
		e := batch[i]
		e.busy = false
		if err == nil {
			e.stored = true
			s.indexed++
		}
		switch {
		case e.dropped:
			s.reclaim(e)
		case err != nil:
			s.dirtySmall.pushFront(e)
		}
	}
	if err == nil {
		for _, e := range batch {
			if !e.dropped {
				s.place(e)
			}
		}
	}
	return err
}
