package shuffle

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/shuffle/rows"
	"manta/shuffle/shufflepb"
)

// rangeBytes is about the size of a range: readers hold one or two in memory.
const rangeBytes = 4 << 20

// diskSink writes a producer's output to one file on its node. It gathers batches up to its share of the memory, then writes
// them as a run, partition after partition; the index says where each partition's ranges are. It is handed out at the
// end, so readers of this mode start when their producers have ended.
type diskSink struct {
	w     *Writer
	refs  *refWriter
	file  *spillFile
	parts [][]arrow.RecordBatch // by partition; the first list for all of a broadcast
	index [][]*shufflepb.Ref    // like parts
	bytes int64
}

func newDiskSink(w *Writer, producer int) (sink, error) {
	f, err := w.job.newFile(w.s, fileKey{w.edge.ID, uint32(producer)})
	if err != nil {
		return nil, err
	}
	n := len(w.edge.Consumers)
	return &diskSink{
		w: w, refs: newRefWriter(w, producer), file: f,
		parts: make([][]arrow.RecordBatch, n), index: make([][]*shufflepb.Ref, n),
	}, nil
}

func (s *diskSink) put(p int, b arrow.RecordBatch) error {
	s.bytes += rows.Size(b)
	s.parts[max(p, 0)] = append(s.parts[max(p, 0)], b)
	return nil
}

// settle writes a run when more than limit bytes have gathered.
func (s *diskSink) settle(limit int64) error {
	if s.bytes <= limit {
		return nil
	}
	return s.run()
}

// run writes everything that has gathered.
func (s *diskSink) run() error {
	for p, list := range s.parts {
		for len(list) > 0 {
			n, size, count := 0, int64(0), int64(0)
			for n < len(list) && (n == 0 || size < rangeBytes) {
				size += rows.Size(list[n])
				count += list[n].NumRows()
				n++
			}
			ref, err := s.file.append(s.w.s.mem, s.w.opts.Schema, list[:n])
			if err != nil {
				return fmt.Errorf("shuffle: mode %s: %w", Disk, err)
			}
			ref.Rows = count
			s.index[p] = append(s.index[p], ref)
			s.w.n.Objects++
			s.w.n.BytesCopied += ref.Size
			s.w.n.BytesSpilled += ref.Size
			s.w.s.spilled.Add(ref.Size)
			s.count(n, count, size)
			list = list[n:]
		}
		s.drop(p)
	}
	return nil
}

// count counts batches that were written, once for each partition that gets them.
func (s *diskSink) count(batches int, rows, bytes int64) {
	times := int64(1)
	if s.w.opts.Route.Kind == ToAll {
		times = int64(len(s.w.edge.Consumers))
	}
	s.w.n.Rows += rows * times
	s.w.n.Bytes += bytes * times
	s.w.n.Batches += int64(batches) * times
}

func (s *diskSink) drop(p int) {
	for _, b := range s.parts[p] {
		s.bytes -= rows.Size(b)
		b.Release()
	}
	s.parts[p] = nil
}

func (s *diskSink) finish() error {
	if err := s.run(); err != nil {
		return err
	}
	if err := s.file.flush(); err != nil {
		return fmt.Errorf("shuffle: mode %s: %w", Disk, err)
	}
	if s.w.kept != nil {
		s.w.kept.setFile(s.file, s.index)
	}
	for p := range s.index {
		from := p
		if s.w.opts.Route.Kind == ToAll {
			from = 0
		}
		for _, ref := range s.index[from] {
			s.refs.push(p, ref)
		}
	}
	return s.refs.finish()
}

func (s *diskSink) abort(err error) { s.refs.abort(err) }

func (s *diskSink) held() int64      { return s.bytes }
func (s *diskSink) done() bool       { return s.refs.full() }
func (s *diskSink) wants(p int) bool { return s.refs.wants(p) }

func (s *diskSink) release() {
	for p := range s.parts {
		s.drop(p)
	}
	s.refs.release()
}
