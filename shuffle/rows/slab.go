package rows

import (
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// slab is the memory of one batch's buffers: one allocation that is freed with the last of them. A batch of a few dozen KiB
// then costs the allocator no more than a column of a large one, and lies in one piece.
type slab struct {
	mem  memory.Allocator
	b    []byte
	used int
	uses atomic.Int32
}

// slabAlign is what an Arrow IPC body guarantees: buffers lie here as they will on the way.
const slabAlign = 8

func pad(n int) int { return (n + slabAlign - 1) &^ (slabAlign - 1) }

// newSlab makes an allocator that has size bytes at once. Call close when nothing more is to be allocated.
func newSlab(mem memory.Allocator, size int) *slab {
	s := &slab{mem: mem, b: mem.Allocate(size)}
	s.uses.Store(1)
	return s
}

// close ends the maker's use.
func (s *slab) close() { s.drop() }

func (s *slab) drop() {
	if s.uses.Add(-1) == 0 {
		s.mem.Free(s.b)
	}
}

// Allocate takes what does not fit from the allocator behind.
func (s *slab) Allocate(n int) []byte {
	if n == 0 || pad(n) > len(s.b)-s.used {
		return s.mem.Allocate(n)
	}
	at := s.used
	s.used += pad(n)
	s.uses.Add(1)
	return s.b[at : at+n : at+n]
}

// Reallocate keeps the content.
func (s *slab) Reallocate(n int, b []byte) []byte {
	if !s.owns(b) {
		return s.mem.Reallocate(n, b)
	}
	next := s.Allocate(n)
	copy(next, b)
	s.Free(b)
	return next
}

// Free may be called on any goroutine.
func (s *slab) Free(b []byte) {
	if s.owns(b) {
		s.drop()
		return
	}
	s.mem.Free(b)
}

func (s *slab) owns(b []byte) bool {
	from, at := uintptr(unsafe.Pointer(unsafe.SliceData(s.b))), uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return cap(b) > 0 && at >= from && at < from+uintptr(len(s.b))
}
