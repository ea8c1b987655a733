package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHolders(t *testing.T) {
	s := open(t, nil)
	id := put(t, s, "job", value(1, 5000))
	require.NoError(t, s.Hold(id, "reader"))
	require.NoError(t, s.Hold(id, "reader"))
	require.NoError(t, s.Release(id, "job"))
	require.ErrorIs(t, s.Release(id, "job"), ErrNotHeld)
	requireValue(t, s, id, value(1, 5000))
	o, err := s.Get(id)
	require.NoError(t, err)
	require.NoError(t, s.Release(id, "reader"))
	require.ErrorIs(t, s.Hold(id, "late"), ErrNotFound, "what nobody holds cannot come back")
	_, err = s.Get(id)
	require.ErrorIs(t, err, ErrNotFound)
	require.Equal(t, value(1, 5000), o.Bytes(), "a pin keeps the bytes")
	o.Release()
	require.ErrorIs(t, s.Release(id, "reader"), ErrNotFound)
	requireEmpty(t, s)
}

func TestMove(t *testing.T) {
	s := open(t, nil)
	for _, size := range []int{100, 5000} { // a small value and a large one
		id := put(t, s, fmt.Sprint("first", size), value(1, size))
		require.NoError(t, s.Hold(id, "reader"))
		require.NoError(t, s.Move(id, "second"))
		require.ErrorIs(t, s.Release(id, "reader"), ErrNotHeld)
		s.ReleaseOwner(fmt.Sprint("first", size))
		requireValue(t, s, id, value(1, size))
		require.ErrorIs(t, s.Move(id, fmt.Sprint("first", size)), ErrOwnerEnded)
		for o := range s.Objects() {
			require.Equal(t, "second", o.Owner)
		}
		require.NoError(t, s.Release(id, "second"))
		require.ErrorIs(t, s.Move(id, "third"), ErrNotFound)
	}
	requireEmpty(t, s)
}

func TestReleaseOwnerEndsWhatIsUnderWay(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = time.Minute })
	other := put(t, s, "other", value(1, 5000))
	small := put(t, s, "job", value(1, 100))
	large := put(t, s, "job", value(1, 5000))
	require.NoError(t, s.Hold(large, "reader"))
	memory, err := s.Create("job", 900_000)
	require.NoError(t, err)
	disk, err := s.Create("job", 2_000_000)
	require.NoError(t, err)
	waiting := make(chan error)
	go func() {
		_, err := s.Create("job", 500_000)
		waiting <- err
	}()
	require.Eventually(t, func() bool { return s.Stats().Waiting == 1 }, time.Minute, time.Millisecond)

	s.ReleaseOwner("job")
	require.ErrorIs(t, <-waiting, ErrOwnerEnded)
	for _, w := range []*Writer{memory, disk} {
		_, err := w.Write([]byte("x"))
		require.ErrorIs(t, err, ErrOwnerEnded)
		_, err = w.Seal()
		require.ErrorIs(t, err, ErrOwnerEnded)
		w.Abort()
	}
	for _, id := range []ID{small, large} {
		_, err := s.Get(id)
		require.ErrorIs(t, err, ErrNotFound)
	}
	_, err = s.Put("job", value(2, 10))
	require.ErrorIs(t, err, ErrOwnerEnded)
	requireValue(t, s, other, value(1, 5000))
	s.ReleaseOwner("other")
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

func TestWriterMisuse(t *testing.T) {
	s := open(t, nil)
	_, err := s.Create("job", -1)
	require.ErrorIs(t, err, ErrSize)
	for _, size := range []int64{10, 5000, 2 << 20} {
		w, err := s.Create("job", size)
		require.NoError(t, err)
		_, err = w.Seal()
		require.ErrorIs(t, err, ErrSize, "too little")

		w, err = s.Create("job", size)
		require.NoError(t, err)
		_, err = w.Write(make([]byte, size+1))
		require.ErrorIs(t, err, ErrSize, "too much")

		w, err = s.Create("job", size)
		require.NoError(t, err)
		_, err = w.Write(make([]byte, size))
		require.NoError(t, err)
		id, err := w.Seal()
		require.NoError(t, err)
		w.Abort()
		_, err = w.Seal()
		require.ErrorIs(t, err, ErrSealed)
		_, err = w.Write(nil)
		require.ErrorIs(t, err, ErrSealed)
		require.NoError(t, s.Release(id, "job"), "Abort after Seal changes nothing")
	}
	requireEmpty(t, s)
}

