package store

import "golang.org/x/sys/unix"

// mapMemory returns memory that was never touched, in huge pages if the system has some: what copying can be at its best.
func mapMemory(n int64) (b []byte, free func(), err error) {
	b, err = unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, nil, err
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // advice
	return b, func() { _ = unix.Munmap(b) }, nil
}
