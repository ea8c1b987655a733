package objectstore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"manta/objectstore/refcount"
)

// shard keeps a part of the small values, chosen by id. Small values are many: what the store keeps about one
// is a record of 56 bytes outside the Go heap and a few bytes of index, no pointer and nothing to collect.
//
// Its mutex is taken before the store's.
type shard struct {
	s   *Store
	num int

	mu       sync.Mutex // guards all below
	closed   bool
	refs     *refcount.Table[ID, spot]
	segments []*segment // by number; nil where free
	freeNums []uint32
	seq      uint64

	current *page      // values are put into it
	open    *segment   // the part of current that is not to be written yet
	dirty   []*segment // to be written, oldest first
	deletes [][]byte   // keys to be deleted
	graves  []*segment // with values freed since they were stored

	restore    *page      // values that were read back are put into it
	restored   []*hotPage // all pages of that kind, restore too
	count      smallCounts
	stored     int64        // bytes on disk of segments that are alive
	storedLive int64        // about what their live values take of it
	unsaved    atomic.Int64 // bytes of values that are not on disk; written under mu
	_          [64]byte
}

// hotPage knows which copies are in a page, to forget them when it is gone.
type hotPage struct {
	page   *page
	copies []hotKey
}

type hotKey struct {
	seg *segment
	off uint32
}

type smallCounts struct {
	tier                           Tier
	puts, gets, bytesPut, bytesGot int64
	restores, bytesRestored        int64
	compacted                      int64
	indexBytes                     int64 // filled in when asked for
}

const (
	smallPage    = 256 << 10 // size of a page, when the limit allows for many
	leastPage    = 4 << 10
	mostShards   = 8
	shardedAbove = 32 << 20 // memory limit from which there is more than one shard
)

// pageSizeFor gives at least 128 pages to a memory limit, if they need not be too small.
func pageSizeFor(limit int64) int {
	n := smallPage
	for n > leastPage && int64(n)*128 > limit {
		n /= 2
	}
	return n
}

func hashID(id ID) uint64 { return binary.LittleEndian.Uint64(id[:8]) }

func newShard(s *Store, num int) *shard {
	// Outside the heap, or the collector would let the heap grow by as much again.
	mem := refcount.Memory{Get: mapMemory, Put: func(b []byte) { _ = unmapMemory(b) }}
	return &shard{s: s, num: num, refs: refcount.New[ID, spot](hashID, mem)}
}

func (s *Store) shardOf(id ID) *shard { return s.shards[int(id[8])&(len(s.shards)-1)] }

// dirtySmall is how many bytes of small values are not on disk.
func (s *Store) dirtySmall() (n int64) {
	for _, sh := range s.shards {
		n += sh.unsaved.Load()
	}
	return n
}

// putSmall stores a small value. Borrows parts.
func (s *Store) putSmall(id ID, owner, text string, size int, parts [][]byte) error {
	sh, label := s.shardOf(id), s.labels.number(text)
	sh.mu.Lock()
	for {
		if sh.closed {
			sh.mu.Unlock()
			return ErrClosed
		}
		if seg, off := sh.room(size); seg != nil {
			err := sh.add(id, owner, label, seg, off, size, parts)
			sh.mu.Unlock()
			return err
		}
		sh.mu.Unlock()
		p, err := s.takePage(s.pageFor(size), owner, true)
		if err != nil {
			return err
		}
		if p == nil {
			return s.putThrough(sh, id, owner, label, size, parts)
		}
		sh.mu.Lock()
		if sh.closed {
			sh.mu.Unlock()
			s.returnPage(p)
			return ErrClosed
		}
		if !s.fillsPage(size) {
			sh.adopt(p)
			continue
		}
		seg := sh.newSegment(p, 0)
		sh.close(seg)
		err = sh.add(id, owner, label, seg, 0, size, parts)
		sh.settle(p)
		sh.mu.Unlock()
		return err
	}
}

