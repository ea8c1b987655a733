package actors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// encodeNumbers encodes a slice of numbers: how many, and then each.
func encodeNumbers(v any) []byte {
	switch v := v.(type) {
	case []int:
		return appendInts(v)
	case []int64:
		return appendInts(v)
	case []float64:
		data := make([]byte, 0, len(v)*8+binary.MaxVarintLen64)
		data = binary.AppendUvarint(data, uint64(len(v)))
		for _, x := range v {
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(x))
		}
		return data
	}
	panic(fmt.Sprintf("actors: %T is no slice of numbers", v))
}

func appendInts[I int | int64](v []I) []byte {
	data := make([]byte, 0, len(v)*3+binary.MaxVarintLen64)
	data = binary.AppendUvarint(data, uint64(len(v)))
	for _, x := range v {
		data = binary.AppendVarint(data, int64(x))
	}
	return data
}

var errNumbers = errors.New("cut short")

func decodeNumbers(data []byte, to any) error {
	if len(data) == 0 {
		return nil // no value
	}
	n, k := binary.Uvarint(data)
	if k <= 0 || n > uint64(len(data)-k) {
		return errNumbers
	}
	data = data[k:]
	switch to := to.(type) {
	case *[]int:
		return ints(data, int(n), to)
	case *[]int64:
		return ints(data, int(n), to)
	case *[]float64:
		if uint64(len(data)) != 8*n {
			return errNumbers
		}
		*to = make([]float64, n)
		for i := range *to {
			(*to)[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		}
		return nil
	}
	panic(fmt.Sprintf("actors: %T is no slice of numbers", to))
}

func ints[I int | int64](data []byte, n int, to *[]I) error {
	out := make([]I, n)
	for i := range out {
		x, k := binary.Varint(data)
		if k <= 0 {
			return errNumbers
		}
		out[i], data = I(x), data[k:]
	}
	*to = out
	return nil
}
