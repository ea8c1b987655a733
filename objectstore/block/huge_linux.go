package block

import (
	"syscall"
	"unsafe"
)

// huge asks for huge pages under the part of b that can have them: each spares the processor 511 entries of its page tables'
// cache. It is a hint: the system may not follow it.
func huge(b []byte) {
	const size = 2 << 20
	from := -uintptr(unsafe.Pointer(unsafe.SliceData(b))) % size
	if n := (uintptr(len(b)) - min(from, uintptr(len(b)))) / size * size; n > 0 {
		_ = syscall.Madvise(b[from:from+n], syscall.MADV_HUGEPAGE)
	}
}
