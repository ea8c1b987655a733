package objectstore

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/objectstore/block"
)

// PutBatch stores a record batch (borrowed) as an object: an Arrow IPC stream, so that it can be read in place, here and
// by other processes. Its buffers are copied once, into the store. It waits and fails as Put does.
func (s *Store) PutBatch(owner string, b arrow.RecordBatch) (ID, error) {
	return s.PutBatchLabelled(owner, "", b)
}

// PutBatchLabelled is PutBatch of an object with a label; see Writer.Label.
func (s *Store) PutBatchLabelled(owner, label string, b arrow.RecordBatch) (ID, error) {
	size, err := block.Size(memory.DefaultAllocator, b.Schema(), b)
	if err != nil {
		return ID{}, fmt.Errorf("objectstore: %w", err)
	}
	w, err := s.Create(owner, size)
	if err != nil {
		return ID{}, err
	}
	w.Label(label)
	if err := block.EncodeTo(w, memory.DefaultAllocator, b.Schema(), b); err != nil {
		w.Abort()
		return ID{}, fmt.Errorf("objectstore: %w", err)
	}
	return w.Seal()
}

// GetBatch returns what PutBatch stored, retained. Its buffers are the object's bytes: nothing is copied, and the object
// is pinned until the batch and all that was made of it are released. Errors are those of Get, and ErrNoBatch.
func (s *Store) GetBatch(id ID) (arrow.RecordBatch, error) {
	o, err := s.Get(id)
	if err != nil {
		return nil, err
	}
	r, err := block.Decode(o.Bytes(), nil, o.Release)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoBatch, id, err)
	}
	defer r.Close()
	b, err := r.Next()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrNoBatch, id, err)
	}
	return b, nil
}
