package shuffle

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/objectstore/block"
	"manta/shuffle/flat"
	"manta/shuffle/rows"
)

// format is how batches of one schema cross in streaming mode. Both ends know the schema: most types go without it, as bare
// buffers; what package flat has no layout for is an Arrow IPC block.
type format struct {
	schema *arrow.Schema
	types  uint64       // to compare with those of the other end
	layout *flat.Layout // or nil
}

func newFormat(schema *arrow.Schema) *format {
	return &format{schema: schema, types: flat.Fingerprint(schema), layout: flat.New(schema)}
}

// encode makes the bytes of a batch (borrowed). own is the memory that they have besides the buffers of the batch, which bare ones hold; a
// block is a copy, in their place.
func (f *format) encode(mem memory.Allocator, batch arrow.RecordBatch) (s *shared, own int64, err error) {
	if f.layout == nil {
		b, err := block.Encode(mem, f.schema, rows.Size(batch), batch)
		if err != nil {
			return nil, 0, err
		}
		s = share(b.Bytes(), b.Free)
		return s, 0, nil
	}
	p, err := f.layout.Write(batch, mem)
	if err != nil {
		return nil, 0, err
	}
	s = &shared{parts: p.Parts(), size: p.Size(), free: p.Free}
	s.refs.Store(1)
	return s, p.Own(), nil
}

// head is how many of a batch's bytes say what parts the others are.
func (f *format) head() int {
	if f.layout == nil {
		return 0
	}
	return f.layout.HeadBytes()
}

// cut returns the lengths of the parts after the head of a batch of size bytes. into is reused.
func (f *format) cut(head []byte, size int64, into []int) ([]int, error) {
	if f.layout == nil {
		return append(into[:0], int(size)), nil
	}
	return f.layout.Cut(head, size, into)
}

// decode makes a batch of its bytes (taken), which are of mem.
func (f *format) decode(mem memory.Allocator, data []byte) (arrow.RecordBatch, error) {
	if f.layout != nil {
		return f.layout.Read(data, mem)
	}
	r, err := block.Decode(data, f.schema, func() { mem.Free(data) })
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b, err := r.Next()
	if err == io.EOF {
		return nil, fmt.Errorf("%w: no batch", block.ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	if more, err := r.Next(); err != io.EOF {
		b.Release()
		if err == nil {
			more.Release()
			err = fmt.Errorf("%w: more than a batch", block.ErrCorrupt)
		}
		return nil, err
	}
	return b, nil
}

// check refuses what was written as other types.
func (f *format) check(types uint64) error {
	if types != f.types {
		return fmt.Errorf("%w: rows of other types than %s", block.ErrSchema, f.schema)
	}
	return nil
}
