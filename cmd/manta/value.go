package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// cell is one value as text, scalars the way DuckDB writes them and nested ones
// as JSON. It may lie in the column's memory.
func cell(column arrow.Array, i int, null string) string {
	if column.IsNull(i) {
		return null
	}
	switch c := column.(type) {
	case *array.String:
		return c.Value(i)
	case *array.Float64:
		return floatText(c.Value(i), 64)
	case *array.Float32:
		return floatText(float64(c.Value(i)), 32)
	case *array.Decimal128:
		return c.Value(i).ToString(c.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Timestamp:
		return timestampText(c, i)
	case *array.Date32:
		return dateText(c.Value(i))
	case *array.Time64:
		return timeText(c.Value(i).ToTime(c.DataType().(*arrow.Time64Type).Unit))
	case *array.MonthDayNanoInterval:
		return intervalText(c.Value(i))
	case *array.Binary:
		return blobText(c.Value(i))
	case *array.Dictionary:
		return cell(c.Dictionary(), c.GetValueIndex(i), null)
	case *array.SparseUnion:
		return cell(c.Field(c.ChildID(i)), i, null)
	case *array.DenseUnion:
		return cell(c.Field(c.ChildID(i)), int(c.ValueOffset(i)), null)
	}
	if arrow.IsNested(column.DataType().ID()) {
		return string(appendJSON(nil, column, i))
	}
	return column.ValueStr(i)
}

// appendJSON appends one value as JSON. Numbers keep all their digits, and what
// JSON has no number for is text. Fields of a struct keep their order, those of row() without names are
// a list; the keys of a map become names; a union is the value it holds.
func appendJSON(b []byte, column arrow.Array, i int) []byte {
	if column.IsNull(i) {
		return append(b, "null"...)
	}
	switch c := column.(type) {
	case *array.Boolean:
		return strconv.AppendBool(b, c.Value(i))
	case *array.Float64:
		return appendFloat(b, c.Value(i), 64)
	case *array.Float32:
		return appendFloat(b, float64(c.Value(i)), 32)
	case *array.Struct:
		if unnamed(c.DataType().(*arrow.StructType)) {
			b = append(b, '[')
			for f := range c.NumField() {
				if f > 0 {
					b = append(b, ',')
				}
				b = appendJSON(b, c.Field(f), i)
			}
			return append(b, ']')
		}
		b = append(b, '{')
		for f := range c.NumField() {
			b = appendName(b, f, c.DataType().(*arrow.StructType).Field(f).Name)
			b = appendJSON(b, c.Field(f), i)
		}
		return append(b, '}')
	case *array.Map: // a list too, hence first
		b = append(b, '{')
		from, to := c.ValueOffsets(i)
		for k := from; k < to; k++ {
			b = appendName(b, int(k-from), cell(c.Keys(), int(k), ""))
			b = appendJSON(b, c.Items(), int(k))
		}
		return append(b, '}')
	case array.ListLike:
		b = append(b, '[')
		from, to := c.ValueOffsets(i)
		for k := from; k < to; k++ {
			if k > from {
				b = append(b, ',')
			}
			b = appendJSON(b, c.ListValues(), int(k))
		}
		return append(b, ']')
	case *array.SparseUnion:
		return appendJSON(b, c.Field(c.ChildID(i)), i)
	case *array.DenseUnion:
		return appendJSON(b, c.Field(c.ChildID(i)), int(c.ValueOffset(i)))
	}
	text := cell(column, i, "")
	if id := column.DataType().ID(); arrow.IsInteger(id) || arrow.IsDecimal(id) {
		return append(b, text...)
	}
	return appendString(b, text)
}

// unnamed reports a struct whose fields have no names.
func unnamed(t *arrow.StructType) bool {
	return !slices.ContainsFunc(t.Fields(), func(f arrow.Field) bool { return f.Name != "" })
}

// appendName appends the name of an object's field.
func appendName(b []byte, field int, name string) []byte {
	if field > 0 {
		b = append(b, ',')
	}
	return append(appendString(b, name), ':')
}

// appendString appends a JSON string, with <, > and & as they are.
func appendString(b []byte, s string) []byte {
	out := bytes.NewBuffer(b)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string has JSON, and a buffer takes it
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

func appendFloat(b []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return append(b, floatText(f, bits)...)
}

// floatText has the fewest digits that give the same number, and always shows
// that it is no integer.
func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(f, 'g', -1, bits)), "+")
	}
	if size := math.Abs(f); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, bits)
	}
	text := strconv.FormatFloat(f, 'f', -1, bits)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// timestampText is a time to the precision it has.
func timestampText(c *array.Timestamp, i int) string {
	t := c.DataType().(*arrow.TimestampType)
	v := int64(c.Value(i))
	if v == math.MaxInt64 || v == -math.MaxInt64 {
		return infinity(v > 0)
	}
	when := c.Value(i).ToTime(t.Unit).UTC()
	text := strings.TrimSuffix(dayText(when), bc) + " " + timeText(when)
	if t.TimeZone != "" {
		text += "+00"
	}
	if when.Year() < 1 {
		text += bc
	}
	return text
}

func dateText(d arrow.Date32) string {
	if d == math.MaxInt32 || d == -math.MaxInt32 {
		return infinity(d > 0)
	}
	return dayText(d.ToTime())
}

const bc = " (BC)"

// dayText is the day of a time; there is no year 0.
func dayText(t time.Time) string {
	if t.Year() < 1 {
		return fmt.Sprintf("%04d-%02d-%02d%s", 1-t.Year(), t.Month(), t.Day(), bc)
	}
	return t.Format(time.DateOnly)
}

func timeText(t time.Time) string { return t.Format("15:04:05.999999999") }

func infinity(positive bool) string {
	if positive {
		return "infinity"
	}
	return "-infinity"
}

// intervalText names the parts that are not zero: 1 year 2 months -3 days 04:05:06.5.
func intervalText(v arrow.MonthDayNanoInterval) string {
	var parts []string
	part := func(n int32, unit string) {
		if n == 1 || n == -1 {
			parts = append(parts, fmt.Sprintf("%d %s", n, unit))
		} else if n != 0 {
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit))
		}
	}
	part(v.Months/12, "year")
	part(v.Months%12, "month")
	part(v.Days, "day")
	if v.Nanoseconds != 0 || len(parts) == 0 {
		sign, nanos := "", v.Nanoseconds
		if nanos < 0 {
			sign, nanos = "-", -nanos
		}
		seconds := nanos / 1e9
		text := fmt.Sprintf("%s%02d:%02d:%02d", sign, seconds/3600, seconds/60%60, seconds%60)
		if rest := nanos % 1e9; rest != 0 {
			text += strings.TrimRight(fmt.Sprintf(".%09d", rest), "0")
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// blobText shows printable bytes as they are and others as \xNN.
func blobText(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		if c >= ' ' && c < 0x7f && c != '\\' {
			s.WriteByte(c)
		} else {
			fmt.Fprintf(&s, "\\x%02X", c)
		}
	}
	return s.String()
}

// visible replaces the control characters of a text, which would spoil a table
// or the terminal, by escapes.
func visible(s string) string {
	if strings.IndexFunc(s, isControl) < 0 {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case isControl(r):
			fmt.Fprintf(&out, `\x%02X`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }

func numeric(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}
