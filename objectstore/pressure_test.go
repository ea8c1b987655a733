package objectstore

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pinAll fills the memory with pinned values and returns them.
func pinAll(t *testing.T, s *Store) (pinned []*Object) {
	for i := range 9 { // nine size classes of 104 KiB; a tenth does not fit in 1 MiB
		o, err := s.Get(put(t, s, "pins", value(uint64(i), 100_000)))
		require.NoError(t, err)
		pinned = append(pinned, o)
	}
	return pinned
}

func releaseAll(objects []*Object) {
	for _, o := range objects {
		o.Release()
	}
}

func TestGetWithEverythingPinned(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = 30 * time.Millisecond })
	v := value(1, 300_000)
	id := put(t, s, "job", v)
	pinned := pinAll(t, s)
	require.Equal(t, int64(1), s.Stats().Spilled.Objects)

	_, err := s.Get(id)
	require.ErrorIs(t, err, ErrFull)
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.Greater(t, full.Pinned, int64(900_000))
	require.Zero(t, full.Unsealed)
	require.ErrorContains(t, err, "pinned")

	r, err := s.NewReader(id) // needs no memory
	require.NoError(t, err)
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(v, got))
	require.NoError(t, r.Close())

	releaseAll(pinned)
	requireValue(t, s, id, v)
}

func TestGetWaitsForAPin(t *testing.T) {
	s := open(t, nil)
	v := value(1, 300_000)
	id := put(t, s, "job", v)
	pinned := pinAll(t, s)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() { requireValue(t, s, id, v) })
	}
	require.Eventually(t, func() bool { return s.Stats().Waiting == 1 }, time.Minute, time.Millisecond, "one restore for all")
	releaseAll(pinned)
	readers.Wait()
	require.Equal(t, int64(1), s.Stats().Restores)
}

// What is read stays in place while everything around it is dropped and reused.
func TestPinnedBytesStay(t *testing.T) {
	s := open(t, nil)
	ids := fill(t, s)
	var pins []*Object
	for i := range 3 {
		requireValue(t, s, ids[i], value(uint64(i), 100_000)) // restored, hence clean
		o, err := s.Get(ids[i])
		require.NoError(t, err)
		pins = append(pins, o)
		check(t, s)
	}
	for i := range 40 {
		put(t, s, "job", value(uint64(1000+i), 100_000))
	}
	for i, o := range pins {
		require.True(t, bytes.Equal(value(uint64(i), 100_000), o.Bytes()))
		same, err := s.Get(ids[i])
		require.NoError(t, err)
		require.Same(t, &o.Bytes()[0], &same.Bytes()[0], "one copy for all readers")
		same.Release()
		o.Release()
	}
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// A read that is slow but gets on does not make another fail that waits for its memory.
func TestWaitOutlastsASlowRead(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(c *Config) { c.files, c.MemoryLimit, c.Wait = files, 6<<20, 300*time.Millisecond })
	var ids []ID
	for i := range 3 {
		ids = append(ids, put(t, s, "job", value(uint64(i), 5<<20)))
	}
	files.slowRead.Store(int64(200 * time.Millisecond)) // for each MiB: much longer than Wait for a value
	var wg sync.WaitGroup
	for range 2 {
		for i, id := range ids {
			wg.Go(func() {
				o, err := s.Get(id)
				require.NoError(t, err)
				first, last := o.Bytes()[0], o.Bytes()[5<<20-1]
				o.Release()
				v := value(uint64(i), 5<<20)
				require.Equal(t, []byte{v[0], v[5<<20-1]}, []byte{first, last})
			})
		}
	}
	wg.Wait()
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// Readers that come and go do not keep a request waiting that they do not help.
func TestWaitEndsUnderTraffic(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = 30 * time.Millisecond })
	id := put(t, s, "job", value(1, 900_000)) // needs all of the memory but a little
	busy := put(t, s, "job", value(2, 100_000))
	pin, err := s.Get(put(t, s, "job", value(3, 200_000)))
	require.NoError(t, err)
	requireValue(t, s, busy, value(2, 100_000))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				requireValue(t, s, busy, value(2, 100_000))
			}
		}
	})
	_, err = s.Get(id)
	require.ErrorIs(t, err, ErrFull)
	close(stop)
	wg.Wait()
	pin.Release()
	requireValue(t, s, id, value(1, 900_000))
}

func TestPutWithEverythingPinnedGoesToDisk(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = 10 * time.Millisecond })
	pinned := pinAll(t, s)
	v := value(1, 300_000)
	id := put(t, s, "job", v)
	require.Equal(t, Tier{Objects: 1, Bytes: 300_000}, s.Stats().Spilled)
	releaseAll(pinned)
	requireValue(t, s, id, v)
	s.ReleaseOwner("job")
	s.ReleaseOwner("pins")
	requireEmpty(t, s)
}

