package objectstore

import (
	stdlist "container/list"
	"sync/atomic"
)

// page is a run of memory that small values are put into one after the other. It is what the memory budget
// counts, what is written to Badger (in segments) and what is dropped when room is needed: none of these costs
// anything for the single value.
type page struct {
	buf     []byte
	readers atomic.Int64 // pins of values in it; far below zero once it is gone
	touched atomic.Bool  // was read since eviction last passed it over
	parked  atomic.Bool  // could not go because of its readers; the last of them sees to it

	// Guarded by its shard's mutex.
	at       int // where the next value goes
	segments int // alive
	dirty    int // of them, not on disk
	current  bool
	restored bool // holds copies of values that were read back
	known    pageState

	// Guarded by the store's mutex.
	state pageState
	turn  uint64           // when it became clean
	elem  *stdlist.Element // in Store.cleanPages
}

type pageState uint8

const (
	pageBusy  pageState = iota // written to, or not all on disk
	pageClean                  // all on disk: may be dropped
	pageDead                   // nothing in it is alive
)

// pageGone is what readers become, by one of two doors that only open when there is no reader.
const pageGone = -1 << 40

// enter pins the page, unless it is gone.
func (p *page) enter() bool {
	for {
		n := p.readers.Load()
		if n < 0 {
			return false
		}
		if p.readers.CompareAndSwap(n, n+1) {
			if !p.touched.Load() {
				p.touched.Store(true)
			}
			return true
		}
	}
}

// leavePage ends a pin. mu not held.
func (s *Store) leavePage(p *page) {
	if p.readers.Add(-1) > 0 || !p.parked.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.parked.Store(false)
	s.putPage(p)
	s.makeRoom()
}

// setPage tells the store what has become of a page. mu held.
func (s *Store) setPage(p *page, state pageState) {
	p.state = state
	s.putPage(p)
	s.makeRoom()
}

// putPage puts a page where it belongs. mu held.
func (s *Store) putPage(p *page) {
	switch {
	case p.readers.Load() < 0:
	case p.state == pageDead:
		s.dropPage(p)
	case p.state == pageClean && p.elem == nil:
		s.turn++
		p.turn = s.turn
		p.elem = s.cleanPages.PushBack(p)
		s.cleanPageBytes += int64(cap(p.buf))
	}
}

// dropPage frees a page if nobody reads it; else it is parked, and freed or listed again by the last reader. mu
// held.
func (s *Store) dropPage(p *page) bool {
	if p.elem != nil {
		s.cleanPages.Remove(p.elem)
		p.elem = nil
		s.cleanPageBytes -= int64(cap(p.buf))
	}
	for !p.readers.CompareAndSwap(0, pageGone) {
		p.parked.Store(true)
		if p.readers.Load() != 0 {
			return false
		}
	}
	buf := p.buf
	p.buf = nil
	s.free(buf)
	return true
}

// evictPage drops the page that has been clean the longest and was not read meanwhile, and says whether there
// was one that could go. mu held.
func (s *Store) evictPage() bool {
	for chances := s.cleanPages.Len(); s.cleanPages.Len() > 0; {
		p := s.cleanPages.Front().Value.(*page)
		if chances > 0 && p.touched.Swap(false) {
			chances--
			s.cleanPages.MoveToBack(p.elem)
			continue
		}
		if s.dropPage(p) {
			return true
		}
	}
	return false
}

// takePage finds memory for a page of n bytes, and returns nil when there is none. With wait it stands in line
// for it, but only while something is being written to disk that will make room. mu not held.
func (s *Store) takePage(n int64, owner string, wait bool) (*page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if !s.tryReserve(n) {
		if !wait || !s.writable() || n > s.mem.limit {
			return nil, nil
		}
		if err := s.reserve(n, owner); err != nil {
			return nil, notFull(err)
		}
	}
	buf, err := s.allocate(n, n)
	if err != nil {
		return nil, notFull(err)
	}
	s.wakeSpill()
	return &page{buf: buf}, nil
}

// writable says whether anything dirty can be expected to reach the disk. mu held.
func (s *Store) writable() bool {
	return s.indexTrouble == nil && s.dirtySmall() > 0 || s.disk.trouble == nil && (s.dirtyLarge.count > 0 || s.spilling > 0)
}
