package dist

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// travelType is the type that a column of type t has in an exchange: its own for most. An ENUM travels as its text. A
// UNION travels as a STRUCT of its tag and its members, a STRUCT whose fields have no names as one whose fields
// have, and what is nothing but NULL as a number. Behind the exchange they are again what they were.
func travelType(t plan.Type) plan.Type {
	switch {
	case t.ID == "ENUM":
		return plan.Varchar
	case t.ID == "NULL":
		return plan.Integer
	case t.ID == "UNION":
		fields := []plan.Field{{Name: unionTag, Type: plan.Varchar}}
		for i, f := range t.Fields {
			fields = append(fields, plan.Field{Name: strconv.Itoa(i), Type: travelType(f.Type)})
		}
		return plan.StructOf(fields...)
	case t.Fields != nil:
		fields := make([]plan.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = plan.Field{Name: f.Name, Type: travelType(f.Type)}
			if t.Unnamed() {
				fields[i].Name = strconv.Itoa(i)
			}
		}
		t.Fields = fields
	case t.Child != nil:
		c := travelType(*t.Child)
		t.Child = &c
	}
	return t
}

// unionTag is the field of a travelling UNION that names the member which is set.
const unionTag = "tag"

// odd reports whether a cast does not make a value of type t from what travels: there is a UNION in it, a STRUCT
// whose fields have no names, or what is nothing but NULL.
func odd(t plan.Type) bool {
	return within(t, func(t plan.Type) bool { return t.ID == "UNION" || t.ID == "NULL" || t.Unnamed() })
}

// leaving is the text of x, a value of type t, as it travels.
func leaving(x string, t plan.Type) string { return convert(x, t, 0, (*converter).leaves) }

// arriving is the text of x, which has travelled, as a value of type t.
func arriving(x string, t plan.Type) string { return convert(x, t, 0, (*converter).arrives) }

// converter writes a conversion of a value.
type converter struct {
	depth int // of lambdas
	part  func(x string, t plan.Type) string
}

func convert(x string, t plan.Type, depth int, whole func(*converter, string, plan.Type) string) string {
	c := &converter{depth: depth}
	c.part = func(x string, t plan.Type) string { return convert(x, t, c.depth, whole) }
	return whole(c, x, t)
}

func (c *converter) leaves(x string, t plan.Type) string {
	to := travelType(t)
	switch {
	case to.Equal(t):
		return x
	case !odd(t) || t.ID == "NULL":
		return cast(x, to)
	case t.ID == "UNION":
		parts := []string{plan.Ident(unionTag) + " := CAST(union_tag(" + x + ") AS VARCHAR)"}
		for i, f := range t.Fields {
			parts = append(parts, plan.Ident(strconv.Itoa(i))+" := "+c.part("union_extract("+x+", "+plan.Literal(f.Name)+")", f.Type))
		}
		return unlessNull(x, "struct_pack("+strings.Join(parts, ", ")+")")
	case t.ID == "STRUCT":
		var parts []string
		for i, f := range t.Fields {
			at := "struct_extract(" + x + ", " + plan.Literal(f.Name) + ")"
			if t.Unnamed() {
				at = fmt.Sprintf("struct_extract_at(%s, %d)", x, i+1)
			}
			parts = append(parts, plan.Ident(to.Fields[i].Name)+" := "+c.part(at, f.Type))
		}
		return unlessNull(x, "struct_pack("+strings.Join(parts, ", ")+")")
	}
	return cast(c.elements(x, t), to)
}

