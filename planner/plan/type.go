package plan

import (
	"strconv"
	"strings"
)

// Type is DuckDB's logical type. Types are values; compare them with Equal.
type Type struct {
	ID     string   // DuckDB's name: "BIGINT", "DECIMAL", "LIST", "STRUCT", ...
	Width  int      // DECIMAL: digits in all
	Scale  int      // DECIMAL: digits after the point
	Alias  string   // a name over the same representation: "JSON" over VARCHAR
	Child  *Type    // LIST, ARRAY: the element; MAP: a STRUCT of key and value
	Size   int      // ARRAY: elements
	Fields []Field  // STRUCT, UNION (members only, without DuckDB's tag)
	Labels []string // ENUM, in order
}

// Field is a named type: a struct's field, a union's member or a source's column.
type Field struct {
	Name string
	Type Type
}

// Types without parameters.
var (
	Boolean   = Type{ID: "BOOLEAN"}
	TinyInt   = Type{ID: "TINYINT"}
	SmallInt  = Type{ID: "SMALLINT"}
	Integer   = Type{ID: "INTEGER"}
	BigInt    = Type{ID: "BIGINT"}
	HugeInt   = Type{ID: "HUGEINT"}
	UTinyInt  = Type{ID: "UTINYINT"}
	USmallInt = Type{ID: "USMALLINT"}
	UInteger  = Type{ID: "UINTEGER"}
	UBigInt   = Type{ID: "UBIGINT"}
	UHugeInt  = Type{ID: "UHUGEINT"}
	Float     = Type{ID: "FLOAT"}
	Double    = Type{ID: "DOUBLE"}
	Varchar   = Type{ID: "VARCHAR"}
	Blob      = Type{ID: "BLOB"}
	Date      = Type{ID: "DATE"}
	Null      = Type{ID: "NULL"}
)

// Decimal is DECIMAL(width, scale).
func Decimal(width, scale int) Type { return Type{ID: "DECIMAL", Width: width, Scale: scale} }

// ListOf is a list of t.
func ListOf(t Type) Type { return Type{ID: "LIST", Child: &t} }

// StructOf is a struct of the fields.
func StructOf(fields ...Field) Type { return Type{ID: "STRUCT", Fields: fields} }

// Equal reports whether the two are the same type.
func (t Type) Equal(u Type) bool {
	return t.ID == u.ID && t.Width == u.Width && t.Scale == u.Scale && t.String() == u.String()
}

// String is the SQL spelling. When Spellable is false the text is for a reader only.
func (t Type) String() string {
	if t.Alias != "" {
		return t.Alias
	}
	switch t.ID {
	case "DECIMAL":
		return "DECIMAL(" + strconv.Itoa(t.Width) + "," + strconv.Itoa(t.Scale) + ")"
	case "LIST":
		return t.Child.String() + "[]"
	case "ARRAY":
		return t.Child.String() + "[" + strconv.Itoa(t.Size) + "]"
	case "MAP":
		return "MAP(" + t.Key().String() + ", " + t.Value().String() + ")"
	case "STRUCT", "UNION":
		var b strings.Builder
		b.WriteString(t.ID + "(")
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			if f.Name != "" {
				b.WriteString(Ident(f.Name) + " ")
			}
			b.WriteString(f.Type.String())
		}
		return b.String() + ")"
	case "ENUM":
		labels := make([]string, len(t.Labels))
		for i, l := range t.Labels {
			labels[i] = Literal(l)
		}
		return "ENUM(" + strings.Join(labels, ", ") + ")"
	case "NULL":
		return `"NULL"`
	}
	return t.ID
}

// Key and Value are the parts of a MAP.
func (t Type) Key() Type   { return t.Child.Fields[0].Type }
func (t Type) Value() Type { return t.Child.Fields[1].Type }

// Unnamed reports a STRUCT whose fields have no names, as row() makes it.
func (t Type) Unnamed() bool { return t.ID == "STRUCT" && len(t.Fields) > 0 && t.Fields[0].Name == "" }

// Spellable reports whether SQL can name the type: a struct without field names has no spelling.
func (t Type) Spellable() bool {
	switch t.ID {
	case "AGGREGATE_STATE", "LAMBDA", "INVALID", "ANY", "UNKNOWN", "TABLE", "POINTER", "VALIDITY", "VARIANT",
		"STRING_LITERAL", "INTEGER_LITERAL", "TEMPLATE", "USER", "TYPE":
		return false
	case "STRUCT", "UNION":
		for _, f := range t.Fields {
			if f.Name == "" || !f.Type.Spellable() {
				return false
			}
		}
		return len(t.Fields) > 0
	case "LIST", "ARRAY", "MAP":
		return t.Child.Spellable()
	}
	return true
}

// IsInteger reports a whole-number type of any width.
func (t Type) IsInteger() bool { return integerDigits[t.ID] > 0 }

// integerDigits is the width of the decimal that DuckDB makes of an integer in decimal arithmetic.
var integerDigits = map[string]int{
	"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 38,
	"UTINYINT": 3, "USMALLINT": 5, "UINTEGER": 10, "UBIGINT": 20, "UHUGEINT": 38,
}

// Ident quotes a name for SQL.
func Ident(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Literal quotes text for SQL. DuckDB's parser ends a text at a zero byte, so those are joined in.
func Literal(text string) string {
	q := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	if strings.Contains(q, "\x00") {
		return "(" + strings.ReplaceAll(q, "\x00", "' || chr(0) || '") + ")"
	}
	return q
}
