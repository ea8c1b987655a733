package shuffle

import (
	"github.com/apache/arrow-go/v18/arrow"

	"manta/shuffle/rows"
)

// piece is a batch, or some rows of one, that waits for the credit of one partition.
type piece struct {
	batch arrow.RecordBatch // owned; nil once only its block is needed
	size  int64
	rows  int64
	mem   *memoryShare
	enc   *encoded
}

// memoryShare is the memory of one batch, shared by its slices and by the partitions it goes to.
type memoryShare struct {
	s     *streamSink
	bytes int64
	uses  int
}

func (m *memoryShare) drop() {
	if m.uses--; m.uses == 0 {
		m.s.bytes -= m.bytes
	}
}

// encoded is the block of a piece, once made, shared by the partitions it goes to.
type encoded struct {
	s     *streamSink
	block *shared
	own   int64 // memory that the block has besides the batch
	uses  int
}

func (e *encoded) drop() {
	if e.uses--; e.uses == 0 && e.block != nil {
		e.s.bytes -= e.own
		e.block.release()
	}
}

// newPiece takes b. Copies of the piece, each with a batch reference of its own, may go to `uses` partitions in all.
func newPiece(s *streamSink, b arrow.RecordBatch, uses int) piece {
	size := rows.Size(b)
	s.bytes += size
	return piece{
		batch: b, size: size, rows: b.NumRows(),
		mem: &memoryShare{s: s, bytes: size, uses: uses},
		enc: &encoded{s: s, uses: uses},
	}
}

// drop ends the use of a piece.
func (p piece) drop() {
	if p.batch != nil {
		p.batch.Release()
	}
	p.mem.drop()
	p.enc.drop()
}

// blockExtra is what a block usually has at most besides the buffers of its batch.
const blockExtra = 4 << 10

// cut returns the piece as slices that fit a window well, or nil when it does already. The piece is then ended.
func (p *piece) cut(window int64) []piece {
	if p.batch == nil || p.enc.block != nil || window == 0 || p.size <= max(window/2, window-blockExtra) || p.rows < 2 || rows.HasUnion(p.batch.Schema()) {
		return nil
	}
	return p.split(window / 2)
}

// split ends the piece and returns it as slices of about size bytes.
func (p *piece) split(size int64) []piece {
	n := min(p.rows, (p.size+size-1)/max(size, 1))
	cut := make([]piece, 0, n)
	for i := range n {
		from, to := p.rows*i/n, p.rows*(i+1)/n
		b := p.batch.NewSlice(from, to)
		p.mem.uses++
		cut = append(cut, piece{
			batch: b, size: rows.Size(b), rows: to - from,
			mem: p.mem, enc: &encoded{s: p.mem.s, uses: 1},
		})
	}
	p.drop()
	return cut
}

// encode makes the piece's block, which takes the place of the batch, unless another partition's copy has.
func (p *piece) encode(f *format) error {
	if p.enc.block == nil {
		var err error
		if p.enc.block, p.enc.own, err = f.encode(p.mem.s.w.s.mem, p.batch); err != nil {
			return err
		}
		p.mem.s.bytes += p.enc.own
	}
	if p.batch != nil {
		p.batch.Release()
		p.batch = nil
	}
	return nil
}
