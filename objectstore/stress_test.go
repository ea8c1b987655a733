package objectstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Many goroutines put, read, hold and release each other's objects in less memory than they want, while their jobs
// end under them. Whatever a call returns, it is right or one of the errors that the race allows.
func TestConcurrentUse(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit, c.SpillFile, c.Wait = 512<<10, 200_000, 10*time.Second })
	type shared struct {
		id    ID
		owner string
		seed  uint64
		size  int
	}
	var mu sync.Mutex
	var objects []shared
	var wg sync.WaitGroup
	var read, lost atomic.Int64
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 7))
			pick := func() (shared, bool) {
				mu.Lock()
				defer mu.Unlock()
				if len(objects) == 0 {
					return shared{}, false
				}
				return objects[r.IntN(len(objects))], true
			}
			gone := func(err error) bool {
				if err == nil {
					return false
				}
				ok := errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotHeld) || errors.Is(err, ErrOwnerEnded)
				require.True(t, ok, "%v", err)
				return true
			}
			for i := range 400 {
				owner := fmt.Sprintf("job %d", i/50) // the same for all: one ends while another uses it
				switch r.IntN(8) {
				case 0, 1, 2:
					o := shared{owner: owner, seed: r.Uint64(), size: r.IntN(40_000)}
					if r.IntN(2) == 0 {
						o.size = r.IntN(2000)
					}
					id, err := s.Put(owner, value(o.seed, o.size))
					if gone(err) {
						continue
					}
					o.id = id
					mu.Lock()
					objects = append(objects, o)
					mu.Unlock()
				case 3, 4:
					want, ok := pick()
					if !ok {
						continue
					}
					o, err := s.Get(want.id)
					if gone(err) {
						lost.Add(1)
						continue
					}
					require.True(t, bytes.Equal(value(want.seed, want.size), o.Bytes()))
					read.Add(1)
					o.Release()
				case 5:
					want, ok := pick()
					if !ok {
						continue
					}
					reader, err := s.NewReader(want.id)
					if gone(err) {
						continue
					}
					got, err := io.ReadAll(reader)
					require.NoError(t, err)
					require.True(t, bytes.Equal(value(want.seed, want.size), got))
					require.NoError(t, reader.Close())
				case 6:
					if o, ok := pick(); ok && !gone(s.Hold(o.id, fmt.Sprint("holder ", g))) {
						gone(s.Release(o.id, o.owner))
						gone(s.Release(o.id, fmt.Sprint("holder ", g)))
					}
				case 7:
					if w, err := s.Create(owner, int64(r.IntN(100_000))); !gone(err) {
						_, err := w.Write([]byte{1})
						_ = err // an empty writer refuses it, an ended one too
						w.Abort()
					}
				}
				if i%50 == 49 && g == 0 {
					s.ReleaseOwner(owner)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		s.ReleaseOwner(fmt.Sprintf("job %d", i))
	}
	requireEmpty(t, s)
	check(t, s)
	st := s.Stats()
	require.Positive(t, read.Load())
	t.Logf("%d values read, %d gone; %d spills, %d restores, %d evictions", read.Load(), lost.Load(), st.Spills, st.Restores, st.Evictions)
}

// When nothing on disk is alive the index starts anew, and is right for what comes next.
func TestIndexIsResetWhenNothingIsAlive(t *testing.T) {
	s := open(t, func(c *Config) { c.InlineMax = 100 << 10 })
	v := value(1, 90_000)
	reset := func() bool {
		s.index.mu.RLock()
		defer s.index.mu.RUnlock()
		return s.index.db == nil
	}
	for round := range 2 {
		job := fmt.Sprint("job ", round)
		var ids []ID
		for range resetAfter/len(v) + 20 {
			ids = append(ids, put(t, s, job, v))
		}
		require.False(t, reset())
		requireValue(t, s, ids[0], v)
		s.ReleaseOwner(job)
		require.Eventually(t, reset, time.Minute, time.Millisecond)
	}
	_, err := os.Stat(indexDir(s.cfg.Dir))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Small values that are freed at once are never written.
func TestShortLivedSmallValuesDoNotOpenBadger(t *testing.T) {
	s := open(t, nil)
	for i := range 100 {
		id := put(t, s, "job", value(uint64(i), 100))
		requireValue(t, s, id, value(uint64(i), 100))
		require.NoError(t, s.Release(id, "job"))
	}
	require.NoError(t, s.Close())
	require.Nil(t, s.index.db)
}
