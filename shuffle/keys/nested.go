package keys

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// nestedHash is hashOf for types that are made of others.
func nestedHash(arr arrow.Array) (func(int) uint64, error) {
	switch a := arr.(type) {
	case *array.Dictionary:
		values, err := hashes(a.Dictionary())
		return func(i int) uint64 { return values[a.GetValueIndex(i)] }, err
	case *array.RunEndEncoded:
		values, err := hashes(a.Values())
		return func(i int) uint64 { return values[a.GetPhysicalIndex(i)] }, err
	case array.ExtensionArray:
		return orNull(a.Storage())
	case array.ListLike:
		element, err := orNull(a.ListValues())
		return func(i int) uint64 {
			h := uint64(seedList)
			for from, to := a.ValueOffsets(i); from < to; from++ {
				h = mix(h, element(int(from)))
			}
			return h
		}, err
	case *array.Struct:
		fields := make([]func(int) uint64, a.NumField())
		for f := range fields {
			var err error
			if fields[f], err = orNull(a.Field(f)); err != nil {
				return nil, err
			}
		}
		return func(i int) uint64 {
			h := uint64(0)
			for _, f := range fields {
				h = mix(h, f(i))
			}
			return h
		}, nil
	}
	return nil, fmt.Errorf("%w: values of type %s have no hash", ErrKey, arr.DataType())
}

// orNull is hashOf for values that may be NULL.
func orNull(arr arrow.Array) (func(int) uint64, error) {
	hash, err := hashOf(arr)
	return func(i int) uint64 {
		if arr.IsNull(i) {
			return seedNull
		}
		return hash(i)
	}, err
}
