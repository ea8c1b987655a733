package objectstore

import (
	"context"
	"sync"
)

// arrivals tells those who wait for objects that one was sealed.
type arrivals struct {
	mu      sync.Mutex
	waiting map[ID][]chan ID // guarded by mu
}

// arrived tells those who wait for an object that it is there.
func (s *Store) arrived(id ID) {
	if s.awaited.Load() == 0 {
		return
	}
	s.arrivals.mu.Lock()
	defer s.arrivals.mu.Unlock()
	for _, c := range s.arrivals.waiting[id] {
		select {
		case c <- id:
		default: // it has room for all that it waits for: this is a second copy of the same
		}
	}
}

// Wait waits until n of the objects are in the store, or ctx ends, and returns those that are, in the order of
// ids and never more than n. An id that is not known yet is waited for, as one that is being written is; one
// that was there and went does not come back by itself, and one that is given twice counts once.
func (s *Store) Wait(ctx context.Context, ids []ID, n int) (ready []ID, err error) {
	ids = distinct(ids)
	n = min(n, len(ids))
	c := make(chan ID, len(ids))
	s.awaited.Add(1)
	defer s.awaited.Add(-1)
	s.arrivals.mu.Lock()
	if s.arrivals.waiting == nil {
		s.arrivals.waiting = map[ID][]chan ID{}
	}
	for _, id := range ids {
		s.arrivals.waiting[id] = append(s.arrivals.waiting[id], c)
	}
	s.arrivals.mu.Unlock()
	defer s.forgetWait(ids, c)

	there := map[ID]bool{}
	for _, id := range ids {
		if s.Has(id) {
			there[id] = true
		}
	}
	for len(there) < n && err == nil {
		select {
		case id := <-c:
			there[id] = true
		case <-s.done:
			err = ErrClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	for _, id := range ids {
		if there[id] && len(ready) < n {
			ready = append(ready, id)
		}
	}
	return ready, err
}

// distinct returns ids without repetitions, in their order.
func distinct(ids []ID) (list []ID) {
	seen := make(map[ID]struct{}, len(ids))
	for _, id := range ids {
		if _, ok := seen[id]; !ok {
			seen[id] = struct{}{}
			list = append(list, id)
		}
	}
	return list
}

func (s *Store) forgetWait(ids []ID, c chan ID) {
	s.arrivals.mu.Lock()
	defer s.arrivals.mu.Unlock()
	for _, id := range ids {
		list := s.arrivals.waiting[id]
		kept := list[:0]
		for _, other := range list {
			if other != c {
				kept = append(kept, other)
			}
		}
		if len(kept) == 0 {
			delete(s.arrivals.waiting, id)
		} else {
			s.arrivals.waiting[id] = kept
		}
	}
}

// Has says whether an object is in the store and held.
func (s *Store) Has(id ID) bool {
	if id.small() {
		sh := s.shardOf(id)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		slot := sh.refs.Find(id)
		return !sh.closed && slot != 0 && sh.refs.Live(slot)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.refs.Find(id)
	return !s.closed && slot != 0 && s.refs.Live(slot)
}
