package plan

import (
	"encoding/json"
	"strconv"
)

func decodeValue(v any) Value {
	o := asObject(v, "a value")
	out := Value{Type: decodeType(o.take("type")), Null: o.flag("is_null")}
	if out.Null {
		o.ignore("value")
	} else {
		out.fill(o.take("value"))
	}
	o.done()
	return out
}

// fill reads the value of a type that is known.
func (v *Value) fill(x any) {
	switch id := v.Type.ID; id {
	case "BOOLEAN":
		b, ok := x.(bool)
		if !ok {
			fail(malformed("a BOOLEAN is %v", x))
		}
		v.Text = strconv.FormatBool(b)
	case "FLOAT", "DOUBLE":
		v.Text = floatText(x)
	case "VARCHAR", "BLOB":
		s, ok := x.(string)
		if !ok {
			fail(malformed("a %s is %v", id, x))
		}
		v.Text = s
	case "INTERVAL":
		o := asObject(x, "an INTERVAL")
		v.Interval = Interval{int64Of(o, "months"), int64Of(o, "days"), int64Of(o, "micros")}
		o.done()
	case "LIST", "ARRAY", "STRUCT", "MAP":
		v.Children = decodeChildren(x)
	case "UNION":
		parts := decodeChildren(x)
		if len(parts) != len(v.Type.Fields)+1 {
			fail(unsupported("a UNION constant of %d parts", len(parts)))
		}
		tag, err := strconv.Atoi(parts[0].Text)
		if err != nil || tag < 0 || tag >= len(v.Type.Fields) {
			fail(malformed("a UNION's tag is %q", parts[0].Text))
		}
		v.Member, v.Children = tag, parts[tag+1:tag+2]
	case "BIT", "BIGNUM", "VARIANT", "LAMBDA", "NULL":
		fail(unsupported("a constant of type %s", id))
	default: // what is a whole number inside
		v.Text = asWide(x, "a "+id).String()
	}
}

func decodeChildren(x any) []Value {
	o := asObject(x, "a nested value")
	var out []Value
	for _, c := range o.list("children") {
		out = append(out, decodeValue(c))
	}
	o.done()
	return out
}

// floatText is a number that DuckDB wrote in the shortest form that reads back to the same bits.
func floatText(x any) string {
	switch x := x.(type) {
	case json.Number:
		return x.String()
	case string:
		switch x {
		case "NaN", "-NaN":
			return "nan"
		case "Infinity":
			return "inf"
		case "-Infinity":
			return "-inf"
		}
	}
	fail(malformed("a floating point number is %v", x))
	return ""
}

func int64Of(o *object, key string) int64 {
	n := asWide(o.take(key), key+" of "+o.what)
	if !n.IsInt64() {
		fail(malformed("%s of %s is too large", key, o.what))
	}
	return n.Int64()
}
