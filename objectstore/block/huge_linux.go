package block

import (
	"runtime"
	"syscall"
	"unsafe"
)

// huge asks for huge pages under b and what lies beside it in the same ones: each spares the processor 511 entries of its page
// tables' cache, and the system 511 faults when it is touched first. It is a hint: the system may not follow it, and nothing
// is read or written. Go's heap is reserved in pieces larger than such a page, so all of it is memory of this process.
func huge(b []byte) {
	const size = 2 << 20
	// Addresses, not pointers: what is beside b may be nobody's, and the collector accepts no pointer to it.
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	from, to := at/size*size, (at+uintptr(len(b))+size-1)/size*size
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_HUGEPAGE)
	runtime.KeepAlive(b)
}
