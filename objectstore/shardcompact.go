package objectstore

import (
	"errors"
	"slices"
)

const (
	compactAfter = 4 << 20 // bytes of a shard's segments from which dead values in them matter
	compactBytes = 4 << 20 // that are compacted at a time
)

// compact moves the values that are alive out of segments that are mostly dead, so that these can go, and says
// whether there may be more to do. It is called by the flush loop only.
func (sh *shard) compact() (more bool, err error) {
	for _, seg := range sh.victims() {
		if err = sh.empty(seg); err != nil {
			break
		}
		more = true
	}
	if !more && err == nil {
		return false, nil
	}
	// The copies must be on disk before the originals may go from there.
	if sh.s.cfg.Recover {
		for again, failed := true, error(nil); again; {
			if again, failed = sh.flush(true); failed != nil {
				return false, failed // all stays as it is, and is tried again
			}
		}
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, seg := range sh.segments {
		if seg == nil || !seg.kept {
			continue
		}
		seg.kept = false
		if sh.s.cfg.Recover && len(seg.moved) > 0 {
			seg.dead = append(seg.dead, seg.moved...)
			sh.graves = append(sh.graves, seg)
		}
		seg.moved = nil
		if seg.live == 0 && !seg.writing {
			sh.bury(seg)
		}
	}
	if errors.Is(err, errNoPage) {
		return false, nil // memory is short: some other time
	}
	return more && err == nil, err
}

var errNoPage = errors.New("no page")

// victims returns the segments with the least alive, when they are worth the work.
func (sh *shard) victims() (list []*segment) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.stored < compactAfter || sh.storedLive*2 > sh.stored || sh.closed {
		return nil
	}
	for _, seg := range sh.segments {
		if seg != nil && seg.stored && !seg.stuck && seg.live*2 < seg.values {
			list = append(list, seg)
		}
	}
	slices.SortFunc(list, func(a, b *segment) int { return a.live*b.values - b.live*a.values })
	size := int64(0)
	for i, seg := range list {
		if size += seg.size * int64(seg.live) / int64(seg.values); size > compactBytes {
			list = list[:i+1]
			break
		}
	}
	for _, seg := range list {
		seg.kept = true
	}
	return list
}

// empty puts the values of a segment that are alive into the current page. mu not held.
func (sh *shard) empty(seg *segment) error {
	var items []dirItem
	var data []byte
	err := sh.s.index.read(segmentKey(sh.num, seg.seq), func(b []byte) (err error) {
		data = append(data, b...)
		items, _, err = parseDirectory(data)
		return err
	})
	if err != nil {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		seg.stuck = true // its values are lost; whoever wants one is told
		return nil
	}
	for i := range items {
		if err := sh.rescue(seg, &items[i], data); err != nil {
			return err
		}
	}
	return nil
}

// rescue moves one value, if it is alive. mu not held.
func (sh *shard) rescue(seg *segment, it *dirItem, data []byte) error {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for {
		slot := sh.refs.Find(it.id)
		if sh.closed || slot == 0 {
			return nil
		}
		v := sh.refs.Value(slot)
		if v.segment != seg.num || int(v.off) != seg.base+int(it.off) {
			return nil
		}
		value := data[it.off : it.off+it.size]
		if checksum32(value) != it.sum {
			seg.stuck = true
			return nil
		}
		to, off := sh.room(len(value))
		if to == nil {
			sh.mu.Unlock()
			p, err := sh.s.takePage(sh.s.pageFor(len(value)), "", false)
			sh.mu.Lock()
			if p == nil || err != nil {
				return errNoPage
			}
			if sh.closed {
				sh.s.returnPage(p)
				return nil
			}
			if !sh.s.fillsPage(len(value)) {
				sh.adopt(p)
				continue
			}
			// The lock was let go: look again, and give the page back if the value has gone.
			if slot = sh.refs.Find(it.id); slot == 0 {
				sh.s.returnPage(p)
				return nil
			}
			if v = sh.refs.Value(slot); v.segment != seg.num {
				sh.s.returnPage(p)
				return nil
			}
			to = sh.newSegment(p, 0)
			sh.close(to)
			defer sh.settle(p)
		}
		p := to.page
		copy(p.buf[off:], value)
		sh.fill(to, off, len(value))
		to.slots = append(to.slots, slot)
		to.live++
		to.bytes += int64(len(value))
		sh.unsaved.Add(int64(len(value)))
		seg.moved = append(seg.moved, it.off)
		sh.leaveSegment(seg, *v)
		*v = spot{segment: to.num, off: uint32(off), size: it.size, label: v.label}
		sh.count.compacted += int64(len(value))
		return nil
	}
}
