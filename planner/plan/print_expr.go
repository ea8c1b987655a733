package plan

import (
	"regexp"
	"strconv"
	"strings"
)

// expr gives an expression whose input columns have these texts. Everything that is not a name or a call is in parentheses.
func (p *Printer) expr(e Expr, cols []string) string {
	switch e := e.(type) {
	case *Ref:
		if e.Index >= len(cols) {
			fail(malformed("a reference to column %d of %d", e.Index, len(cols)))
		}
		return cols[e.Index]
	case *Const:
		return literal(e.Value)
	case *Cast:
		text := origin(e.At) + p.expr(e.Child, cols)
		if e.Try && e.T.Spellable() {
			return "TRY_CAST(" + text + " AS " + e.T.String() + ")"
		}
		return castText(text, e.T)
	case *Compare:
		return compareText(e.Op, p.expr(e.Left, cols), p.expr(e.Right, cols))
	case *Between:
		return p.between(e, cols)
	case *Conj:
		word := " AND "
		if e.Or {
			word = " OR "
		}
		return "(" + strings.Join(p.exprs(e.Parts, cols), word) + ")"
	case *Case:
		var b strings.Builder
		b.WriteString("CASE")
		for _, c := range e.Checks {
			b.WriteString(" WHEN " + p.expr(c.When, cols) + " THEN " + p.expr(c.Then, cols))
		}
		return b.String() + " ELSE " + p.expr(e.Else, cols) + " END"
	case *Operator:
		return p.operator(e, cols)
	case *Func:
		return p.function(e, cols)
	case *Raw:
		return "(" + p.raw(e, cols) + ")"
	case *Agg:
		return p.agg(e, cols)
	case *WindowExpr:
		return p.window(e, cols)
	}
	fail(unsupported("printing %T", e))
	return ""
}

// castText casts, unless the type cannot be named: then the binder adds the cast by itself.
func castText(text string, t Type) string {
	if !t.Spellable() {
		return text
	}
	return "CAST(" + text + " AS " + t.String() + ")"
}

func compareText(op CompareOp, left, right string) string {
	word := [...]string{Eq: "=", Ne: "<>", Lt: "<", Le: "<=", Gt: ">", Ge: ">=",
		NotDistinctFrom: "IS NOT DISTINCT FROM", DistinctFrom: "IS DISTINCT FROM"}[op]
	return "(" + left + " " + word + " " + right + ")"
}

func (p *Printer) between(e *Between, cols []string) string {
	input, lower, upper := p.expr(e.Input, cols), p.expr(e.Lower, cols), p.expr(e.Upper, cols)
	if e.LowerInclusive && e.UpperInclusive {
		return "(" + input + " BETWEEN " + lower + " AND " + upper + ")"
	}
	if IsVolatile(e.Input) {
		fail(unsupported("an exclusive BETWEEN of a volatile value"))
	}
	above, below := Gt, Lt
	if e.LowerInclusive {
		above = Ge
	}
	if e.UpperInclusive {
		below = Le
	}
	return "(" + compareText(above, input, lower) + " AND " + compareText(below, input, upper) + ")"
}

func (p *Printer) operator(e *Operator, cols []string) string {
	parts := p.exprs(e.Parts, cols)
	switch e.Kind {
	case Not:
		return "(NOT " + parts[0] + ")"
	case IsNull:
		return "(" + parts[0] + " IS NULL)"
	case IsNotNull:
		return "(" + parts[0] + " IS NOT NULL)"
	case In:
		return "(" + parts[0] + " IN (" + strings.Join(parts[1:], ", ") + "))"
	case NotIn:
		return "(" + parts[0] + " NOT IN (" + strings.Join(parts[1:], ", ") + "))"
	case Coalesce:
		return "COALESCE(" + strings.Join(parts, ", ") + ")"
	case Try:
		return "TRY(" + parts[0] + ")"
	}
	fail(unsupported("operator %d", e.Kind))
	return ""
}

// infix are the functions that are printed as operators.
var infix = map[string]bool{"+": true, "-": true, "*": true, "/": true, "//": true, "%": true, "||": true}

