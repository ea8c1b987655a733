package shuffle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/dustin/go-humanize"

	"manta/shuffle/rows"
)

// concatSink is the baseline: it keeps a producer's whole output in memory and stores it at the end as one object for each
// partition. It fails when the output is larger than the store's memory.
type concatSink struct {
	w     *Writer
	refs  *refWriter
	parts [][]arrow.RecordBatch // by partition; one list for all of a broadcast
	bytes int64
	limit int64
}

func newConcatSink(w *Writer, producer int) *concatSink {
	return &concatSink{
		w: w, refs: newRefWriter(w, producer),
		parts: make([][]arrow.RecordBatch, len(w.edge.Consumers)),
		limit: w.s.node.Store().Stats().MemoryLimit,
	}
}

func (s *concatSink) put(p int, b arrow.RecordBatch) error {
	s.bytes += rows.Size(b)
	s.parts[max(p, 0)] = append(s.parts[max(p, 0)], b)
	if s.bytes > s.limit {
		return fmt.Errorf("%w: %s has more than %s, the memory of the object store on node %s; use mode streaming, object-store or disk, or more memory",
			ErrConcat, s.w.name(), humanize.IBytes(uint64(s.limit)), s.w.s.node.ID())
	}
	return nil
}

func (s *concatSink) finish() error {
	broadcast := s.w.opts.Route.Kind == ToAll
	for p, list := range s.parts {
		if len(list) == 0 {
			continue
		}
		to := p
		if broadcast {
			to = toAll
		}
		if err := s.w.store(s.refs, to, list...); err != nil {
			return err
		}
		s.drop(p)
	}
	return s.refs.finish()
}

func (s *concatSink) drop(p int) {
	for _, b := range s.parts[p] {
		s.bytes -= rows.Size(b)
		b.Release()
	}
	s.parts[p] = nil
}

func (s *concatSink) settle(int64) error { return s.refs.failure() }
func (s *concatSink) abort(err error)    { s.refs.abort(err) }
func (s *concatSink) held() int64        { return s.bytes }
func (s *concatSink) done() bool         { return s.refs.full() }
func (s *concatSink) wants(p int) bool   { return s.refs.wants(p) }

func (s *concatSink) release() {
	for p := range s.parts {
		s.drop(p)
	}
	s.refs.release()
}
