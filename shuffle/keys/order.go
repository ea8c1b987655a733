package keys

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Key is a column to order by.
type Key struct {
	Column     int
	Descending bool
	NullsFirst bool
}

// Ranges cuts an order into partitions at bounds: partition p has the rows from bound p-1 on and below bound p.
type Ranges struct {
	keys   []Key
	bounds []arrow.Array // borrowed; one for each key
	n      int           // bounds
}

// NewRanges checks bounds (borrowed as long as the Ranges are used), which have a column for each key, of the type of the
// schema's, and a row for each cut, in order.
func NewRanges(schema *arrow.Schema, keys []Key, bounds arrow.RecordBatch) (*Ranges, error) {
	if len(keys) == 0 || bounds == nil || int(bounds.NumCols()) != len(keys) {
		return nil, fmt.Errorf("%w: ranges need keys, and bounds with a column for each", ErrKey)
	}
	r := &Ranges{keys: keys, bounds: bounds.Columns(), n: int(bounds.NumRows())}
	for i, k := range keys {
		if k.Column < 0 || k.Column >= schema.NumFields() {
			return nil, fmt.Errorf("%w: no column %d", ErrKey, k.Column)
		}
		if f, got := schema.Field(k.Column), r.bounds[i].DataType(); !arrow.TypeEqual(f.Type, got) {
			return nil, fmt.Errorf("%w: column %d (%s) has type %s, its bounds %s", ErrKey, k.Column, f.Name, f.Type, got)
		}
	}
	compare, err := comparer(keys, r.bounds, r.bounds)
	if err != nil {
		return nil, err
	}
	for i := 1; i < r.n; i++ {
		if compare(i-1, i) > 0 {
			return nil, fmt.Errorf("%w: bound %d is below the one before", ErrKey, i)
		}
	}
	return r, nil
}

// Partitions appends the partition of each row of batch (borrowed) to out, which may be nil.
func (r *Ranges) Partitions(batch arrow.RecordBatch, out []uint32) ([]uint32, error) {
	cols, err := columns(batch, r.keys)
	if err != nil {
		return out, err
	}
	compare, err := comparer(r.keys, r.bounds, cols)
	if err != nil {
		return out, err
	}
	for row := range int(batch.NumRows()) {
		p := sort.Search(r.n, func(bound int) bool { return compare(bound, row) > 0 })
		out = append(out, uint32(p))
	}
	return out, nil
}

// Bounds returns the bounds, retained, that cut the rows of sample (borrowed) into n partitions about as large.
func Bounds(mem memory.Allocator, sample arrow.RecordBatch, keys []Key, n int) (arrow.RecordBatch, error) {
	if len(keys) == 0 || n < 1 {
		return nil, fmt.Errorf("%w: %d keys, %d partitions", ErrKey, len(keys), n)
	}
	cols, err := columns(sample, keys)
	if err != nil {
		return nil, err
	}
	compare, err := comparer(keys, cols, cols)
	if err != nil {
		return nil, err
	}
	order := make([]int, sample.NumRows())
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return compare(order[i], order[j]) < 0 })
	fields := make([]arrow.Field, len(keys))
	out := make([]arrow.Array, len(keys))
	defer func() {
		for _, a := range out {
			if a != nil {
				a.Release()
			}
		}
	}()
	cuts := 0
	for i, k := range keys {
		fields[i] = sample.Schema().Field(k.Column)
		var runs []arrow.Array
		for p := 1; p < n && len(order) > 0; p++ {
			at := int64(order[len(order)*p/n])
			runs = append(runs, array.NewSlice(cols[i], at, at+1))
		}
		cuts = len(runs)
		if cuts == 0 {
			out[i] = array.MakeArrayOfNull(mem, fields[i].Type, 0)
			continue
		}
		out[i], err = array.Concatenate(runs, mem)
		for _, a := range runs {
			a.Release()
		}
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), out, int64(cuts)), nil
}

func columns(batch arrow.RecordBatch, keys []Key) ([]arrow.Array, error) {
	out := make([]arrow.Array, len(keys))
	for i, k := range keys {
		if err := present(batch, k.Column); err != nil {
			return nil, err
		}
		out[i] = batch.Column(k.Column)
	}
	return out, nil
}

