package block

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Buffer is a block in memory. It is shared by nobody; Free gives its memory back.
type Buffer struct {
	mem memory.Allocator
	b   []byte // len is the allocation
	n   int
}

// Bytes is the block, valid until Free.
func (e *Buffer) Bytes() []byte { return e.b[:e.n] }

// Free may be called more than once.
func (e *Buffer) Free() {
	if e.b != nil {
		e.mem.Free(e.b)
		e.b, e.n = nil, 0
	}
}

// Write makes a Buffer an io.Writer.
func (e *Buffer) Write(p []byte) (int, error) {
	e.reserve(e.n + len(p))
	e.n += copy(e.b[e.n:], p)
	return len(p), nil
}

func (e *Buffer) reserve(size int) {
	switch {
	case e.b == nil:
		e.b = e.mem.Allocate(size)
	case size > len(e.b):
		e.b = e.mem.Reallocate(max(size, 2*len(e.b)), e.b)
	}
}

// Encode makes a block of batches (borrowed), all of the schema. sizeHint is about the bytes of their buffers.
func Encode(mem memory.Allocator, schema *arrow.Schema, sizeHint int64, batches ...arrow.RecordBatch) (*Buffer, error) {
	e := &Buffer{mem: mem}
	// Room for the schema, each batch's header and the padding of its buffers.
	e.reserve(int(sizeHint) + 512 + (len(batches)+1)*192*(schema.NumFields()+1))
	if err := EncodeTo(e, mem, schema, batches...); err != nil {
		e.Free()
		return nil, err
	}
	return e, nil
}
