package plan

import (
	"math/big"
	"strconv"
)

// Value is a constant.
type Value struct {
	Type Type
	Null bool
	// Text is the scalar in DuckDB's physical form: whole numbers and a DECIMAL's unscaled number in decimal digits,
	// DATE in days and TIMESTAMP in its unit since 1970, TIME in micros, BOOLEAN "true" or "false", VARCHAR the text
	// itself, BLOB with \xNN escapes, ENUM the position, UUID and TIMETZ as an integer.
	Text     string
	Children []Value  // LIST, ARRAY, STRUCT: the parts; MAP: structs of key and value; UNION: the one member that is set
	Member   int      // UNION: which member
	Interval Interval // INTERVAL
}

// Interval is DuckDB's interval: the three parts are independent.
type Interval struct{ Months, Days, Micros int64 }

// NullOf is NULL of a type.
func NullOf(t Type) Value { return Value{Type: t, Null: true} }

// Int is a whole number of an integer type.
func Int(t Type, n int64) Value { return Value{Type: t, Text: strconv.FormatInt(n, 10)} }

// Bool is a truth value.
func Bool(b bool) Value { return Value{Type: Boolean, Text: strconv.FormatBool(b)} }

// Text is a VARCHAR.
func Text(s string) Value { return Value{Type: Varchar, Text: s} }

// number gives the whole number in Text.
func (v Value) number() (*big.Int, bool) { return new(big.Int).SetString(v.Text, 10) }
