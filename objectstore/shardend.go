package objectstore

// This file is about ends: of a value, of the segment that loses its last one, of the page that loses its last segment,
// and of a shard.

// free gives back what a freed value takes. mu held.
func (sh *shard) free(v spot) {
	seg := sh.segments[v.segment]
	sh.count.tier.Objects--
	sh.count.tier.Bytes -= int64(v.size)
	if !seg.stored {
		sh.unsaved.Add(-int64(v.size))
	}
	if sh.s.cfg.Recover && (seg.stored || seg.writing) {
		if len(seg.dead) == seg.deadSaid {
			sh.graves = append(sh.graves, seg)
		}
		seg.dead = append(seg.dead, v.off-uint32(seg.base))
		kick(sh.s.flushKick)
	}
	sh.leaveSegment(seg, v)
	if sh.refs.Len() == 0 {
		kick(sh.s.flushKick) // to give the pages back, if it stays so
	}
}

// leaveSegment takes a value off a segment, and ends it with its last. mu held.
func (sh *shard) leaveSegment(seg *segment, v spot) {
	seg.live--
	seg.bytes -= int64(v.size)
	if seg.stored {
		sh.storedLive -= seg.size / int64(seg.values)
		if sh.stored >= compactAfter && sh.storedLive*2 < sh.stored {
			kick(sh.s.flushKick)
		}
	}
	if seg.live == 0 && !seg.writing && !seg.kept {
		sh.bury(seg)
	}
}

// enterStore counts a segment that has come to be on disk. mu held.
func (sh *shard) enterStore(seg *segment, values int) {
	seg.stored, seg.values = true, values
	sh.stored += seg.size
	sh.storedLive += seg.size / int64(values) * int64(seg.live)
	sh.s.badgerLive.Add(seg.size)
}

// bury ends a segment without live values. mu held.
func (sh *shard) bury(seg *segment) {
	if seg == sh.open {
		sh.open = nil
	}
	sh.segments[seg.num] = nil
	sh.freeNums = append(sh.freeNums, seg.num)
	if seg.stored {
		sh.s.indexed.Add(-1)
		sh.stored -= seg.size
		sh.s.badgerLive.Add(-seg.size)
		sh.deletes = append(sh.deletes, segmentKey(sh.num, seg.seq))
		if seg.deadSaid > 0 {
			sh.deletes = append(sh.deletes, deadKey(sh.num, seg.seq))
		}
		kick(sh.s.flushKick)
	}
	if p := seg.page; p != nil {
		p.segments--
		if !seg.stored {
			p.dirty--
		}
		sh.settle(p)
	}
}

// settle tells the store when a page may go. mu held.
func (sh *shard) settle(p *page) {
	state := pageBusy
	switch {
	case p.current:
	case p.segments == 0 && !p.restored:
		state = pageDead
	case p.dirty == 0:
		state = pageClean
	}
	if state == p.known {
		return
	}
	p.known = state
	sh.s.mu.Lock()
	defer sh.s.mu.Unlock()
	sh.s.setPage(p, state)
}

// letGo gives the pages of a shard without values back. mu held.
func (sh *shard) letGo() {
	if sh.current != nil {
		sh.retire()
	}
	for _, h := range sh.restored {
		h.page.current, h.page.restored = false, false
		sh.settle(h.page)
	}
	sh.restore, sh.restored = nil, nil
	sh.refs.Shrink()
}

// shut ends a shard with its store: values that are pinned keep their bytes, the rest goes. mu not held.
func (sh *shard) shut() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.closed = true
	var pages []*page
	if sh.current != nil {
		pages = append(pages, sh.current)
	}
	for _, seg := range sh.segments {
		if seg != nil && seg.page != nil {
			pages = append(pages, seg.page)
		}
	}
	for _, h := range sh.restored {
		pages = append(pages, h.page)
	}
	sh.s.mu.Lock()
	defer sh.s.mu.Unlock()
	for _, p := range pages {
		sh.s.setPage(p, pageDead)
	}
	sh.refs.Clear()
	sh.segments, sh.dirty, sh.graves, sh.restored, sh.current, sh.open, sh.restore = nil, nil, nil, nil, nil, nil, nil
}
