package plan

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
)

// literal gives a constant with its exact type, so that overloads resolve as they did and the optimizer folds it again.
func literal(v Value) string {
	if v.Null {
		if v.Type.ID == "NULL" || !v.Type.Spellable() {
			return "NULL"
		}
		return "CAST(NULL AS " + v.Type.String() + ")"
	}
	quoted := func(text string) string { return castText(Literal(text), v.Type) }
	switch v.Type.ID {
	case "BOOLEAN":
		return strings.ToUpper(v.Text)
	case "DECIMAL":
		return quoted(point(v.Text, v.Type.Scale))
	case "DATE":
		return dateLiteral(v)
	case "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_S":
		return timestampLiteral(v)
	case "TIME":
		return quoted(clock(v.int64()*1000, 6))
	case "TIME_NS":
		return quoted(clock(v.int64(), 9))
	case "TIME WITH TIME ZONE":
		return quoted(zonedClock(v.int64()))
	case "INTERVAL":
		i := v.Interval
		return quoted(fmt.Sprintf("%d months %d days %d microseconds", i.Months, i.Days, i.Micros))
	case "UUID":
		return quoted(uuidText(v))
	case "ENUM":
		n := v.int64()
		if n < 0 || n >= int64(len(v.Type.Labels)) {
			fail(malformed("label %d of %s", n, v.Type))
		}
		return quoted(v.Type.Labels[n])
	case "LIST", "ARRAY", "STRUCT", "MAP", "UNION":
		return castText(nested(v), v.Type)
	}
	return quoted(v.Text)
}

func (v Value) int64() int64 {
	n, ok := v.number()
	if !ok || !n.IsInt64() {
		fail(malformed("%q as a %s", v.Text, v.Type))
	}
	return n.Int64()
}

// point puts the decimal point into an unscaled number.
func point(digits string, scale int) string {
	if scale == 0 {
		return digits
	}
	digits, negative := strings.CutPrefix(digits, "-")
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	text := digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
	if negative {
		return "-" + text
	}
	return text
}

func dateLiteral(v Value) string {
	n := v.int64()
	switch {
	case n >= math.MaxInt32:
		return "CAST('infinity' AS DATE)"
	case n <= -math.MaxInt32:
		return "CAST('-infinity' AS DATE)"
	}
	if day := time.Unix(0, 0).UTC().AddDate(0, 0, int(n)); day.Year() >= 1 && day.Year() <= 9999 {
		return "CAST('" + day.Format(time.DateOnly) + "' AS DATE)"
	}
	return "CAST(DATE '1970-01-01' + CAST('" + v.Text + "' AS INTEGER) AS DATE)"
}

func timestampLiteral(v Value) string {
	n := v.int64()
	switch n {
	case math.MaxInt64:
		return castText("'infinity'", v.Type)
	case -math.MaxInt64:
		return castText("'-infinity'", v.Type)
	}
	number := "CAST('" + v.Text + "' AS BIGINT)"
	switch v.Type.ID {
	case "TIMESTAMP":
		return "make_timestamp(" + number + ")"
	case "TIMESTAMP WITH TIME ZONE":
		return "make_timestamptz(" + number + ")"
	case "TIMESTAMP_NS":
		return "make_timestamp_ns(" + number + ")"
	case "TIMESTAMP_MS":
		return "CAST(make_timestamp_ms(" + number + ") AS TIMESTAMP_MS)"
	}
	return "CAST(make_timestamp(" + number + " * 1000000) AS TIMESTAMP_S)"
}

// clock writes nanoseconds since midnight. 24:00:00 is a time.
func clock(nanos int64, digits int) string {
	s := nanos / 1e9
	fraction := fmt.Sprintf("%09d", nanos%1e9)[:digits]
	return fmt.Sprintf("%02d:%02d:%02d.%s", s/3600, s/60%60, s%60, fraction)
}

// zonedClock writes a time with its offset, which DuckDB keeps in one number so that later moments sort higher.
func zonedClock(bits int64) string {
	const maxOffset = 16*60*60 - 1
	offset := maxOffset - bits&(1<<24-1)
	sign := "+"
	if offset < 0 {
		sign, offset = "-", -offset
	}
	return clock(bits>>24*1000, 6) + fmt.Sprintf("%s%02d:%02d:%02d", sign, offset/3600, offset/60%60, offset%60)
}

// uuidText writes the hex form; DuckDB flips the top bit so that they sort as signed numbers.
func uuidText(v Value) string {
	n, ok := v.number()
	if !ok {
		fail(malformed("%q as a UUID", v.Text))
	}
	n.Add(n, new(big.Int).Lsh(big.NewInt(1), 127))
	hex := fmt.Sprintf("%032x", n)
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:]
}

// nested writes the constructor of a nested value.
func nested(v Value) string {
	parts := make([]string, len(v.Children))
	for i, c := range v.Children {
		parts[i] = literal(c)
	}
	switch v.Type.ID {
	case "STRUCT":
		if len(parts) != len(v.Type.Fields) {
			fail(malformed("%d values for %s", len(parts), v.Type))
		}
		if len(parts) > 0 && v.Type.Fields[0].Name == "" {
			return "row(" + strings.Join(parts, ", ") + ")"
		}
		for i, f := range v.Type.Fields {
			parts[i] = Ident(f.Name) + " := " + parts[i]
		}
		return "struct_pack(" + strings.Join(parts, ", ") + ")"
	case "MAP":
		var keys, values []string
		for _, entry := range v.Children {
			if len(entry.Children) != 2 {
				fail(malformed("a MAP entry of %d parts", len(entry.Children)))
			}
			keys, values = append(keys, literal(entry.Children[0])), append(values, literal(entry.Children[1]))
		}
		return "map([" + strings.Join(keys, ", ") + "], [" + strings.Join(values, ", ") + "])"
	case "UNION":
		return "union_value(" + Ident(v.Type.Fields[v.Member].Name) + " := " + parts[0] + ")"
	case "ARRAY":
		return "array_value(" + strings.Join(parts, ", ") + ")"
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
