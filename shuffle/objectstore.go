package shuffle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/objectstore"
	"manta/objectstore/block"
	"manta/shuffle/rows"
	"manta/shuffle/shufflepb"
)

// objectSink puts each batch, as a block, into the store of the producer's node, and hands references out at once. The store
// spills, so a producer never waits for a reader.
type objectSink struct {
	w    *Writer
	refs *refWriter
}

func newObjectSink(w *Writer, producer int) *objectSink {
	return &objectSink{w: w, refs: newRefWriter(w, producer)}
}

func (s *objectSink) put(p int, b arrow.RecordBatch) error {
	defer b.Release()
	if err := s.refs.failure(); err != nil {
		return err
	}
	return s.w.store(s.refs, p, b)
}

// store puts batches (borrowed) as one object into the node's store, for partition p or for all that want it.
func (w *Writer) store(refs *refWriter, p int, batches ...arrow.RecordBatch) error {
	id, size, err := w.putBlock(batches)
	if err != nil {
		return err
	}
	var nrows, bytes int64
	for _, b := range batches {
		nrows += b.NumRows()
		bytes += rows.Size(b)
	}
	w.n.Objects++
	w.n.BytesCopied += size
	owner := string(w.edge.Job)
	if p != toAll && w.kept == nil {
		w.sent(nrows, bytes)
		refs.push(p, &shufflepb.Ref{Object: id[:], Holder: owner, Size: size, Rows: nrows})
		return nil
	}
	// Each reader has a hold of its own. The owner's goes, unless it is what keeps the object.
	store := w.s.node.Store()
	tell := func(p int) error {
		holder := holderName(w.edge, w.id, p)
		if err := store.Hold(id, holder); err != nil {
			return err
		}
		w.sent(nrows, bytes)
		refs.push(p, &shufflepb.Ref{Object: id[:], Holder: holder, Size: size, Rows: nrows})
		return nil
	}
	keep := &shufflepb.Ref{Object: id[:], Size: size, Rows: nrows}
	if p != toAll {
		if err := tell(p); err != nil {
			return err
		}
	} else {
		for p := range w.edge.Consumers {
			if !refs.wants(p) {
				continue
			}
			if err := tell(p); err != nil {
				return err
			}
		}
	}
	if w.kept != nil && w.kept.add(max(p, 0), keep) {
		return nil
	}
	return store.Release(id, owner)
}

// putBlock encodes batches straight into an object of the node's store.
func (w *Writer) putBlock(batches []arrow.RecordBatch) (id objectstore.ID, size int64, err error) {
	size, err = block.Size(w.s.mem, w.opts.Schema, batches...)
	if err != nil {
		return id, 0, err
	}
	if w.kept != nil {
		w.s.relieve(size)
	}
	out, err := w.s.node.Store().Create(string(w.edge.Job), size)
	if err != nil {
		return id, 0, fmt.Errorf("shuffle: mode %s: %w", w.edge.Mode, err)
	}
	out.Label(w.label)
	if err := block.EncodeTo(out, w.s.mem, w.opts.Schema, batches...); err != nil {
		out.Abort()
		return id, 0, err
	}
	id, err = out.Seal()
	return id, size, err
}

func (s *objectSink) settle(int64) error { return s.refs.failure() }
func (s *objectSink) finish() error      { return s.refs.finish() }
func (s *objectSink) abort(err error)    { s.refs.abort(err) }
func (s *objectSink) held() int64        { return 0 }
func (s *objectSink) done() bool         { return s.refs.full() }
func (s *objectSink) wants(p int) bool   { return s.refs.wants(p) }
func (s *objectSink) release()           { s.refs.release() }
