package objectstore

import (
	"fmt"

	"manta/objectstore/refcount"
)

// getSmall pins a small value.
func (s *Store) getSmall(id ID) (*Object, error) {
	sh := s.shardOf(id)
	sh.mu.Lock()
	if sh.closed {
		sh.mu.Unlock()
		return nil, ErrClosed
	}
	slot, err := sh.refs.Pin(id)
	if err != nil {
		sh.mu.Unlock()
		return nil, s.pinError(err, id)
	}
	v := *sh.refs.Value(slot)
	o := &Object{s: s, id: id, shard: sh, slot: slot, size: int64(v.size)}
	o.data, o.page = sh.inMemory(v)
	sh.count.gets++
	sh.count.bytesGot += o.size
	sh.mu.Unlock()
	if o.page != nil {
		return o, nil
	}
	if o.data, o.page, err = sh.readBack(slot); err != nil {
		o.Release()
		return nil, fmt.Errorf("object %s: %w", id, err)
	}
	return o, nil
}

// inMemory finds a value in memory and pins its page. mu held.
func (sh *shard) inMemory(v spot) ([]byte, *page) {
	seg := sh.segments[v.segment]
	if p := seg.page; p != nil {
		if p.enter() {
			return p.buf[v.off : v.off+v.size : v.off+v.size], p
		}
		seg.page = nil
	}
	if c, ok := seg.hot[v.off]; ok {
		if c.page.enter() {
			return c.page.buf[c.at : c.at+int(v.size) : c.at+int(v.size)], c.page
		}
		delete(seg.hot, v.off)
	}
	return nil, nil
}

// readBack reads a pinned value from Badger into memory. Where there is no room it gets a buffer of its own
// that the budget does not count: it is the reader's, and no larger than what a message carries. The page is nil
// then. mu not held.
func (sh *shard) readBack(slot refcount.Slot) (data []byte, p *page, err error) {
	s := sh.s
	s.mu.Lock()
	err = s.begin()
	s.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	defer s.end()
	for {
		sh.mu.Lock()
		if sh.closed {
			sh.mu.Unlock()
			return nil, nil, ErrClosed
		}
		v := *sh.refs.Value(slot)
		if data, p = sh.inMemory(v); p != nil { // by now
			sh.mu.Unlock()
			return data, p, nil
		}
		seg := sh.segments[v.segment]
		whole := sh.inOrder(seg, v)
		sh.mu.Unlock()
		if whole {
			if data, p = sh.readSegment(seg, v); p != nil {
				return data, p, nil
			}
		}
		data, p, err = sh.readValue(seg, v)
		sh.mu.Lock()
		moved := !sh.closed && sh.segments[sh.refs.Value(slot).segment] != seg
		sh.mu.Unlock()
		if err == nil || !moved { // else a compaction took it elsewhere
			return data, p, err
		}
	}
}

// readValue reads one value of a segment back. mu not held.
func (sh *shard) readValue(seg *segment, v spot) (data []byte, p *page, err error) {
	s := sh.s
	hot, at := sh.hotRoom(int(v.size))
	if hot != nil {
		p = hot.page
		data = p.buf[at : at+int(v.size) : at+int(v.size)]
	} else {
		data = alignedHeap(int(v.size))
	}
	if err := s.index.read(segmentKey(sh.num, seg.seq), func(b []byte) error { return v.cut(b, seg.base, data) }); err != nil {
		if p != nil {
			s.leavePage(p)
		}
		return nil, nil, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.count.restores++
	sh.count.bytesRestored += int64(v.size)
	if hot != nil {
		if seg.hot == nil {
			seg.hot = map[uint32]hotCopy{}
		}
		seg.hot[v.off] = hotCopy{p, at}
		hot.copies = append(hot.copies, hotKey{seg, v.off})
	}
	return data, p, nil
}

// hotRoom finds room for a value that is read back, in a page that it pins; nil when there is none. mu not held.
func (sh *shard) hotRoom(size int) (*hotPage, int) {
	s := sh.s
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return nil, 0
	}
	if h, at := sh.hotPlace(size); h != nil {
		return h, at
	}
	sh.mu.Unlock()
	p, err := s.takePage(s.pageFor(size), "", false)
	sh.mu.Lock()
	if p == nil || err != nil {
		return nil, 0
	}
	if sh.closed {
		s.returnPage(p)
		return nil, 0
	}
	sh.forgetHot()
	p.restored = true
	h := &hotPage{page: p}
	sh.restored = append(sh.restored, h)
	p.enter()
	p.at = size
	if s.fillsPage(size) {
		sh.settle(p)
		return h, 0
	}
	if old := sh.restore; old != nil {
		old.current = false
		sh.settle(old)
	}
	sh.restore = p
	p.current = true
	return h, 0
}

// hotPlace finds room in the page at hand. mu held.
func (sh *shard) hotPlace(size int) (*hotPage, int) {
	p := sh.restore
	if p == nil || sh.s.fillsPage(size) {
		return nil, 0
	}
	at := int(roundUp(int64(p.at), alignment))
	if at+size > len(p.buf) || !p.enter() {
		return nil, 0
	}
	p.at = at + size
	for i := len(sh.restored) - 1; i >= 0; i-- {
		if sh.restored[i].page == p {
			return sh.restored[i], at
		}
	}
	return nil, 0
}

// forgetHot forgets the copies in pages that are gone. mu held.
func (sh *shard) forgetHot() {
	kept := sh.restored[:0]
	for _, h := range sh.restored {
		if h.page.readers.Load() >= 0 {
			kept = append(kept, h)
			continue
		}
		for _, k := range h.copies {
			if c, ok := k.seg.hot[k.off]; ok && c.page == h.page {
				delete(k.seg.hot, k.off)
			}
		}
	}
	clear(sh.restored[len(kept):])
	sh.restored = kept
}

// release ends a pin. mu not held.
func (sh *shard) release(slot refcount.Slot) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.closed {
		return
	}
	v, free, err := sh.refs.Unpin(slot)
	if err != nil {
		panic(fmt.Sprintf("objectstore: unpin: %v", err)) // pins are ours alone to count
	}
	if free {
		sh.free(v)
	}
}
