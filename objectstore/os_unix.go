//go:build linux || darwin

package objectstore

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapMemory returns n zeroed bytes outside the Go heap, aligned to a page. Outside, because the collector
// lets the heap grow to twice of what lives in it: a store that fills its limit would cost the limit again.
func mapMemory(n int) ([]byte, error) {
	return mapAt(-1, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// mapAligned is mapMemory at a multiple of align, which is a power of two.
func mapAligned(n, align int) ([]byte, error) {
	b, err := mapMemory(n + align)
	if err != nil {
		return nil, err
	}
	skip := -int(address(b)) & (align - 1)
	if err := errors.Join(unmapMemory(b[:skip:skip]), unmapMemory(b[skip+n:])); err != nil {
		return nil, errors.Join(err, unmapMemory(b))
	}
	return b[skip : skip+n : skip+n], nil
}

func mapAt(fd, n, prot, flags int) ([]byte, error) {
	p, err := unix.MmapPtr(fd, 0, nil, uintptr(n), prot, flags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// unmapMemory gives back what was mapped, all of it or whole pages.
func unmapMemory(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	b = b[:cap(b)]
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}

// locksFiles says whether lockFile does.
const locksFiles = true

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
	return mapAt(int(f.Fd()), int(n), prot, syscall.MAP_SHARED)
}