func (c *converter) arrives(x string, t plan.Type) string {
	to := travelType(t)
	switch {
	case to.Equal(t):
		return x
	case t.ID == "NULL":
		return "NULL"
	case !odd(t):
		return cast(x, t)
	case t.ID == "UNION":
		text := "CASE struct_extract(" + x + ", " + plan.Literal(unionTag) + ")"
		for i, f := range t.Fields {
			member := c.part("struct_extract("+x+", "+plan.Literal(strconv.Itoa(i))+")", f.Type)
			text += " WHEN " + plan.Literal(f.Name) + " THEN CAST(union_value(" + plan.Ident(f.Name) + " := " + member + ") AS " + t.String() + ")"
		}
		return text + " END"
	case t.ID == "STRUCT":
		var parts []string
		for i, f := range t.Fields {
			part := c.part("struct_extract("+x+", "+plan.Literal(to.Fields[i].Name)+")", f.Type)
			if !t.Unnamed() {
				part = plan.Ident(f.Name) + " := " + part
			}
			parts = append(parts, part)
		}
		if t.Unnamed() {
			return unlessNull(x, "row("+strings.Join(parts, ", ")+")")
		}
		return unlessNull(x, "struct_pack("+strings.Join(parts, ", ")+")")
	case t.ID == "ARRAY" && t.Spellable():
		return cast(c.elements(x, t), t)
	}
	return c.elements(x, t)
}

// elements converts what is in a LIST, ARRAY or MAP. Of an ARRAY it makes a LIST.
func (c *converter) elements(x string, t plan.Type) string {
	name := "e" + strconv.Itoa(c.depth)
	c.depth++
	each := func(list string, t plan.Type) string {
		return "list_transform(" + list + ", LAMBDA " + name + ": " + c.part(name, t) + ")"
	}
	if t.ID == "MAP" {
		return unlessNull(x, "map("+each("map_keys("+x+")", t.Key())+", "+each("map_values("+x+")", t.Value())+")")
	}
	return each(x, *t.Child)
}

func cast(x string, t plan.Type) string { return "CAST(" + x + " AS " + t.String() + ")" }

func unlessNull(x, value string) string {
	return "CASE WHEN " + x + " IS NULL THEN NULL ELSE " + value + " END"
}

// Travels reports the first type of an edge that no exchange can carry, as a *plan.UnsupportedError.
func (p *Plan) Travels() error {
	for _, s := range p.Stages {
		for _, e := range s.Outputs {
			if e.Native() {
				continue
			}
			for _, k := range e.Keep {
				t := travelType(e.Types[k])
				_, ok := kernel.ExchangeType(t.String())
				if !ok || !t.Spellable() || unspelled(e.Types[k]) {
					return &plan.UnsupportedError{What: "a column of type " + e.Types[k].String() + " in an exchange"}
				}
			}
		}
	}
	return nil
}

// unspelled reports an ARRAY or a UNION of what has no spelling, which nothing makes again of what has travelled, and
// names that the text of a conversion would take for its argument.
func unspelled(t plan.Type) bool {
	return within(t, func(t plan.Type) bool { return (t.ID == "ARRAY" || t.ID == "UNION") && !t.Spellable() }) ||
		odd(t) && within(t, func(t plan.Type) bool {
			return slices.ContainsFunc(t.Fields, func(f plan.Field) bool { return strings.Contains(f.Name, "{") })
		})
}

// within reports whether f holds for a type or one in it.
func within(t plan.Type, f func(plan.Type) bool) bool {
	return f(t) || t.Child != nil && within(*t.Child, f) ||
		slices.ContainsFunc(t.Fields, func(field plan.Field) bool { return within(field.Type, f) })
}

// Native reports whether an edge carries its columns in DuckDB's own types: that of one task to the client, if they
// are such that nothing but DuckDB could make them of what travels.
func (e *Edge) Native() bool {
	return e.To == nil && e.From.Tasks == 1 && slices.ContainsFunc(e.Types, odd)
}

// TravelTypes are the types of the columns that an edge carries, as they travel; nil if it is Native.
func (e *Edge) TravelTypes() []string {
	if e.Native() {
		return nil
	}
	out := make([]string, len(e.Keep))
	for i, k := range e.Keep {
		out[i] = travelType(e.Types[k]).String()
	}
	return out
}
