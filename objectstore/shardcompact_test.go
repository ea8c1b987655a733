package objectstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"
)

// Small values on disk, most of them released: the space returns, the rest stays readable, and after a restart
// there is exactly the rest.
func TestBadgerShrinksWhileSomethingIsAlive(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprint("recover ", again), func(t *testing.T) {
			s := open(t, func(c *Config) { c.InlineMax, c.MemoryLimit, c.Recover, c.logFile = 100<<10, 1<<20, again, 8<<20 })
			r := rand.New(rand.NewPCG(1, 2))
			total := int64(40 << 20)
			if *long {
				total = 400 << 20
			}
			kept := map[ID][2]int{}
			var size int64
			for i := 0; size < total; i++ {
				n := 100 + r.IntN(1500)
				if i%50 == 0 {
					n = 40_000
				}
				size += int64(n)
				id, err := s.PutLabelled("job", fmt.Sprint("value of ", n), value(uint64(i), n))
				require.NoError(t, err)
				kept[id] = [2]int{i, n}
				if len(kept) > 2000 { // drop them in no order
					for id := range kept {
						delete(kept, id)
						require.NoError(t, s.Release(id, "job"))
						break
					}
				}
			}
			require.Eventually(t, func() bool {
				st := s.Stats()
				return st.BadgerBytes < 2*s.badgerLive.Load()+3*s.cfg.logFile && s.badgerLive.Load() < 4*st.Bytes+compactAfter
			}, 20*time.Second, 10*time.Millisecond, "%+v", s.Stats())
			st := s.Stats()
			t.Logf("written %s, compacted %s, alive %s, Badger has %s", bytesText(s.index.written.Load()), bytesText(st.BytesCompacted), bytesText(st.Bytes), bytesText(st.BadgerBytes))
			look := func() {
				for id, v := range kept {
					requireValue(t, s, id, value(uint64(v[0]), v[1]))
				}
			}
			look()
			for o := range s.Objects() {
				require.Equal(t, fmt.Sprint("value of ", kept[o.ID][1]), o.Label)
			}
			check(t, s)
			if again {
				require.NoError(t, s.Close())
				next, err := Open(s.cfg)
				require.NoError(t, err)
				require.Empty(t, next.Recovery().Lost)
				require.Equal(t, int64(len(kept)), next.Recovery().Objects)
				s = next
				look()
				defer func() { require.NoError(t, next.Close()) }()
			}
			s.ReleaseOwner("job")
			requireEmpty(t, s)
		})
	}
}

// Empty values stand beside others without being taken for them.
func TestEmptyValues(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), MemoryLimit: 64 << 10, Recover: true, flushWindow: time.Nanosecond}
	s, err := Open(cfg)
	require.NoError(t, err)
	var empty, full []ID
	for i := range 300 {
		empty = append(empty, put(t, s, "job", nil))
		full = append(full, put(t, s, "job", value(uint64(i), 900)))
	}
	for _, id := range empty {
		requireValue(t, s, id, []byte{})
	}
	for i, id := range full {
		requireValue(t, s, id, value(uint64(i), 900))
	}
	for _, id := range empty[:200] {
		require.NoError(t, s.Release(id, "job"))
	}
	require.NoError(t, s.Close())
	s, err = Open(cfg)
	require.NoError(t, err)
	require.Equal(t, int64(400), s.Stats().Objects)
	for i, id := range full {
		requireValue(t, s, id, value(uint64(i), 900))
	}
	for _, id := range empty[200:] {
		requireValue(t, s, id, []byte{})
	}
	s.ReleaseOwner("job")
	requireEmpty(t, s)
	require.NoError(t, s.Close())
}

// A compaction takes a value elsewhere, and its old segment goes from disk, after a reader has looked up where the value
// is and before it reads there: the reader finds it at its new place.
func TestValueMovesWhileItIsRead(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit, c.InlineMax = 1<<20, 4<<10 })
	const size = 500
	ids := manySmall(t, s, 6000, size) // less than what is compacted without being asked to
	for _, id := range ids[3000:] {
		require.NoError(t, s.Release(id, "job")) // room in memory
	}
	id, sh := ids[0], s.shards[0]
	sh.mu.Lock()
	slot := sh.refs.Find(id)
	v := *sh.refs.Value(slot)
	seg := sh.segments[v.segment]
	_, inMemory := sh.inMemory(v)
	require.Nil(t, inMemory)
	require.True(t, seg.stored)
	seg.kept = true
	sh.mu.Unlock()
	var data []byte
	require.NoError(t, s.index.read(segmentKey(sh.num, seg.seq), func(b []byte) error {
		data = append(data, b...)
		return nil
	}))
	items, _, err := parseDirectory(data)
	require.NoError(t, err)

	s.index.mu.Lock() // no reader gets to the disk
	read := make(chan error, 1)
	go func() {
		o, err := s.Get(id)
		if err == nil && !bytes.Equal(o.Bytes(), value(0, size)) {
			err = errors.New("another value")
		}
		if err == nil {
			o.Release()
		}
		read <- err
	}()
	require.Eventually(t, func() bool { // it knows where the value is
		sh.mu.Lock()
		defer sh.mu.Unlock()
		return seg.next == v.off+v.size
	}, time.Minute, time.Millisecond)
	for i := range items {
		require.NoError(t, sh.rescue(seg, &items[i], data))
	}
	sh.mu.Lock()
	seg.kept, seg.moved = false, nil
	require.Zero(t, seg.live)
	sh.bury(seg)
	sh.mu.Unlock()
	err = s.index.db.Update(func(txn *badger.Txn) error { return txn.Delete(segmentKey(sh.num, seg.seq)) })
	s.index.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, <-read)

	for i, id := range ids[:3000] {
		requireValue(t, s, id, value(uint64(i), size))
	}
	check(t, s)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
