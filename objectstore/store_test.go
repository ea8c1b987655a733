package objectstore

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var long = flag.Bool("long", false, "run tests at full length")

// open opens a store for a test and, at its end, closes it and looks that nothing is left.
func open(t testing.TB, change func(*Config)) *Store {
	t.Helper()
	cfg := Config{Dir: t.TempDir(), MemoryLimit: 1 << 20, InlineMax: 1 << 10, Wait: 5 * time.Second}
	if change != nil {
		change(&cfg)
	}
	s, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		require.LessOrEqual(t, s.pool.peak, cfg.MemoryLimit)
		require.LessOrEqual(t, s.Stats().MemoryPeak, cfg.MemoryLimit)
		left, err := os.ReadDir(cfg.Dir)
		require.NoError(t, err)
		for _, f := range left {
			if cfg.Recover {
				break
			}
			require.Equal(t, "LOCK", f.Name(), "left in the directory")
		}
	})
	return s
}

// value returns n bytes that differ from seed to seed.
func value(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}

func put(t testing.TB, s *Store, owner string, v []byte) ID {
	t.Helper()
	id, err := s.Put(owner, v)
	require.NoError(t, err)
	return id
}

// requireValue gets an object and compares.
func requireValue(t testing.TB, s *Store, id ID, want []byte) {
	t.Helper()
	o, err := s.Get(id)
	require.NoError(t, err)
	defer o.Release()
	require.True(t, bytes.Equal(want, o.Bytes()), "object %s differs", id)
}

// requireEmpty waits until the store has given everything back.
func requireEmpty(t testing.TB, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		st := s.Stats()
		return st.Objects == 0 && st.MemoryUsed == 0 && st.DiskBytes == 0 && st.DiskFiles == 0 && st.Unsealed == 0
	}, 10*time.Second, time.Millisecond, "%+v", s.Stats())
	files, err := filepath.Glob(filepath.Join(spillDir(s.cfg.Dir), "*"))
	require.NoError(t, err)
	require.Empty(t, files)
	require.Zero(t, s.refs.Len())
	for _, sh := range s.shards {
		sh.mu.Lock()
		require.Zero(t, sh.refs.Len())
		sh.mu.Unlock()
	}
}

func TestPutGet(t *testing.T) {
	s := open(t, nil)
	for _, n := range []int{0, 1, 63, 64, 1 << 10, 1<<10 + 1, 4096, 5000, 100_000, 500_000} {
		v := value(uint64(n), n)
		id, err := s.Put("job", v[:n/3], nil, v[n/3:])
		require.NoError(t, err)
		o, err := s.Get(id)
		require.NoError(t, err)
		require.Equal(t, int64(n), o.Size())
		require.True(t, bytes.Equal(v, o.Bytes()))
		o.Release()
		require.Nil(t, o.Bytes())
		o.Release()
		require.NoError(t, s.Release(id, "job"))
		_, err = s.Get(id)
		require.ErrorIs(t, err, ErrNotFound)
	}
	requireEmpty(t, s)
}

func TestSpillAndRestore(t *testing.T) {
	s := open(t, func(c *Config) { c.SpillFile = 256 << 10 })
	ids := map[ID][]byte{}
	for i := range 100 {
		v := value(uint64(i), 50_000+i)
		ids[put(t, s, "job", v)] = v
	}
	st := s.Stats()
	require.Greater(t, st.Spilled.Objects, int64(50))
	require.Greater(t, st.DiskFiles, int64(3))
	for id, v := range ids {
		requireValue(t, s, id, v)
	}
	require.Greater(t, s.Stats().Restores, int64(50))
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
