package objectstore

import "time"

const (
	// flushWindow is how long what is to be written to Badger may wait for company. Many a small value is freed
	// before, and then never written at all.
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
		for s.flushPass() {
		}
	}
}

// flushPass waits for company, writes what is to be written, and says whether something was left.
func (s *Store) flushPass() bool {
	if !s.pressed() {
		select {
		case <-s.done:
		case <-s.pressKick:
		case <-time.After(s.cfg.flushWindow):
		}
	}
	select {
	case <-s.done:
		return false
	default:
	}
	more, err := s.flushAll(s.cfg.Recover || s.pressed())
	if err != nil {
		select {
		case <-s.done:
		case <-time.After(retryAfter):
		}
		return true
	}
	return more
}

// flushAll writes changes of the index, and with small also the small values that are not on disk.
func (s *Store) flushAll(small bool) (more bool, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.indexTrouble = err
	}()
	if err := s.index.reset(s.indexUnneeded); err != nil {
		return false, err
	}
	if more, err = s.flushChanges(); err != nil {
		return false, err
	}
	for _, sh := range s.shards {
		again, err := sh.flush(small)
		if err != nil {
			return false, err
		}
		more = more || again
		if again, err = sh.compact(); err != nil {
			return false, err
		}
		more = more || again
	}
	return more, s.index.collect(s.badgerLive.Load())
}

// pressed says whether memory is short.
func (s *Store) pressed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mem.head() != nil || s.hardUse() > s.mem.limit/100*spillAbove
}

// indexUnneeded says whether all that was ever written to Badger may go, and if so forgets what was to be deleted.
func (s *Store) indexUnneeded() bool {
	for _, sh := range s.shards {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.indexed.Load() > 0 {
		return false
	}
	s.changes, s.settled = nil, s.changed // they can only be about objects that are gone
	kick(s.spillKick)
	for _, sh := range s.shards {
		sh.deletes, sh.graves = nil, nil
	}
	return true
}

// flushChanges writes where large values are.
func (s *Store) flushChanges() (more bool, err error) {
	s.mu.Lock()
	ops := s.changes
	if len(ops) > flushCount {
		ops = ops[:flushCount:flushCount]
	}
	s.changes = s.changes[len(ops):]
	more = len(s.changes) > 0
	s.mu.Unlock()
	if len(ops) == 0 {
		return false, nil
	}
	err = s.index.write(ops)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.changes = append(ops, s.changes...)
		return true, err
	}
	s.settled += uint64(len(ops))
	if len(s.disk.garbage) > 0 {
		kick(s.spillKick)
	}
	return more, nil
}