func (p *Printer) function(e *Func, cols []string) string {
	if text, ok := p.decimal(e, cols); ok {
		return text
	}
	args := p.exprs(e.Params, cols)
	switch {
	case infix[e.Name] && len(args) == 2:
		return "(" + args[0] + " " + e.Name + " " + args[1] + ")"
	case (e.Name == "array_slice" || e.Name == "list_slice") && len(args) >= 3:
		if text, ok := slice(e, args); ok {
			return text
		}
	case e.Lambda != nil:
		l := p.lambda(e.Lambda, cols)
		args = append([]string{args[0], l}, args[1:]...)
	}
	for i, name := range e.Names {
		if name != "" {
			args[i] = Ident(name) + " := " + args[i]
		}
	}
	return Ident(e.Name) + "(" + strings.Join(args, ", ") + ")"
}

// slice prints x[a:b:s] where a bound is open, which the plan shows as an empty list and a call cannot say.
func slice(e *Func, args []string) (string, bool) {
	open := func(i int) bool {
		c, ok := e.Params[i].(*Const)
		return ok && c.Value.Type.ID == "LIST" && !c.Value.Null && len(c.Value.Children) == 0
	}
	if !open(1) && !open(2) {
		return "", false
	}
	lower, upper := args[1], args[2]
	if open(1) {
		lower = ""
	}
	if open(2) {
		upper = ""
	}
	text := "(" + args[0] + ")[" + lower + ":" + upper
	if len(args) > 3 {
		if upper == "" {
			text += "-"
		}
		text += ":" + args[3]
	}
	return text + "]", true
}

func (p *Printer) lambda(l *Lambda, cols []string) string {
	var inner, params []string
	for range l.Params {
		name := "p_" + p.Alias()
		params = append(params, name)
	}
	inner = append(append(inner, params...), p.exprs(l.Captures, cols)...)
	return "LAMBDA " + strings.Join(params, ", ") + ": " + p.expr(l.Body, inner)
}

var placeholder = regexp.MustCompile(`\{(\d+)\}`)

func (p *Printer) raw(e *Raw, cols []string) string {
	args := p.exprs(e.Params, cols)
	return placeholder.ReplaceAllStringFunc(e.SQL, func(m string) string {
		i, err := strconv.Atoi(m[1 : len(m)-1])
		if err != nil || i >= len(args) {
			fail(malformed("%s in a text with %d arguments", m, len(args)))
		}
		return args[i]
	})
}

func (p *Printer) agg(e *Agg, cols []string) string {
	return p.call(e.Name, e.Distinct, e.Params, e.Order, false, e.Filter, cols)
}

// call is an aggregate's or a window function's, up to OVER.
func (p *Printer) call(name string, distinct bool, params []Expr, order []Order, ignoreNulls bool, filter Expr, cols []string) string {
	var b strings.Builder
	if name == "count_star" {
		b.WriteString("count(*")
	} else {
		b.WriteString(Ident(name) + "(")
		if distinct {
			b.WriteString("DISTINCT ")
		}
		b.WriteString(strings.Join(p.exprs(params, cols), ", "))
		if by := p.orderBy(order, cols); by != "" {
			b.WriteString(" " + by)
		}
		if ignoreNulls {
			b.WriteString(" IGNORE NULLS")
		}
	}
	b.WriteString(")")
	if filter != nil {
		b.WriteString(" FILTER (WHERE " + p.expr(filter, cols) + ")")
	}
	return b.String()
}

func (p *Printer) window(e *WindowExpr, cols []string) string {
	var over []string
	if len(e.Partitions) > 0 {
		over = append(over, "PARTITION BY "+strings.Join(p.exprs(e.Partitions, cols), ", "))
	}
	if by := p.orderBy(e.Order, cols); by != "" {
		over = append(over, by)
	}
	frame := e.Frame.Unit + " BETWEEN " + p.bound(e.Frame.Start, cols) + " AND " + p.bound(e.Frame.End, cols)
	if e.Frame.Exclude != "" {
		frame += " EXCLUDE " + e.Frame.Exclude
	}
	over = append(over, frame)
	return p.call(e.Name, e.Distinct, e.Params, e.ArgOrder, e.IgnoreNulls, e.Filter, cols) + " OVER (" + strings.Join(over, " ") + ")"
}

func (p *Printer) bound(b Bound, cols []string) string {
	switch b.Kind {
	case UnboundedPreceding:
		return "UNBOUNDED PRECEDING"
	case CurrentRow:
		return "CURRENT ROW"
	case UnboundedFollowing:
		return "UNBOUNDED FOLLOWING"
	case Preceding:
		return p.expr(b.Offset, cols) + " PRECEDING"
	}
	return p.expr(b.Offset, cols) + " FOLLOWING"
}
