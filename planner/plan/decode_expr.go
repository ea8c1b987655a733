package plan

import "math"

// scope is what an expression's references may name.
type scope struct {
	d        *decoder
	bindings []binding
	columns  int // how many columns there are
	lambda   int // > 0: inside a lambda with this many parameters; references count them from the last
}

func (s scope) exprs(list []any) []Expr {
	out := make([]Expr, len(list))
	for i, v := range list {
		out[i] = s.expr(v)
	}
	return out
}

// open starts an expression: its class, and its kind within the class.
func open(v any) (o *object, class, kind string) {
	o = asObject(v, "an expression")
	class, kind = o.text("expression_class"), o.text("type")
	o.what = class
	if class != "BOUND_CAST" {
		o.ignore("query_location")
	}
	return o, class, kind
}

func (s scope) expr(v any) Expr {
	o, class, kind := open(v)
	if class == "BOUND_FUNCTION" {
		return s.function(o)
	}
	o.ignore("alias")
	e := s.other(o, class, kind)
	o.done()
	return e
}

func (s scope) other(o *object, class, kind string) Expr {
	switch class {
	case "BOUND_REF":
		return s.ref(o)
	case "BOUND_COLUMN_REF":
		b := asBinding(o.take("binding"))
		if depth := o.number("depth"); depth != 0 {
			fail(unsupported("a reference to an outer query"))
		}
		for i, have := range s.bindings {
			if have == b {
				return &Ref{i, decodeType(o.take("return_type"))}
			}
		}
		fail(malformed("no column (%d, %d) in sight", b.table, b.column))
	case "BOUND_CONSTANT":
		return &Const{decodeValue(o.take("value"))}
	case "BOUND_CAST":
		c := &Cast{Child: s.expr(o.take("child")), T: decodeType(o.take("return_type")), Try: o.flag("try_cast")}
		if _, ok := o.fields["query_location"]; ok {
			if at := o.number("query_location"); at < math.MaxInt32 {
				c.At = int(at) + 1
			}
		}
		return c
	case "BOUND_COMPARISON":
		return &Compare{compareOp(kind), s.expr(o.take("left")), s.expr(o.take("right"))}
	case "BOUND_BETWEEN":
		return &Between{s.expr(o.take("input")), s.expr(o.take("lower")), s.expr(o.take("upper")),
			o.flag("lower_inclusive"), o.flag("upper_inclusive")}
	case "BOUND_CONJUNCTION":
		if kind != "CONJUNCTION_AND" && kind != "CONJUNCTION_OR" {
			fail(unsupported("conjunction %s", kind))
		}
		return &Conj{kind == "CONJUNCTION_OR", s.exprs(o.list("children"))}
	case "BOUND_CASE":
		c := &Case{T: decodeType(o.take("return_type")), Else: s.expr(o.take("else_expr"))}
		for _, check := range o.list("case_checks") {
			check := asObject(check, "a case")
			c.Checks = append(c.Checks, CaseCheck{s.expr(check.take("when_expr")), s.expr(check.take("then_expr"))})
			check.done()
		}
		return c
	case "BOUND_OPERATOR":
		op, ok := operators[kind]
		if !ok {
			fail(unsupported("operator %s", kind))
		}
		parts := s.exprs(o.list("children"))
		if len(parts) == 0 {
			fail(malformed("operator %s without arguments", kind))
		}
		return &Operator{op, parts, decodeType(o.take("return_type"))}
	}
	fail(unsupported("expression class %s", class))
	return nil
}

var operators = map[string]OperatorKind{
	"OPERATOR_NOT": Not, "OPERATOR_IS_NULL": IsNull, "OPERATOR_IS_NOT_NULL": IsNotNull, "COMPARE_IN": In,
	"COMPARE_NOT_IN": NotIn, "OPERATOR_COALESCE": Coalesce, "OPERATOR_TRY": Try,
}

func (s scope) ref(o *object) Expr {
	r := &Ref{o.integer("index"), decodeType(o.take("return_type"))}
	if s.columns >= 0 && (r.Index < 0 || r.Index >= s.columns) {
		fail(malformed("a reference to column %d of %d", r.Index, s.columns))
	}
	if r.Index < s.lambda {
		r.Index = s.lambda - 1 - r.Index
	}
	return r
}

func (s scope) orders(list []any) []Order {
	var out []Order
	for _, v := range list {
		o := asObject(v, "a sort key")
		k := Order{Expr: s.expr(o.take("expression"))}
		switch dir := o.text("type"); dir {
		case "ASCENDING":
		case "DESCENDING":
			k.Desc = true
		default:
			fail(unsupported("sort order %s", dir))
		}
		switch nulls := o.text("null_order"); nulls {
		case "NULLS FIRST":
			k.NullsFirst = true
		case "NULLS LAST":
		default:
			fail(unsupported("null order %s", nulls))
		}
		o.done()
		out = append(out, k)
	}
	return out
}

// orderModifier reads {"orders": [...]}.
func (s scope) orderModifier(v any) []Order {
	o := asObject(v, "an ORDER BY")
	o.ignore("type")
	orders := s.orders(o.list("orders"))
	o.done()
	return orders
}

// unnested reads the list of an UNNEST column.
func (s scope) unnested(v any) Expr {
	o, class, _ := open(v)
	if class != "BOUND_UNNEST" {
		fail(unsupported("%s in UNNEST", class))
	}
	e := s.expr(o.take("child"))
	o.ignore("alias", "return_type")
	o.done()
	return e
}
