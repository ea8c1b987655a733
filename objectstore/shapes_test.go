package objectstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Shapes in which other object stores have leaked, lost or crashed, each named after what went wrong there.

// A loop puts a value, a task takes it and returns one of the same size, the loop reads that and goes on without
// ever deleting by hand. At most three values are there at any time.
func TestShapeLoopOfLargeValuesDoesNotGrow(t *testing.T) {
	size, limit := 8<<20, int64(64<<20)
	if *long {
		size, limit = 100<<20, 512<<20
	}
	s := open(t, func(c *Config) { c.MemoryLimit = limit })
	v := value(1, size)
	most := int64(0)
	seen := func() { most = max(most, s.Stats().Objects) }
	for range 20 {
		in := put(t, s, "job", v)
		seen()
		o, err := s.Get(in) // the task
		require.NoError(t, err)
		out := put(t, s, "job", o.Bytes())
		seen()
		o.Release()
		require.NoError(t, s.Release(in, "job"))
		r, err := s.Get(out)
		require.NoError(t, err)
		require.NoError(t, s.Release(out, "job"))
		seen()
		r.Release()
	}
	require.LessOrEqual(t, most, int64(3))
	require.Zero(t, s.Stats().Spills)
	require.LessOrEqual(t, s.Stats().MemoryPeak, 3*capacityFor(int64(size), limit))
	requireEmpty(t, s)
}

// A holder releases its last hold and dies at once: both the release and the end of its job arrive, in any order,
// from different goroutines.
func TestShapeReleaseAndEndAtOnce(t *testing.T) {
	s := open(t, nil)
	for i := range 200 {
		owner := fmt.Sprint("job ", i)
		id := put(t, s, owner, value(uint64(i), 100+i*40))
		require.NoError(t, s.Hold(id, "borrower"))
		var wg sync.WaitGroup
		for _, do := range []func() error{
			func() error { return s.Release(id, "borrower") },
			func() error { return s.Release(id, owner) },
			func() error { s.ReleaseOwner(owner); return nil },
		} {
			wg.Go(func() {
				if err := do(); err != nil {
					require.True(t, errors.Is(err, ErrNotFound) || errors.Is(err, ErrNotHeld), "%v", err)
				}
			})
		}
		wg.Wait()
		require.False(t, s.Has(id))
	}
	requireEmpty(t, s)
}

// Values are spilled and deleted steadily, three times as many as fit. Deleting keeps pace: the disk never has
// much more than what is alive.
func TestShapeDeletionKeepsPaceWithSpilling(t *testing.T) {
	s := open(t, func(c *Config) { c.SpillFile, c.DiskLimit = 300_000, 6<<20 })
	var alive []ID
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 600 {
		alive = append(alive, put(t, s, "job", value(uint64(i), 50_000)))
		if len(alive) > 60 {
			at := r.IntN(len(alive))
			require.NoError(t, s.Release(alive[at], "job"))
			alive = append(alive[:at], alive[at+1:]...)
		}
	}
	require.Greater(t, s.Stats().BytesSpilled, int64(8<<20), "more than the disk may hold at once")
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// What a killed process left on disk is gone after the next start.
func TestShapeOrphansAfterAKill(t *testing.T) {
	dir := t.TempDir()
	cmd := child(t, "churn", dir)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		files, _ := filepath.Glob(filepath.Join(spillDir(dir), "*"))
		return len(files) > 0
	}, 20*time.Second, time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s, err := Open(Config{Dir: dir, MemoryLimit: 1 << 20})
	require.NoError(t, err)
	files, err := os.ReadDir(spillDir(dir))
	require.NoError(t, err)
	require.Empty(t, files)
	require.NoDirExists(t, indexDir(dir))
	require.NoError(t, s.Close())
}

