//go:build linux || darwin

package objectstore

import (
	"errors"
	"os"
	"syscall"
)

// mapMemory returns n zeroed bytes outside the Go heap, aligned to a page. Outside, because the collector
// lets the heap grow to twice of what lives in it: a store that fills its limit would cost the limit again.
func mapMemory(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapMemory(b []byte) error { return syscall.Munmap(b) }

// lockFile takes the lock or returns errLockHeld. The system drops the lock with the process.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLockHeld
	}
	return err
}

func diskSpace(dir string) (free, total int64, err error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}
	// What is kept for the superuser counts neither as free nor as there.
	total = int64(s.Blocks) - int64(s.Bfree) + int64(s.Bavail)
	return int64(s.Bavail) * int64(s.Bsize), total * int64(s.Bsize), nil
}

// fileBytes is what a file takes on disk, which for a sparse one is less than its length.
func fileBytes(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512
	}
	return info.Size()
}

// mapFile maps the first n bytes of a file, seen by all who map them.
func mapFile(f *os.File, n int64, write bool) ([]byte, error) {
	prot := syscall.PROT_READ
	if write {
		prot |= syscall.PROT_WRITE
	}
	return syscall.Mmap(int(f.Fd()), 0, int(n), prot, syscall.MAP_SHARED)
}