func TestDiskLimit(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait, c.DiskLimit = 10*time.Millisecond, 350_000 })
	var ids []ID
	var full error
	for i := 0; full == nil; i++ {
		require.Less(t, i, 20)
		var id ID
		if id, full = s.Put("job", value(uint64(i), 100_000)); full == nil {
			ids = append(ids, id)
		}
	}
	require.ErrorIs(t, full, ErrFull)
	require.ErrorContains(t, full, "spill files have")
	require.Len(t, ids, 12) // 9 in memory of 112 KiB each, 3 on disk
	require.LessOrEqual(t, s.Stats().DiskBytes, int64(350_000))
	for _, id := range ids[:3] {
		require.NoError(t, s.Release(id, "job"))
	}
	require.Eventually(t, func() bool { _, err := s.Put("job", value(50, 100_000)); return err == nil }, time.Minute, time.Millisecond)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

func TestValueLargerThanMemory(t *testing.T) {
	s := open(t, nil)
	v := value(1, 3<<20)
	w, err := s.Create("job", int64(len(v)))
	require.NoError(t, err)
	for i := 0; i < len(v); i += 100_000 {
		_, err := w.Write(v[i:min(i+100_000, len(v))])
		require.NoError(t, err)
	}
	id, err := w.Seal()
	require.NoError(t, err)
	require.Zero(t, s.Stats().MemoryPeak)

	_, err = s.Get(id)
	require.ErrorIs(t, err, ErrFull)
	require.ErrorContains(t, err, "larger than the memory limit")
	r, err := s.NewReader(id)
	require.NoError(t, err)
	require.Equal(t, int64(len(v)), r.Size())
	require.NoError(t, s.Release(id, "job")) // the pin keeps it
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, bytes.Equal(v, got))
	require.NoError(t, r.Close())
	requireEmpty(t, s)
}

func TestTwoLargeWritersThatFitAlone(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = 10 * time.Second })
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for j := range 10 {
				v := value(uint64(100*i+j), 700_000)
				id, err := s.Put("job", v)
				require.NoError(t, err)
				requireValue(t, s, id, v)
				require.NoError(t, s.Release(id, "job"))
			}
		})
	}
	wg.Wait()
	requireEmpty(t, s)
}

func TestSmallValuesDoNotWaitForMemory(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit, c.Wait = 128<<10, time.Minute })
	w, err := s.Create("job", 128<<10-100) // all of it, unsealed
	require.NoError(t, err)
	start := time.Now()
	ids := map[ID][]byte{}
	for i := range 50 {
		v := value(uint64(i), 1000)
		ids[put(t, s, "job", v)] = v
	}
	for id, v := range ids {
		requireValue(t, s, id, v)
	}
	require.Less(t, time.Since(start), 30*time.Second)
	w.Abort()
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// The loop of a program that never frees by hand: put, read, put the result, drop the old one, and never hold more than a few.
func TestLoopHoldsNoMoreThanItNeeds(t *testing.T) {
	s := open(t, nil)
	last := put(t, s, "job", value(0, 100_000))
	for i := range 100 {
		o, err := s.Get(last)
		require.NoError(t, err)
		next, err := s.Put("job", o.Bytes())
		require.NoError(t, err)
		o.Release()
		require.NoError(t, s.Release(last, "job"))
		last = next
		require.Equal(t, int64(1), s.Stats().Objects, "round %d", i)
	}
	require.LessOrEqual(t, s.Stats().MemoryPeak, 3*capacityFor(100_000, 1<<20))
	require.Zero(t, s.Stats().Spills)
}

// A file goes with its last object, and one that is mostly dead gives its space back before.
func TestFilesGoOrAreCompacted(t *testing.T) {
	s := open(t, func(c *Config) { c.SpillFile = 450_000 })
	ids := fill(t, s)
	before := s.Stats()
	require.Greater(t, before.DiskFiles, int64(3))
	reader, err := s.NewReader(ids[0]) // from a file that is compacted away under it
	require.NoError(t, err)
	half := make([]byte, 50_000)
	_, err = io.ReadFull(reader, half)
	require.NoError(t, err)
	left := int64(0)
	for i, id := range ids {
		if i%4 == 0 {
			left++
		} else {
			require.NoError(t, s.Release(id, "job"))
		}
	}
	require.Eventually(t, func() bool {
		st := s.Stats()
		return st.DiskBytes <= max(2*left*recordSize(100_000), 450_000) && st.BytesCompacted > 0
	}, 10*time.Second, time.Millisecond, "%+v", s.Stats())
	rest, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, value(0, 100_000), append(half, rest...))
	require.NoError(t, reader.Close())
	check(t, s)
	for i, id := range ids {
		if i%4 == 0 {
			requireValue(t, s, id, value(uint64(i), 100_000))
		}
	}
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