// Values are fused into a file, the first is freed and new ones are spilled: no name is used again, and the rest
// of the file stays what it was. A damaged record is a lost value, not a wrong one and no crash.
func TestShapeFusedFilesKeepTheirNames(t *testing.T) {
	s := open(t, func(c *Config) { c.SpillFile = 350_000 })
	ids := fill(t, s)
	names := map[string]bool{}
	list := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for sf := range s.disk.all {
			names[sf.name()] = true
		}
	}
	list()
	require.NoError(t, s.Release(ids[0], "job"))
	for i := range 20 {
		id := put(t, s, "job", value(uint64(1000+i), 100_000))
		require.NoError(t, s.Release(id, "job"))
	}
	list()
	for i, id := range ids[1:] {
		requireValue(t, s, id, value(uint64(i+1), 100_000))
	}

	// Damage the length of one record and the bytes of another, on disk.
	s.mu.Lock()
	var hurt []ID
	for sf := range s.disk.all {
		for e := range sf.live {
			if e.buf == nil && len(hurt) < 2 {
				at := e.loc.off + 24 // the length
				if len(hurt) == 1 {
					at = e.loc.off + headerSize + 777
				}
				f, err := os.OpenFile(sf.path, os.O_RDWR, 0)
				require.NoError(t, err)
				_, err = f.WriteAt([]byte{0xff, 0xff, 0xff, 0xff, 0x7f}, at)
				require.NoError(t, err)
				require.NoError(t, f.Close())
				hurt = append(hurt, e.id)
			}
		}
	}
	s.mu.Unlock()
	for i, id := range ids[1:] {
		o, err := s.Get(id)
		if id == hurt[1] {
			require.ErrorIs(t, err, ErrLost)
			require.ErrorContains(t, err, "checksum")
			continue
		}
		require.NoError(t, err) // a store at work does not read lengths from the file
		require.True(t, bytes.Equal(value(uint64(i+1), 100_000), o.Bytes()))
		o.Release()
	}
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// Restoring one value fails for some: each of the others is read, and each failure is told to whoever asked.
func TestShapeFailedRestoreIsTold(t *testing.T) {
	files := &faultyFiles{}
	s := open(t, func(c *Config) { c.files = files })
	ids := fill(t, s)
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			files.flip.Store(i%5 == 0)
			for try := 0; ; try++ {
				o, err := s.Get(id)
				if err != nil {
					require.ErrorIs(t, err, ErrLost)
					require.ErrorContains(t, err, id.String())
					require.Less(t, try, 1000)
					files.flip.Store(false)
					continue
				}
				require.True(t, bytes.Equal(value(uint64(i), 100_000), o.Bytes()))
				o.Release()
				return
			}
		})
	}
	wg.Wait()
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

// Many write into one store at once, as when many nodes send to one: what is in memory outside the limit does not
// grow with them.
func TestShapeManyToOneIsBounded(t *testing.T) {
	s := open(t, func(c *Config) { c.MemoryLimit, c.Wait = 4<<20, 30*time.Second })
	piece := value(1, 64<<10)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 4 {
				w, err := s.Create(fmt.Sprint("job ", i), 1<<20)
				require.NoError(t, err)
				for range 16 {
					_, err := w.Write(piece)
					require.NoError(t, err)
				}
				_, err = w.Seal()
				require.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, s.Stats().MemoryPeak, int64(4<<20))
	for i := range 16 {
		s.ReleaseOwner(fmt.Sprint("job ", i))
	}
	requireEmpty(t, s)
}

// Many goroutines get the same objects at once, give up in between, and pass one object twice.
func TestShapeTheSameObjectForMany(t *testing.T) {
	s := open(t, nil)
	ids := fill(t, s)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i, id := range ids[:10] {
				a, err := s.Get(id)
				require.NoError(t, err)
				b, err := s.Get(id)
				require.NoError(t, err)
				require.True(t, bytes.Equal(value(uint64(i), 100_000), b.Bytes()))
				a.Release()
				b.Release()
				b.Release()
			}
		})
	}
	wg.Wait()
	s.ReleaseOwner("job")
	requireEmpty(t, s)
	check(t, s)
}

// 100 readers of one object take no more memory than one.
func TestHundredReadersShareOneCopy(t *testing.T) {
	for _, n := range []int{500, 300_000} {
		s := open(t, nil)
		id := put(t, s, "job", value(1, n))
		used := s.Stats().MemoryUsed
		var readers []*Object
		for range 100 {
			o, err := s.Get(id)
			require.NoError(t, err)
			require.Same(t, &o.Bytes()[0], func() *byte {
				if len(readers) > 0 {
					return &readers[0].Bytes()[0]
				}
				return &o.Bytes()[0]
			}())
			readers = append(readers, o)
		}
		require.Equal(t, used, s.Stats().MemoryUsed)
		releaseAll(readers)
	}
}

