package objectstore

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// manySmall puts values until most of them are on disk only.
func manySmall(t *testing.T, s *Store, n, size int) (ids []ID) {
	for i := range n {
		ids = append(ids, put(t, s, "job", value(uint64(i), size)))
	}
	return ids
}

// Values that are read in the order in which they were put come back many at a time; those that are read in any order
// do not bring others in vain.
func TestNeighboursAreReadBackTogether(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit, c.InlineMax = 2<<20, 4<<10 })
	const n = 60_000
	ids := manySmall(t, s, n, 200)
	reads := func() int64 { return s.index.touched.Load() }

	before := s.Stats()
	for i := range n / 2 {
		requireValue(t, s, ids[i], value(uint64(i), 200))
	}
	after := s.Stats()
	restored := after.Restores - before.Restores
	require.Greater(t, restored, int64(n/4), "%d reads", reads())
	hot := 0
	for _, sh := range s.shards {
		sh.mu.Lock()
		for _, h := range sh.restored {
			hot += len(h.copies)
		}
		sh.mu.Unlock()
	}
	require.Less(t, hot, n/20, "most came with their segment")

	before = after
	r := rand.New(rand.NewPCG(1, 2))
	const jumps = 5000
	for range jumps {
		i := r.IntN(n)
		requireValue(t, s, ids[i], value(uint64(i), 200))
	}
	require.Less(t, s.Stats().Restores-before.Restores, int64(4*jumps))
	require.LessOrEqual(t, s.Stats().MemoryPeak, s.cfg.MemoryLimit)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
