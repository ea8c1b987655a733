package objectstore

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// asAnybody runs do on a thread that may not write where modes forbid it, though the tests may be run by root.
func asAnybody(t *testing.T, do func()) {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var caps [2]unix.CapUserData
		err := unix.Capget(&header, &caps[0])
		if err == nil {
			caps[0].Effective &^= 1 << unix.CAP_DAC_OVERRIDE
			err = unix.Capset(&header, &caps[0])
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	require.NoError(t, <-done)
}

func TestReadOnlyDirectory(t *testing.T) {
	for _, recover := range []bool{false, true} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o500))
		var err, inside error
		asAnybody(t, func() {
			_, err = Open(Config{Dir: dir, Recover: recover})
			_, inside = Open(Config{Dir: filepath.Join(dir, "store"), Recover: recover})
		})
		require.ErrorIs(t, err, os.ErrPermission)
		require.ErrorContains(t, err, dir)
		require.ErrorIs(t, inside, os.ErrPermission)
		require.ErrorContains(t, inside, dir)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)

		require.NoError(t, os.Chmod(dir, 0o700))
		asAnybody(t, func() {
			var s *Store
			if s, err = Open(Config{Dir: dir, Recover: recover}); err == nil {
				err = s.Close()
			}
		})
		require.NoError(t, err)
	}
}
