package block

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Pool is an allocator that keeps large buffers for reuse: a fresh megabyte costs its clearing and a collection sooner.
// Buffers have one of four sizes between a power of two and the next; content is not cleared. Only buffers that came from the
// pool go back to it.
type Pool struct {
	small   memory.Allocator
	classes [4*(maxBits-minBits) + 1]sync.Pool
}

const (
	minBits = 14 // 16 KiB
	maxBits = 25 // 32 MiB
)

// hugeFrom is the size from which on memory is worth huge pages, where the system has them.
const hugeFrom = 256 << 10

// NewPool makes an empty pool.
func NewPool() *Pool { return &Pool{small: memory.NewGoAllocator()} }

// class is the number of the smallest size of at least n bytes, and that size. n is between the limits.
func class(n int) (number, size int) {
	if n <= 1<<minBits {
		return 0, 1 << minBits
	}
	low := bits.Len(uint(n-1)) - 1 // n is over 1<<low, and at most twice that
	quarter := 1 << (low - 2)
	k := (n - 1<<low + quarter - 1) / quarter // 1 to 4
	return 4*(low-minBits) + k, 1<<low + k*quarter
}

// Allocate returns n bytes whose address is a multiple of 64 and whose content is anything.
func (p *Pool) Allocate(n int) []byte {
	if n <= 1<<(minBits-1) || n > 1<<maxBits {
		return p.small.Allocate(n)
	}
	number, size := class(n)
	if v := p.classes[number].Get(); v != nil {
		return unsafe.Slice(v.(*byte), size)[:n]
	}
	b := p.small.Allocate(size)
	if size >= hugeFrom {
		huge(b)
	}
	return b[:n:size]
}

// Reallocate keeps the content.
func (p *Pool) Reallocate(n int, b []byte) []byte {
	if n <= cap(b) && pooled(cap(b)) {
		return b[:n]
	}
	next := p.Allocate(n)
	copy(next, b)
	p.Free(b)
	return next
}

// pooled says whether the pool has buffers of this size.
func pooled(size int) bool {
	if size < 1<<minBits || size > 1<<maxBits {
		return false
	}
	_, s := class(size)
	return s == size
}

// Free takes b.
func (p *Pool) Free(b []byte) {
	if n := cap(b); pooled(n) {
		number, _ := class(n)
		p.classes[number].Put(unsafe.SliceData(b))
	}
}
