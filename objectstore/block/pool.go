package block

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Pool is an allocator that keeps large buffers for reuse: a fresh megabyte costs its clearing and a collection sooner.
// Buffers have the sizes of powers of two; content is not cleared. Only buffers that came from the pool go back to it.
type Pool struct {
	small   memory.Allocator
	classes [maxClass - minClass + 1]sync.Pool
}

const (
	minClass = 14 // 16 KiB
	maxClass = 25 // 32 MiB
)

// NewPool makes an empty pool.
func NewPool() *Pool { return &Pool{small: memory.NewGoAllocator()} }

func class(n int) int { return bits.Len(uint(n - 1)) }

// Allocate returns n bytes whose address is a multiple of 64 and whose content is anything.
func (p *Pool) Allocate(n int) []byte {
	if n <= 1<<(minClass-1) || n > 1<<maxClass {
		return p.small.Allocate(n)
	}
	c := max(class(n), minClass)
	if v := p.classes[c-minClass].Get(); v != nil {
		return unsafe.Slice(v.(*byte), 1<<c)[:n]
	}
	return p.small.Allocate(1 << c)[:n]
}

// Reallocate keeps the content.
func (p *Pool) Reallocate(n int, b []byte) []byte {
	if n <= cap(b) && cap(b)&(cap(b)-1) == 0 {
		return b[:n]
	}
	next := p.Allocate(n)
	copy(next, b)
	p.Free(b)
	return next
}

// Free takes b.
func (p *Pool) Free(b []byte) {
	n := cap(b)
	if n < 1<<minClass || n > 1<<maxClass || n&(n-1) != 0 {
		return
	}
	p.classes[class(n)-minClass].Put(unsafe.SliceData(b))
}
