package objectstore

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

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
				id := put(t, s, "job", value(uint64(i), n))
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
			require.Positive(t, st.BytesCompacted)
			t.Logf("written %s, alive %s, Badger has %s", bytesText(s.index.written.Load()), bytesText(st.Bytes), bytesText(st.BadgerBytes))
			look := func() {
				for id, v := range kept {
					requireValue(t, s, id, value(uint64(v[0]), v[1]))
				}
			}
			look()
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
