package objectstore

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"manta/objectstore/refcount"
)

// settle waits, for a while, until the books balance: what is on its way between
// two of them in the background is not an error, but what stays different is.
func settle(s *Store) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if balanced(s) {
			return
		}
	}
}

// balanced reports whether check finds nothing.
func balanced(s *Store) (ok bool) {
	defer func() {
		if p := recover(); p != nil && p != errUnbalanced {
			panic(p)
		}
	}()
	check(quiet{}, s)
	return true
}

var errUnbalanced = errors.New("the books differ")

// quiet ends a check at its first finding.
type quiet struct{}

func (quiet) Errorf(string, ...any) {}
func (quiet) FailNow()              { panic(errUnbalanced) }

// check compares the store's books with each other. Only for a store that nobody else uses.
func check(t require.TestingT, s *Store) {
	for _, sh := range s.shards {
		sh.mu.Lock()
		defer sh.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	require.LessOrEqual(t, s.mem.used, s.mem.limit)
	require.LessOrEqual(t, s.pool.mapped, s.mem.limit)
	var charge int64
	busy, onDisk := false, 0
	live := map[*spillFile]int64{}
	s.refs.All(1, -1, func(slot refcount.Slot) {
		e := *s.refs.Value(slot)
		require.Equal(t, s.refs.Key(slot), e.id)
		require.Equal(t, slot, e.slot)
		require.Equal(t, s.refs.Pins(slot) > 0, e.pinned)
		require.True(t, e.buf != nil || e.loc != nil, "%s is nowhere", e.id)
		require.True(t, e.buf == nil || e.pinned || e.busy || e.list != nil, "%s would stay in memory for ever", e.id)
		require.False(t, e.pinned && e.list != nil, "%s could be dropped under its reader", e.id)
		require.False(t, e.busy && e.list != nil, "%s could be dropped under its writer", e.id)
		busy = busy || e.busy
		charge += e.charge()
		if e.loc != nil {
			onDisk++
			live[e.loc.file] += recordSize(e.size)
			_, ok := e.loc.file.live[e]
			require.True(t, ok)
		}
	})
	for _, sh := range s.shards {
		pages, stored := checkShard(t, sh)
		for p := range pages {
			charge += int64(cap(p.buf))
		}
		onDisk += stored
	}
	var cached int64
	for n, list := range s.pool.free {
		cached += n * int64(len(list))
	}
	require.Equal(t, cached, s.pool.cached)
	if !busy && s.unsealed == 0 && !s.writing() {
		require.Equal(t, charge, s.mem.used)
		require.Equal(t, charge+cached, s.pool.mapped)
		require.Equal(t, int64(onDisk), s.indexed.Load())
	}
	var bytes, dead int64
	for sf := range s.disk.all {
		if !sf.busy {
			require.Equal(t, live[sf], sf.bytes, sf.path)
		}
		bytes, dead = bytes+sf.size, dead+sf.size-sf.bytes
	}
	if !s.writing() {
		require.Equal(t, bytes, s.disk.bytes)
		require.Equal(t, dead, s.disk.dead)
	}
}

// checkShard looks at one shard, and returns its pages and how many segments it has on disk. mu held.
func checkShard(t require.TestingT, sh *shard) (pages map[*page]struct{}, stored int) {
	pages = map[*page]struct{}{}
	segments, dirty := map[*page]int{}, map[*page]int{}
	var unsaved int64
	for num, seg := range sh.segments {
		if seg == nil {
			continue
		}
		require.Equal(t, uint32(num), seg.num)
		require.True(t, seg.live > 0 || seg.writing || seg.kept) // kept: its values are being moved
		if seg.stored {
			stored++
		} else {
			unsaved += seg.bytes
			require.NotNil(t, seg.page)
		}
		if seg.writing {
			stored++
		}
		if p := seg.page; p != nil && p.readers.Load() >= 0 {
			pages[p] = struct{}{}
			segments[p]++
			if !seg.stored {
				dirty[p]++
			}
		}
	}
	for p := range pages {
		require.Equal(t, segments[p], p.segments)
		require.Equal(t, dirty[p], p.dirty)
		require.True(t, p.current || p.dirty > 0 || p.known == pageClean)
	}
	if sh.current != nil {
		pages[sh.current] = struct{}{}
	}
	for _, h := range sh.restored {
		if h.page.readers.Load() >= 0 {
			pages[h.page] = struct{}{}
		}
	}
	require.Equal(t, unsaved, sh.unsaved.Load())
	objects, bytes := map[*segment]int{}, int64(0)
	sh.refs.All(1, -1, func(slot refcount.Slot) {
		v := *sh.refs.Value(slot)
		objects[sh.segments[v.segment]]++
		bytes += int64(v.size)
	})
	for seg, n := range objects {
		require.Equal(t, n, seg.live)
	}
	require.Equal(t, Tier{int64(sh.refs.Len()), bytes}, sh.count.tier)
	return pages, stored
}

// writing says whether a dropped value is still being written.
func (s *Store) writing() bool {
	for sf := range s.disk.all {
		if sf.busy {
			return true
		}
	}
	return false
}