func TestWait(t *testing.T) {
	s := open(t, nil)
	there := put(t, s, "job", value(1, 5000))
	small := put(t, s, "job", value(1, 50))
	w, err := s.Create("job", 3)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())

	ready, err := s.Wait(ctx, []ID{there, w.ID(), small}, 2)
	require.NoError(t, err)
	require.Equal(t, []ID{there, small}, ready)
	ready, err = s.Wait(ctx, []ID{there, small}, 1)
	require.NoError(t, err)
	require.Equal(t, []ID{there}, ready, "never more than asked")
	ready, err = s.Wait(ctx, []ID{there, there, small, small}, 4)
	require.NoError(t, err)
	require.Equal(t, []ID{there, small}, ready, "each once")

	type answer struct {
		ready []ID
		err   error
	}
	answers := make(chan answer, 3)
	for range 2 {
		go func() {
			ready, err := s.Wait(ctx, []ID{w.ID(), there}, 5)
			answers <- answer{ready, err}
		}()
	}
	unknown := newID(false)
	go func() {
		ready, err := s.Wait(ctx, []ID{unknown, there}, 2)
		answers <- answer{ready, err}
	}()
	require.Eventually(t, func() bool { return s.awaited.Load() == 3 }, time.Minute, time.Millisecond)
	_, err = w.Write([]byte("abc"))
	require.NoError(t, err)
	_, err = w.Seal()
	require.NoError(t, err)
	for range 2 {
		a := <-answers
		require.NoError(t, a.err)
		require.Equal(t, []ID{w.ID(), there}, a.ready)
	}
	cancel()
	a := <-answers
	require.ErrorIs(t, a.err, context.Canceled)
	require.Equal(t, []ID{there}, a.ready)
	require.Empty(t, s.arrivals.waiting)
}

func TestObjectsAndDelete(t *testing.T) {
	s := open(t, nil)
	want := map[ID]ObjectInfo{}
	for i := range 3000 {
		n := i % 900
		if i%100 == 0 {
			n = 20_000
		}
		o := ObjectInfo{Owner: fmt.Sprint("job ", i%3), Label: []string{"", "scan", "sort"}[i/3%3], Size: int64(n), Small: n < 20_000}
		id, err := s.PutLabelled(o.Owner, o.Label, value(uint64(i), n))
		require.NoError(t, err)
		o.ID = id
		o.Holders = []string{o.Owner}
		if i%7 == 0 {
			require.NoError(t, s.Hold(id, "reader"))
			o.Holders = append(o.Holders, "reader")
		}
		want[id] = o
	}
	for o := range s.Objects() {
		require.Contains(t, []string{"memory", "disk", "both"}, o.Tier)
		require.WithinDuration(t, time.Now(), o.Created, time.Minute)
		o.Tier, o.Created = "", time.Time{}
		require.Equal(t, want[o.ID], o)
		delete(want, o.ID)
		if o.Small == (o.Size%2 == 0) {
			require.NoError(t, s.Delete(o.ID))
			require.ErrorIs(t, s.Delete(o.ID), ErrNotFound)
			require.ErrorIs(t, s.Release(o.ID, o.Owner), ErrNotFound)
		}
	}
	require.Empty(t, want)
	for range s.Objects() {
		break // a loop may end early
	}
	for i := range 3 {
		s.ReleaseOwner(fmt.Sprint("job ", i))
	}
	requireEmpty(t, s)
}