func TestIDs(t *testing.T) {
	id := newID(false)
	back, err := ParseID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, back)
	back, err = IDFromBytes(id[:])
	require.NoError(t, err)
	require.Equal(t, id, back)
	for _, bad := range []string{"", "12", id.String() + "00", "zz" + id.String()[2:]} {
		_, err := ParseID(bad)
		require.Error(t, err, bad)
	}
	_, err = IDFromBytes(id[1:])
	require.Error(t, err)
	s := open(t, nil)
	_, err = s.Get(id)
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, id.String())
}

func TestConfigValidate(t *testing.T) {
	good := Config{Dir: "d"}
	require.NoError(t, good.Validate())
	require.Contains(t, good.String(), "256 MiB")
	for name, c := range map[string]Config{
		"dir": {}, "memory": {Dir: "d", MemoryLimit: -1}, "disk": {Dir: "d", DiskLimit: -1},
		"inline": {Dir: "d", InlineMax: 2 << 20}, "inline below": {Dir: "d", InlineMax: -2},
		"spill file": {Dir: "d", SpillFile: -1}, "wait": {Dir: "d", Wait: -1},
	} {
		require.ErrorIs(t, c.Validate(), ErrConfig, name)
		_, err := Open(c)
		require.ErrorIs(t, err, ErrConfig, name)
	}
}

func TestDirectory(t *testing.T) {
	s := open(t, nil)
	dir := s.cfg.Dir
	_, err := Open(Config{Dir: dir})
	require.ErrorIs(t, err, ErrLocked)
	require.ErrorContains(t, err, dir)
	marker, err := os.ReadFile(markerPath(dir))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	// What a killed process left is swept, and what is another's is not.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "spill"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spill", "00000001.spill"), []byte("old"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "index"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index", "MANIFEST"), []byte("not Badger's"), 0o600))
	_, err = Open(Config{Dir: dir})
	require.ErrorIs(t, err, ErrForeign)
	require.FileExists(t, filepath.Join(dir, "spill", "00000001.spill"))
	require.NoError(t, os.WriteFile(markerPath(dir), marker, 0o600))
	again, err := Open(Config{Dir: dir, MemoryLimit: 1 << 20, InlineMax: 1 << 10})
	require.NoError(t, err)
	fill(t, again)
	put(t, again, "job", value(1, 10))
	require.NoError(t, again.Close())

	notDir := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(notDir, nil, 0o600))
	_, err = Open(Config{Dir: filepath.Join(notDir, "store")})
	require.ErrorContains(t, err, notDir)
	require.NoError(t, os.Remove(notDir))
}

func TestClose(t *testing.T) {
	s := open(t, func(c *Config) { c.Wait = time.Minute })
	v := value(1, 100_000)
	o, err := s.Get(put(t, s, "job", v))
	require.NoError(t, err)
	spilled := fill(t, s)[0]
	w, err := s.Create("job", 800_000)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 4 { // some in line for memory, some getting it
		wg.Go(func() {
			for {
				if _, err := s.Put("job", v, v, v); err != nil {
					require.ErrorIs(t, err, ErrClosed)
					return
				}
			}
		})
		wg.Go(func() {
			for {
				o, err := s.Get(spilled)
				if err != nil {
					require.ErrorIs(t, err, ErrClosed)
					return
				}
				o.Release()
			}
		})
	}
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, s.Close())
	wg.Wait()
	_, err = w.Write(v)
	require.ErrorIs(t, err, ErrClosed)
	for name, err := range map[string]error{
		"hold": s.Hold(spilled, "x"), "release": s.Release(spilled, "job"), "close": errors.Join(s.Close(), ErrClosed),
	} {
		require.ErrorIs(t, err, ErrClosed, name)
	}
	s.ReleaseOwner("job")
	require.Equal(t, v, o.Bytes(), "pinned bytes outlive the store")
	o.Release()
	require.Zero(t, s.Stats().MemoryMapped)
	require.Zero(t, s.Stats().MemoryUsed)
}
