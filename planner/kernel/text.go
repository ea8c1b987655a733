package kernel

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// valueText prints a value of a type that Arrow lacks from DuckDB's own bytes.
func valueText(kind string, raw []byte) (string, error) {
	switch {
	case kind == "uhugeint" && len(raw) == 16:
		return new(big.Int).SetBytes(reversed(raw)).String(), nil
	case kind == "uuid" && len(raw) == 16:
		return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:]), nil
	case kind == "time_tz" && len(raw) == 8:
		return timeTZText(binary.LittleEndian.Uint64(raw)), nil
	case kind == "bit" && len(raw) > 1:
		return bitText(raw), nil
	case kind == "bignum" && len(raw) > 3:
		return bignumText(raw), nil
	}
	return "", fmt.Errorf("%d bytes are no %s", len(raw), kind)
}

func reversed(raw []byte) []byte {
	out := make([]byte, len(raw))
	for i, b := range raw {
		out[len(raw)-1-i] = b
	}
	return out
}

// timeTZText reads microseconds of the day in the upper 40 bits, and below them the offset in seconds, counted down
// from the largest one.
func timeTZText(bits uint64) string {
	const largest = 15*3600 + 59*60 + 59
	micros, offset := bits>>24, largest-int64(bits&(1<<24-1))
	seconds := micros / 1_000_000
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	if fraction := micros % 1_000_000; fraction > 0 {
		text += strings.TrimRight(fmt.Sprintf(".%06d", fraction), "0")
	}
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	text += fmt.Sprintf("%s%02d", sign, offset/3600)
	if offset%3600 != 0 {
		text += fmt.Sprintf(":%02d", offset/60%60)
	}
	if offset%60 != 0 {
		text += fmt.Sprintf(":%02d", offset%60)
	}
	return text
}

// bitText reads a first byte that says how many of the following bits, from the left, are padding.
func bitText(raw []byte) string {
	var b strings.Builder
	for i := int(raw[0]); i < (len(raw)-1)*8; i++ {
		b.WriteByte('0' + raw[1+i/8]>>(7-i%8)&1)
	}
	return b.String()
}

// bignumText reads three bytes of sign and length and the magnitude, the highest byte first; all are inverted in
// negative numbers.
func bignumText(raw []byte) string {
	magnitude := append([]byte{}, raw[3:]...)
	negative := raw[0]&0x80 == 0
	if negative {
		for i := range magnitude {
			magnitude[i] = ^magnitude[i]
		}
	}
	n := new(big.Int).SetBytes(magnitude)
	if negative {
		n.Neg(n)
	}
	return n.String()
}
