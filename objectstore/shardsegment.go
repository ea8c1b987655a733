package objectstore

import "errors"

// This file reads segments back as a whole. What was put one after the other is often read so too, and then one
// read brings the next thousand values; a reader who jumps about would have to pay for them in vain.

const (
	inOrderGap  = 16 // part of a page that readers who work side by side are from each other at most
	inOrderRuns = 3  // values in order from which more of them are expected
)

// inOrder takes note of where a value is that has to be read back, and says whether the whole segment should be:
// then it is marked so, and readSegment must follow. mu held.
func (sh *shard) inOrder(seg *segment, v spot) bool {
	if gap := uint32(sh.s.pageSize / inOrderGap); v.off <= seg.next+gap && v.off+gap >= seg.next {
		seg.run++
		seg.next = max(seg.next, v.off+v.size)
	} else {
		seg.run, seg.next = 0, v.off+v.size
	}
	large := seg.end-seg.base >= sh.s.pageSize/2 && seg.end <= sh.s.pageSize
	if seg.run < inOrderRuns || seg.whole || !large || seg.page != nil || !seg.stored || seg.kept {
		return false
	}
	seg.run, seg.whole = 0, true
	return true
}

// readSegment reads all of a segment into a page of its own, and pins it for one of its values. It is nil when there
// is no room, and when anything is wrong with the segment: reading the value alone says what. mu not held.
func (sh *shard) readSegment(seg *segment, v spot) ([]byte, *page) {
	s := sh.s
	p, _ := s.takePage(int64(s.pageSize), "", false)
	if p != nil && sh.fillFrom(seg, p) != nil {
		s.returnPage(p)
		p = nil
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	seg.whole = false
	if p == nil {
		return nil, nil
	}
	if sh.closed || seg.live == 0 || seg.page != nil || seg.kept || sh.segments[v.segment] != seg {
		s.returnPage(p)
		return nil, nil
	}
	seg.page, p.segments, p.at = p, 1, len(p.buf)
	p.enter()
	sh.settle(p)
	sh.count.restores += int64(seg.live)
	sh.count.bytesRestored += seg.bytes
	return p.buf[v.off : v.off+v.size : v.off+v.size], p
}

// fillFrom copies a stored segment to its place in a page, and checks all of its values.
func (sh *shard) fillFrom(seg *segment, p *page) error {
	return sh.s.index.read(segmentKey(sh.num, seg.seq), func(b []byte) error {
		items, image, err := parseDirectory(b)
		if err != nil {
			return err
		}
		if image != seg.end-seg.base {
			return errDirectory
		}
		sh.s.index.touched.Add(int64(len(b)))
		to := p.buf[seg.base:seg.end]
		copy(to, b[:image])
		for i := range items {
			if it := &items[i]; checksum32(to[it.off:it.off+it.size]) != it.sum {
				return errors.New("wrong checksum")
			}
		}
		return nil
	})
}
