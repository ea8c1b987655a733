package shuffle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// shape is what the batches of a run are like. It travels to the tasks.
type shape struct {
	Rows, Columns, Partitions int
	Skew                      float64
}

func (s shape) width() int64 { return int64(s.Columns) * 8 }

func (s shape) schema() *arrow.Schema {
	fields := make([]arrow.Field, s.Columns)
	for i := range fields {
		fields[i] = arrow.Field{Name: fmt.Sprint("c", i), Type: arrow.PrimitiveTypes.Int64}
	}
	return arrow.NewSchema(fields, nil)
}

// input is the batches that a producer writes again and again, and the sum of each one's first column.
type input struct {
	batches []arrow.RecordBatch
	sums    []int64
}

// The size of an input: about inputBytes, which is more than a core's caches, in inputBatches at most, since small ones take many times
// their values.
const (
	inputBytes   = 16 << 20
	inputBatches = 16 << 10
)

// makeInput makes batches with a partition number in an extra last column.
func makeInput(s shape, seed uint64) *input {
	shares := make([]float64, s.Partitions)
	total := 0.0
	for p := range shares {
		total += math.Pow(float64(p+1), -s.Skew)
		shares[p] = total
	}
	random := rand.New(rand.NewPCG(seed, 17))
	fields := append(s.schema().Fields(), arrow.Field{Name: "partition", Type: arrow.PrimitiveTypes.Uint32})
	schema := arrow.NewSchema(fields, nil)
	in := &input{}
	for range max(1, min(inputBatches, inputBytes/(s.width()*int64(s.Rows)))) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for c := range s.Columns {
			values := make([]int64, s.Rows)
			for i := range values {
				values[i] = int64(random.Uint64())
			}
			b.Field(c).(*array.Int64Builder).AppendValues(values, nil)
		}
		parts := make([]uint32, s.Rows)
		for i := range parts {
			at := sort.SearchFloat64s(shares, random.Float64()*total)
			parts[i] = uint32(min(at, s.Partitions-1))
		}
		b.Field(s.Columns).(*array.Uint32Builder).AppendValues(parts, nil)
		batch := b.NewRecordBatch()
		b.Release()
		in.batches = append(in.batches, batch)
		in.sums = append(in.sums, sumFirst(batch))
	}
	return in
}

// each gives do the batches of so many rows in all, and returns the sum of their first column.
func (in *input) each(rows int64, do func(arrow.RecordBatch) error) (sum int64, err error) {
	for i := 0; rows > 0; i = (i + 1) % len(in.batches) {
		b := in.batches[i]
		if n := b.NumRows(); n <= rows {
			rows -= n
			sum += in.sums[i]
			if err := do(b); err != nil {
				return sum, err
			}
			continue
		}
		part := b.NewSlice(0, rows)
		rows = 0
		sum += sumFirst(part)
		err := do(part)
		part.Release()
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

func (in *input) release() {
	for _, b := range in.batches {
		b.Release()
	}
}

func sumFirst(b arrow.RecordBatch) (sum int64) {
	for _, v := range b.Column(0).(*array.Int64).Int64Values() {
		sum += v
	}
	return sum
}
