package rows

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// buf is a growing byte buffer of one allocator.
type buf struct {
	b    []byte // len is the allocation
	len  int
	hint int // what the next content is likely to need: a bit more than the last one, which was given away
}

// grow makes room for n more bytes and returns them, counted.
func (g *buf) grow(mem memory.Allocator, n int) []byte {
	at, need := g.len, g.len+n
	if need > len(g.b) {
		g.enlarge(mem, need)
	}
	g.len = need
	return g.b[at:need:need]
}

func (g *buf) enlarge(mem memory.Allocator, need int) {
	size := max(64, g.hint, len(g.b)*2)
	for size < need {
		size *= 2
	}
	if g.b == nil {
		g.b = mem.Allocate(size)
	} else {
		g.b = mem.Reallocate(size, g.b)
	}
}

// take returns the content as an Arrow buffer that owns it, and empties g.
func (g *buf) take(mem memory.Allocator) *memory.Buffer {
	if g.b == nil {
		return memory.NewBufferBytes(nil)
	}
	whole := memory.NewBufferWithAllocator(g.b, mem)
	n := g.len
	*g = buf{hint: n + n/8}
	if n == whole.Len() {
		return whole
	}
	part := memory.SliceBuffer(whole, 0, n)
	whole.Release()
	return part
}

func (g *buf) free(mem memory.Allocator) {
	if g.b != nil {
		mem.Free(g.b)
	}
	*g = buf{}
}

// as views bytes as values of T. len(b) is a multiple of T's size.
func as[T any](b []byte) []T {
	var t T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(t)))
}
