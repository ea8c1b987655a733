package kernel

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// vectorRows is the number of rows in a full vector of DuckDB, and so in a full batch of Rows.
const vectorRows = 2048

// splitter cuts the batches of streams whose columns can't be read at an offset. Arrow's C export and DuckDB's import
// disagree about (and DuckDB's import loses) the offsets of structs, unions and arrays inside one another. Such columns
// are copied, a vector at a time, so that every offset is zero; other columns are used in place.
type splitter struct {
	copied []int             // columns that need it; none = batches pass as they are
	rest   arrow.RecordBatch // owned; not yet handed out
}

func newSplitter(s *arrow.Schema) *splitter {
	sp := &splitter{}
	for i, f := range s.Fields() {
		if !readsAtOffset(f.Type) {
			sp.copied = append(sp.copied, i)
		}
	}
	return sp
}

func readsAtOffset(t arrow.DataType) bool {
	if l, ok := t.(*arrow.ListType); ok {
		t = l.Elem()
	}
	_, nested := t.(arrow.NestedType)
	return !nested
}

// put takes a batch, and must find the last one used up.
func (s *splitter) put(b arrow.RecordBatch) { s.rest = b }

// next returns the next piece, retained, or nil when the batch is used up.
func (s *splitter) next() (arrow.RecordBatch, error) {
	if s.rest == nil || s.rest.NumRows() == 0 {
		s.release()
		return nil, nil
	}
	if len(s.copied) == 0 {
		whole := s.rest
		s.rest = nil
		return whole, nil
	}
	rows := min(s.rest.NumRows(), vectorRows)
	piece := s.rest.NewSlice(0, rows)
	defer piece.Release()
	tail := s.rest.NewSlice(rows, s.rest.NumRows())
	s.rest.Release()
	s.rest = tail
	columns := append([]arrow.Array{}, piece.Columns()...)
	for _, i := range s.copied {
		compact, err := array.Concatenate([]arrow.Array{columns[i]}, memory.DefaultAllocator)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", piece.ColumnName(i), err)
		}
		defer compact.Release()
		columns[i] = compact
	}
	return array.NewRecordBatch(piece.Schema(), columns, rows), nil
}

func (s *splitter) release() {
	if s.rest != nil {
		s.rest.Release()
		s.rest = nil
	}
}