// comparer orders row i of a against row j of b, by the keys.
func comparer(keys []Key, a, b []arrow.Array) (func(i, j int) int, error) {
	each := make([]func(i, j int) int, len(keys))
	for n, k := range keys {
		values, err := compareOf(a[n], b[n])
		if err != nil {
			return nil, err
		}
		x, y := a[n], b[n]
		each[n] = func(i, j int) int {
			xn, yn := x.IsNull(i), y.IsNull(j)
			switch {
			case xn && yn:
				return 0
			case xn != yn:
				if xn == k.NullsFirst {
					return -1
				}
				return 1
			case k.Descending:
				return -values(i, j)
			}
			return values(i, j)
		}
	}
	return func(i, j int) int {
		for _, compare := range each {
			if c := compare(i, j); c != 0 {
				return c
			}
		}
		return 0
	}, nil
}

// valued is an array with values of one Go type.
type valued[T any] interface{ Value(int) T }

// by compares values of two arrays of one type.
func by[T any](a, b arrow.Array, compare func(x, y T) int) func(i, j int) int {
	x, y := a.(valued[T]), b.(valued[T])
	return func(i, j int) int { return compare(x.Value(i), y.Value(j)) }
}

func number[T cmp.Ordered](a, b arrow.Array) func(i, j int) int { return by(a, b, cmp.Compare[T]) }

// floats has NaN above all, where cmp has it below.
func floats(x, y float64) int {
	if xn, yn := math.IsNaN(x), math.IsNaN(y); xn || yn {
		return cmp.Compare(b2i(xn), b2i(yn))
	}
	return cmp.Compare(x, y)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareOf compares valid values of two arrays of one type.
func compareOf(a, b arrow.Array) (func(i, j int) int, error) {
	if !arrow.TypeEqual(a.DataType(), b.DataType()) {
		return nil, fmt.Errorf("%w: type %s beside %s", ErrKey, a.DataType(), b.DataType())
	}
	switch a.(type) {
	case *array.Null:
		return func(int, int) int { return 0 }, nil
	case *array.Boolean:
		return by(a, b, func(x, y bool) int { return cmp.Compare(b2i(x), b2i(y)) }), nil
	case *array.Int8:
		return number[int8](a, b), nil
	case *array.Int16:
		return number[int16](a, b), nil
	case *array.Int32:
		return number[int32](a, b), nil
	case *array.Int64:
		return number[int64](a, b), nil
	case *array.Uint8:
		return number[uint8](a, b), nil
	case *array.Uint16:
		return number[uint16](a, b), nil
	case *array.Uint32:
		return number[uint32](a, b), nil
	case *array.Uint64:
		return number[uint64](a, b), nil
	case *array.Float32:
		return by(a, b, func(x, y float32) int { return floats(float64(x), float64(y)) }), nil
	case *array.Float64:
		return by(a, b, floats), nil
	case *array.Date32:
		return number[arrow.Date32](a, b), nil
	case *array.Date64:
		return number[arrow.Date64](a, b), nil
	case *array.Time32:
		return number[arrow.Time32](a, b), nil
	case *array.Time64:
		return number[arrow.Time64](a, b), nil
	case *array.Timestamp:
		return number[arrow.Timestamp](a, b), nil
	case *array.Duration:
		return number[arrow.Duration](a, b), nil
	case *array.Decimal32:
		return by(a, b, func(x, y decimal.Decimal32) int { return x.Cmp(y) }), nil
	case *array.Decimal64:
		return by(a, b, func(x, y decimal.Decimal64) int { return x.Cmp(y) }), nil
	case *array.Decimal128:
		return by(a, b, func(x, y decimal.Decimal128) int { return x.Cmp(y) }), nil
	case *array.Decimal256:
		return by(a, b, func(x, y decimal.Decimal256) int { return x.Cmp(y) }), nil
	case array.StringLike:
		return number[string](a, b), nil
	case bytesLike:
		return by(a, b, bytes.Compare), nil
	}
	return nil, fmt.Errorf("%w: values of type %s have no order here", ErrKey, a.DataType())
}