// fillsPage says whether a value gets a page of its own.
func (s *Store) fillsPage(size int) bool { return size > s.pageSize/4 }

func (s *Store) pageFor(size int) int64 {
	if s.fillsPage(size) {
		return capacityFor(int64(size), s.mem.limit)
	}
	return int64(s.pageSize)
}

// returnPage gives an unused page back.
func (s *Store) returnPage(p *page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setPage(p, pageDead)
}

// room finds a place for a value in the current page. An empty one takes a byte, for offsets to be unique. mu held.
func (sh *shard) room(size int) (*segment, int) {
	size = max(size, 1)
	p := sh.current
	if p == nil || sh.s.fillsPage(size) {
		return nil, 0
	}
	at := int(roundUp(int64(p.at), alignment))
	if at+size > len(p.buf) && p.segments == 0 && p.readers.Load() == 0 {
		at = 0 // nothing in it is alive: fill it again
	}
	if at+size > len(p.buf) {
		return nil, 0
	}
	if sh.open == nil {
		sh.open = sh.newSegment(p, at)
	}
	return sh.open, at
}

// adopt makes p the current page, unless somebody was faster. mu held.
func (sh *shard) adopt(p *page) {
	if old := sh.current; old != nil {
		if old.at+sh.s.pageSize/4+alignment <= len(old.buf) {
			sh.s.returnPage(p)
			return
		}
		sh.retire()
	}
	sh.current = p
	p.current = true
	kick(sh.s.flushKick)
}

// retire ends the filling of the current page. mu held.
func (sh *shard) retire() {
	p := sh.current
	if sh.open != nil {
		sh.close(sh.open)
	}
	sh.current = nil
	p.current = false
	sh.settle(p)
}

func (sh *shard) newSegment(p *page, base int) *segment {
	seg := &segment{page: p, base: base, end: base}
	sh.number(seg)
	if p != nil {
		p.segments++
		p.dirty++
	}
	return seg
}

// number gives a segment its names. mu held.
func (sh *shard) number(seg *segment) {
	sh.seq++
	seg.seq, seg.born = sh.seq, time.Now()
	if n := len(sh.freeNums); n > 0 {
		seg.num = sh.freeNums[n-1]
		sh.freeNums = sh.freeNums[:n-1]
		sh.segments[seg.num] = seg
		return
	}
	seg.num = uint32(len(sh.segments))
	sh.segments = append(sh.segments, seg)
}

// close makes a segment ready to be written. mu held.
func (sh *shard) close(seg *segment) {
	if seg == sh.open {
		sh.open = nil
	}
	sh.dirty = append(sh.dirty, seg)
}

// add makes the value, copied to its place, an object. mu held.
func (sh *shard) add(id ID, owner string, label uint16, seg *segment, off, size int, parts [][]byte) error {
	slot, err := sh.refs.Add(id, owner, spot{segment: seg.num, off: uint32(off), size: uint32(size), label: label})
	if err != nil {
		if seg.live == 0 && !seg.stored {
			sh.bury(seg)
		}
		return holdError(err, id, owner)
	}
	p := seg.page
	for at, i := off, 0; i < len(parts); i++ {
		at += copy(p.buf[at:], parts[i])
	}
	sh.fill(seg, off, size)
	seg.slots = append(seg.slots, slot)
	sh.unsaved.Add(int64(size))
	sh.counted(seg, size)
	return nil
}

// fill takes note of what is taken of a segment and its page. mu held.
func (sh *shard) fill(seg *segment, off, size int) {
	end := off + max(size, 1)
	seg.page.at, seg.end = end, end
}

// counted counts a new object. mu held.
func (sh *shard) counted(seg *segment, size int) {
	seg.live++
	seg.bytes += int64(size)
	sh.count.tier.Objects++
	sh.count.tier.Bytes += int64(size)
	sh.count.puts++
	sh.count.bytesPut += int64(size)
}