// Copies of what other stores keep go first, and as a whole.
func TestCopiesAreEvictedAndNotSpilled(t *testing.T) {
	s := open(t, nil)
	var copies []ID
	for i := range 30 {
		id := newID(false)
		w, err := s.CreateCopy("job", id, 100_000)
		require.NoError(t, err)
		_, err = w.Write(value(uint64(i), 100_000))
		require.NoError(t, err)
		got, err := w.Seal()
		require.NoError(t, err)
		require.Equal(t, id, got)
		copies = append(copies, id)
	}
	require.Zero(t, s.Stats().Spills)
	require.False(t, s.Has(copies[0]))
	require.True(t, s.Has(copies[29]))
	requireValue(t, s, copies[29], value(29, 100_000))
	o, err := s.Get(copies[28])
	require.NoError(t, err)
	primary := put(t, s, "job", value(100, 500_000))
	put(t, s, "job", value(101, 300_000))
	require.False(t, s.Has(copies[29]))
	require.True(t, bytes.Equal(value(28, 100_000), o.Bytes()), "a pinned copy stays")
	o.Release()
	requireValue(t, s, primary, value(100, 500_000))
	_, err = s.CreateCopy("job", newID(true), 100_000)
	require.ErrorIs(t, err, ErrSize)
	w, err := s.CreateCopy("job", primary, 500_000)
	if err == nil {
		_, err = w.Write(value(100, 500_000))
		require.NoError(t, err)
		_, err = w.Seal()
	}
	require.Error(t, err, "it is there already")
	check(t, s)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

func TestBadDirectories(t *testing.T) {
	keep := func(dir string) Config {
		return Config{Dir: dir, MemoryLimit: 1 << 20, InlineMax: 1 << 10, Recover: true}
	}
	t.Run("newer format", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(markerPath(dir), []byte(`{"format":2,"shards":1}`), 0o600))
		for _, recover := range []bool{true, false} {
			_, err := Open(Config{Dir: dir, Recover: recover})
			require.ErrorIs(t, err, ErrVersion)
			require.ErrorContains(t, err, "format 2")
		}
	})
	t.Run("corrupt marker", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(markerPath(dir), []byte(`{"format":`), 0o600))
		_, err := Open(keep(dir))
		require.ErrorIs(t, err, ErrCorrupt)
		s, err := Open(Config{Dir: dir})
		require.NoError(t, err, "who keeps nothing does not care")
		require.NoError(t, s.Close())
	})
	t.Run("corrupt index", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(keep(dir))
		require.NoError(t, err)
		put(t, s, "job", value(1, 100))
		require.NoError(t, s.Close())
		require.NoError(t, os.WriteFile(filepath.Join(indexDir(dir), "MANIFEST"), []byte("nonsense"), 0o600))
		_, err = Open(keep(dir))
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, dir)
	})
	t.Run("killed while a log was made", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(keep(dir))
		require.NoError(t, err)
		id := put(t, s, "job", value(1, 100))
		require.NoError(t, s.Close())
		for _, name := range []string{"000777.vlog", "00777.mem"} {
			require.NoError(t, os.WriteFile(filepath.Join(indexDir(dir), name), nil, 0o600))
		}
		s, err = Open(keep(dir))
		require.NoError(t, err)
		requireValue(t, s, id, value(1, 100))
		require.NoError(t, s.Close())
	})
	t.Run("spill file gone", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(keep(dir))
		require.NoError(t, err)
		id := put(t, s, "job", value(1, 100_000))
		other := put(t, s, "job", value(2, 500))
		require.NoError(t, s.Close())
		files, err := filepath.Glob(filepath.Join(spillDir(dir), "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		require.NoError(t, os.Remove(files[0]))
		require.NoError(t, os.WriteFile(filepath.Join(spillDir(dir), "stranger"), nil, 0o600))
		s, err = Open(keep(dir))
		require.NoError(t, err)
		_, err = s.Get(id)
		require.ErrorIs(t, err, ErrLost, "the reason is told")
		require.ErrorContains(t, err, "no such file")
		require.Equal(t, 1, s.Recovery().FilesRemoved)
		requireValue(t, s, other, value(2, 500))
		require.NoError(t, s.Close())
	})
	t.Run("torn tail", func(t *testing.T) {
		dir := t.TempDir()
		s, err := Open(keep(dir))
		require.NoError(t, err)
		id := put(t, s, "job", value(1, 100_000))
		require.NoError(t, s.Close())
		files, err := filepath.Glob(filepath.Join(spillDir(dir), "*"))
		require.NoError(t, err)
		f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.Write(make([]byte, 12345))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		s, err = Open(keep(dir))
		require.NoError(t, err)
		require.Equal(t, int64(12345), s.Recovery().TornBytes)
		requireValue(t, s, id, value(1, 100_000))
		s.ReleaseOwner("job")
		requireEmpty(t, s)
		require.NoError(t, s.Close())
	})
}
