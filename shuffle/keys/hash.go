package keys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/zeebo/xxh3"
)

// ErrKey is the error of key columns that cannot be keys.
var ErrKey = errors.New("keys: bad key")

// Hasher hashes rows by some of their columns. Its methods may be called at the same time.
type Hasher struct{ columns []int }

// NewHasher checks that the columns, at least one, can be hashed.
func NewHasher(schema *arrow.Schema, columns []int) (*Hasher, error) {
	if len(columns) == 0 {
		return nil, fmt.Errorf("%w: no column", ErrKey)
	}
	for _, c := range columns {
		if c < 0 || c >= schema.NumFields() {
			return nil, fmt.Errorf("%w: no column %d", ErrKey, c)
		}
		if f := schema.Field(c); !hashable(f.Type) {
			return nil, fmt.Errorf("%w: column %d (%s) has type %s, which has no hash", ErrKey, c, f.Name, f.Type)
		}
	}
	return &Hasher{columns}, nil
}

func hashable(t arrow.DataType) bool {
	switch t := t.(type) {
	case arrow.UnionType:
		return false
	case arrow.ExtensionType:
		return hashable(t.StorageType())
	case *arrow.DictionaryType:
		return hashable(t.ValueType)
	case *arrow.RunEndEncodedType:
		return hashable(t.Encoded())
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if !hashable(f.Type) {
				return false
			}
		}
	}
	return true
}

// Hash appends the hash of each row of batch (borrowed) to out, which may be nil.
func (h *Hasher) Hash(batch arrow.RecordBatch, out []uint64) ([]uint64, error) {
	at := len(out)
	if err := present(batch, slices.Max(h.columns)); err != nil {
		return out, err
	}
	out = append(out, make([]uint64, batch.NumRows())...)
	for _, c := range h.columns {
		if err := mixInto(out[at:], batch.Column(c)); err != nil {
			return out[:at], err
		}
	}
	return out, nil
}

// present refuses a batch without a column.
func present(batch arrow.RecordBatch, column int) error {
	if column >= int(batch.NumCols()) {
		return fmt.Errorf("%w: no column %d in a batch of %d", ErrKey, column, batch.NumCols())
	}
	return nil
}

// Partitions appends the partition, of n, of each row of batch (borrowed) to out, which may be nil.
func (h *Hasher) Partitions(batch arrow.RecordBatch, n int, out []uint32) ([]uint32, error) {
	hashes, err := h.Hash(batch, nil)
	if err != nil {
		return out, err
	}
	for _, x := range hashes {
		high, _ := bits.Mul64(x, uint64(n))
		out = append(out, uint32(high))
	}
	return out, nil
}

const (
	seedNull = 0x9AE16A3B2F90404F
	seedList = 0xC949D7C7509E6557
	factor   = 0x9E3779B97F4A7C15
)

// mix adds the hash x of one more value to h.
func mix(h, x uint64) uint64 {
	h = (bits.RotateLeft64(h, 23) ^ x) * factor
	return h ^ h>>32
}

// mixInto adds the values of arr to the hashes of their rows.
func mixInto(out []uint64, arr arrow.Array) error {
	hash, err := hashOf(arr)
	if err != nil {
		return err
	}
	if arr.NullN() == 0 {
		for i := range out {
			out[i] = mix(out[i], hash(i))
		}
		return nil
	}
	for i := range out {
		x := uint64(seedNull)
		if arr.IsValid(i) {
			x = hash(i)
		}
		out[i] = mix(out[i], x)
	}
	return nil
}

// hashes is every value's hash, NULLs included.
func hashes(arr arrow.Array) ([]uint64, error) {
	hash, err := hashOf(arr)
	if err != nil {
		return nil, err
	}
	out := make([]uint64, arr.Len())
	for i := range out {
		if out[i] = seedNull; arr.IsValid(i) {
			out[i] = hash(i)
		}
	}
	return out, nil
}

func word(x uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], x)
	return xxh3.Hash(b[:])
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](v []T) func(int) uint64 {
	return func(i int) uint64 { return word(uint64(int64(v[i]))) }
}

func float(x float64) uint64 {
	switch {
	case x == 0:
		x = 0 // -0.0 as well
	case math.IsNaN(x):
		x = math.NaN()
	}
	var b [9]byte // one more than an integer: 1 and 1.0 need not meet, and their bits do not either
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
	return xxh3.Hash(b[:])
}

// words hashes four words, the low one first.
func words(w [4]uint64) uint64 {
	var b [32]byte
	for i, x := range w {
		binary.LittleEndian.PutUint64(b[8*i:], x)
	}
	return xxh3.Hash(b[:])
}

func wide(high int64, low uint64) [4]uint64 {
	sign := uint64(high >> 63)
	return [4]uint64{low, uint64(high), sign, sign}
}

// bytesLike is an array of bytes, large, view, of fixed size or not.
type bytesLike interface{ Value(int) []byte }

// hashOf returns the function that hashes the valid value at a position of arr.
func hashOf(arr arrow.Array) (func(int) uint64, error) {
	switch a := arr.(type) {
	case *array.Null:
		return func(int) uint64 { return seedNull }, nil
	case *array.Boolean:
		return func(i int) uint64 {
			if a.Value(i) {
				return word(1)
			}
			return word(0)
		}, nil
	case *array.Int8:
		return integers(a.Int8Values()), nil
	case *array.Int16:
		return integers(a.Int16Values()), nil
	case *array.Int32:
		return integers(a.Int32Values()), nil
	case *array.Int64:
		return integers(a.Int64Values()), nil
	case *array.Uint8:
		return integers(a.Uint8Values()), nil
	case *array.Uint16:
		return integers(a.Uint16Values()), nil
	case *array.Uint32:
		return integers(a.Uint32Values()), nil
	case *array.Uint64:
		return integers(a.Uint64Values()), nil
	case *array.Float16:
		return func(i int) uint64 { return float(float64(a.Value(i).Float32())) }, nil
	case *array.Float32:
		return func(i int) uint64 { return float(float64(a.Value(i))) }, nil
	case *array.Float64:
		return func(i int) uint64 { return float(a.Value(i)) }, nil
	case *array.Date32:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.Date64:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.Time32:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.Time64:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.Timestamp:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.Duration:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.MonthInterval:
		return func(i int) uint64 { return word(uint64(int64(a.Value(i)))) }, nil
	case *array.DayTimeInterval:
		return func(i int) uint64 { v := a.Value(i); return mix(word(uint64(v.Days)), uint64(v.Milliseconds)) }, nil
	case *array.MonthDayNanoInterval:
		return func(i int) uint64 {
			v := a.Value(i)
			return mix(mix(word(uint64(v.Months)), uint64(v.Days)), uint64(v.Nanoseconds))
		}, nil
	case *array.Decimal32:
		return func(i int) uint64 { v := int64(a.Value(i)); return words(wide(v>>63, uint64(v))) }, nil
	case *array.Decimal64:
		return func(i int) uint64 { v := int64(a.Value(i)); return words(wide(v>>63, uint64(v))) }, nil
	case *array.Decimal128:
		return func(i int) uint64 { v := a.Value(i); return words(wide(v.HighBits(), v.LowBits())) }, nil
	case *array.Decimal256:
		return func(i int) uint64 { return words(a.Value(i).Array()) }, nil
	case array.StringLike:
		return func(i int) uint64 { return xxh3.HashString(a.Value(i)) }, nil
	case bytesLike:
		return func(i int) uint64 { return xxh3.Hash(a.Value(i)) }, nil
	}
	return nestedHash(arr)
}
