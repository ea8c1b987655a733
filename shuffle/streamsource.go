package shuffle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/objectstore/block"
)

// streamSource reads a streamQueue.
type streamSource struct {
	r      *Reader
	q      *streamQueue
	format *format
}

func newStreamSource(r *Reader, e *Edge, partition int) (*streamSource, error) {
	q, err := r.job.streamQueue(r.s, e.ID, uint32(partition))
	if err != nil {
		return nil, err
	}
	r.job.arrived(r.s, e)
	f := newFormat(r.schema)
	if err := q.attach(e.Producers, f); err != nil {
		return nil, err
	}
	for _, n := range e.Producers {
		if err := r.s.deadError(n); err != nil {
			q.nodeDead(n, err)
		}
	}
	return &streamSource{r: r, q: q, format: f}, nil
}

func (s *streamSource) ready() <-chan struct{} { return s.q.wake }

func (s *streamSource) next() (arrow.RecordBatch, *block.Reader, error) {
	it, ok, err := s.q.next()
	switch {
	case err != nil || !ok:
		return nil, nil, err
	case it.batch != nil:
		b, err := s.r.conform(it.batch)
		return b, nil, err
	}
	s.r.n.BytesCopied += int64(len(it.block))
	b, err := s.format.decode(s.r.s.mem, it.block)
	if err != nil {
		err = fmt.Errorf("%w: a batch of producer %d: %w", ErrCorrupt, it.producer, err)
	}
	return b, nil, err
}

// fail has the producers fail, too: one that were told that its reader has enough would end well, and tell the same to those
// whose rows it reads.
func (s *streamSource) fail(err error) { s.q.fail(fmt.Errorf("%w: %w", ErrReader, err)) }

func (s *streamSource) close(n *Counters) {
	peak, control := s.q.close()
	n.PeakQueued = max(n.PeakQueued, peak)
	n.ControlMessages += control
}
