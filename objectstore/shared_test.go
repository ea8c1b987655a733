//go:build linux

package objectstore

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// openSharedIn opens a store whose shared memory is in a folder of the test.
func openSharedIn(t *testing.T, folder string, change func(*Config)) *Store {
	return open(t, func(c *Config) {
		c.Shared, c.sharedIn = true, []string{folder, c.Dir}
		if change != nil {
			change(c)
		}
	})
}

func TestAnotherProcessMapsTheSamePages(t *testing.T) {
	shm := t.TempDir()
	s := openSharedIn(t, shm, nil)
	v := value(1, 300_000)
	o, err := s.Get(put(t, s, "job", v))
	require.NoError(t, err)
	m, ok := o.Mapping()
	require.True(t, ok)
	require.Equal(t, int64(len(v)), m.Size)
	arg, err := json.Marshal(m)
	require.NoError(t, err)

	cmd := child(t, "map", string(arg))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	out := bufio.NewScanner(pipe)
	line := func() string {
		require.True(t, out.Scan())
		return out.Text()
	}
	require.Equal(t, fmt.Sprint(checksum32(v)), line())
	for range 3 {
		o.data[0]++ // nobody may do that, but it shows that the pages are the same
		fmt.Fprintln(in)
		require.Equal(t, fmt.Sprint(o.data[0]), line())
	}
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	o.Release()
	_, ok = o.Mapping()
	require.False(t, ok)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}

func TestMapErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Map(Mapping{Path: filepath.Join(dir, "none"), Size: 1})
	require.ErrorIs(t, err, ErrNotFound)
	path := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
	_, err = Map(Mapping{Path: path, Size: 2})
	require.ErrorIs(t, err, ErrLost)
	f, err := Map(Mapping{Path: path, Size: 1})
	require.NoError(t, err)
	require.Equal(t, []byte("x"), f.Bytes())
	f.Release()
	f.Release()

	s := openSharedIn(t, t.TempDir(), nil)
	for _, n := range []int{10, 5000} {
		o, err := s.Get(put(t, s, "job", value(1, n)))
		require.NoError(t, err)
		_, ok := o.Mapping()
		require.Equal(t, n == 5000, ok, "small values are sent")
		o.Release()
	}
}

func TestSharedMemoryIsGivenBack(t *testing.T) {
	shm := t.TempDir()
	s := openSharedIn(t, shm, nil)
	fill(t, s)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
	require.NoError(t, s.Close())
	left, err := os.ReadDir(shm)
	require.NoError(t, err)
	require.Empty(t, left)
}

// What a killed process left in shared memory is removed by the next store of the machine, what is in use is not.
func TestSharedOrphansAreSwept(t *testing.T) {
	shm := t.TempDir()
	orphan := filepath.Join(shm, sharedPrefix+"dead")
	require.NoError(t, os.MkdirAll(orphan, 0o700))
	for _, name := range []string{"LOCK", "00000001"} {
		require.NoError(t, os.WriteFile(filepath.Join(orphan, name), []byte("1"), 0o600))
	}
	first := openSharedIn(t, shm, nil)
	require.NoDirExists(t, orphan)
	o, err := first.Get(put(t, first, "job", value(1, 5000)))
	require.NoError(t, err)
	second := openSharedIn(t, shm, nil)
	put(t, second, "job", value(1, 5000))
	m, _ := o.Mapping()
	require.FileExists(t, m.Path)
	o.Release()
}

// A /dev/shm of the size that containers get: values beyond it are in files of the data directory, and when that
// is full too the caller is told. No page is missing when it is touched.
func TestSmallSharedMemory(t *testing.T) {
	shm := t.TempDir()
	if err := syscall.Mount("tmpfs", shm, "tmpfs", 0, "size=600k"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(shm, 0) })
	t.Run("falls back", func(t *testing.T) {
		s := openSharedIn(t, shm, func(c *Config) { c.MemoryLimit = 2 << 20 })
		for i := range 15 {
			put(t, s, "job", value(uint64(i), 100_000))
		}
		require.Greater(t, s.Stats().MemoryMapped, int64(1<<20))
		s.ReleaseOwner("job")
		requireEmpty(t, s)
	})
	t.Run("says so", func(t *testing.T) {
		s := open(t, func(c *Config) {
			c.Shared, c.sharedIn, c.MemoryLimit, c.DiskLimit = true, []string{shm}, 2<<20, 1
		})
		var full error
		for i := 0; full == nil; i++ {
			require.Less(t, i, 7)
			_, full = s.Put("job", value(uint64(i), 100_000))
		}
		require.ErrorIs(t, full, ErrFull)
		s.ReleaseOwner("job")
		requireEmpty(t, s)
	})
}
