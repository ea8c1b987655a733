package rows

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// stage gathers small batches when there are many partitions. Scattering a batch costs a visit to every partition of every
// column; with two rows for each, the visits are all the time it takes.
type stage struct {
	cols  []column // of one partition
	parts []uint32
	rows  int   // from which on it is worth scattering
	bytes int64 // held
}

const (
	stageFrom  = 256     // partitions
	stageEach  = 16      // rows for each of them
	stageBytes = 2 << 20 // at most: more than a core's cache does not help
)

// newStage returns nil where gathering would not pay: with few partitions, or with columns whose copies are dear.
func newStage(mem memory.Allocator, schema *arrow.Schema, partitions int) *stage {
	if partitions < stageFrom {
		return nil
	}
	s := &stage{rows: stageEach * partitions}
	for _, f := range schema.Fields() {
		c := newColumn(mem, f.Type, 1)
		if _, ok := c.(*general); ok {
			return nil
		}
		s.cols = append(s.cols, c)
	}
	return s
}

// takes says whether a batch of n rows should be gathered rather than scattered at once.
func (s *stage) takes(batch arrow.RecordBatch, n int, limit int64) bool {
	return s != nil && n > 0 && n <= s.rows/2 && arrayBytes(batch.Columns()[:len(s.cols)]) <= limit/2
}

// add copies the rows of batch (borrowed). parts are their partitions, of n.
func (s *stage) add(batch arrow.RecordBatch, parts []uint32, n int) error {
	for _, p := range parts {
		if p >= uint32(n) {
			return fmt.Errorf("%w: %d of %d", ErrPartition, p, n)
		}
	}
	s.parts = append(s.parts, parts...)
	s.bytes = int64(len(s.parts)) * 4
	for i, c := range s.cols {
		if err := c.append(0, batch.Column(i), nil); err != nil {
			return err
		}
		s.bytes += c.bytes(0)
	}
	return nil
}

// full says whether it is time to scatter what is gathered.
func (s *stage) full(limit int64) bool { return len(s.parts) >= s.rows || s.bytes >= limit }

// take returns what is gathered, retained, and empties the stage. The partitions are valid until the next add.
func (s *stage) take() (cols []arrow.Array, parts []uint32, err error) {
	parts, s.parts, s.bytes = s.parts, s.parts[:0], 0
	for _, c := range s.cols {
		a, e := c.finish(0)
		if e != nil {
			releaseAll(cols)
			return nil, nil, e
		}
		cols = append(cols, a)
	}
	return cols, parts, nil
}

func (s *stage) release() {
	s.parts, s.bytes = nil, 0
	for _, c := range s.cols {
		c.release()
	}
}

// stageLimit bounds the stage by the memory of the batches that are being built.
func (b *Builder) stageLimit() int64 { return min(stageBytes, b.target*int64(len(b.rows))/4) }

// unstage scatters what is gathered.
func (b *Builder) unstage(emit Emit) error {
	if b.stage == nil || len(b.stage.parts) == 0 {
		return nil
	}
	cols, parts, err := b.stage.take()
	if err != nil {
		return err
	}
	defer releaseAll(cols)
	return b.spread(cols, parts, emit)
}
