package plan

import "strings"

// The plan holds the operands of decimal arithmetic already widened to the result's width. Binding them again as they
// are would widen once more: DECIMAL(26,2) * DECIMAL(26,0) becomes DECIMAL(38,2) where the plan says DECIMAL(26,2), and
// wide decimals are slow. So each operand is tried without its cast, and the pair for which DuckDB's rule gives the
// plan's type is printed.

// operand is one way to write an operand.
type operand struct {
	text         string
	width, scale int
}

// decimal prints + - * % over decimals; ok is false for any other call.
func (p *Printer) decimal(e *Func, cols []string) (text string, ok bool) {
	if len(e.Params) != 2 || !strings.Contains("+-*%", e.Name) {
		return "", false
	}
	if e.Name == "%" && e.T.ID == "DOUBLE" && maybeDecimalModulo(e.Params[0], e.Params[1]) {
		fail(unsupported("%% over decimals that are too wide for it"))
	}
	if e.T.ID != "DECIMAL" {
		return "", false
	}
	left, right := p.operands(e.Params[0], cols), p.operands(e.Params[1], cols)
	for _, l := range left {
		for _, r := range right {
			if w, s := arithmetic(e.Name, l, r); w == e.T.Width && s == e.T.Scale {
				return "(" + l.text + " " + e.Name + " " + r.text + ")", true
			}
		}
	}
	return castText("("+p.expr(e.Params[0], cols)+" "+e.Name+" "+p.expr(e.Params[1], cols)+")", e.T), true
}

// operands are the ways to write an operand, the shortest first.
func (p *Printer) operands(e Expr, cols []string) []operand {
	var out []operand
	add := func(e Expr) {
		t := e.Type()
		if digits := integerDigits[t.ID]; digits > 0 {
			out = append(out, operand{p.expr(e, cols), digits, 0})
		} else if t.ID == "DECIMAL" {
			out = append(out, operand{p.expr(e, cols), t.Width, t.Scale})
		}
	}
	switch e := e.(type) {
	case *Cast:
		if !e.Try {
			add(e.Child)
		}
	case *Const:
		if v := e.Value; v.Type.ID == "DECIMAL" && !v.Null {
			digits := len(strings.TrimLeft(v.Text, "-0"))
			for w := max(digits, v.Type.Scale, 1); w < v.Type.Width; w++ {
				v.Type = Decimal(w, v.Type.Scale)
				add(&Const{v})
				v = e.Value
			}
		}
	}
	add(e)
	return out
}

// arithmetic is DuckDB's rule for the type of a result.
func arithmetic(op string, l, r operand) (width, scale int) {
	const fits64, fits128 = 18, 38
	narrow := l.width <= fits64 && r.width <= fits64
	if op == "*" {
		width, scale = l.width+r.width, l.scale+r.scale
		if width > fits64 && narrow && scale < fits64 {
			width = fits64
		}
		return min(width, fits128), scale
	}
	scale = max(l.scale, r.scale)
	width = max(scale+max(l.width-l.scale, r.width-r.scale), l.width, r.width)
	if op != "%" {
		width++
	}
	if width > fits64 && narrow {
		width = fits64
	}
	return min(width, fits128), scale
}

// maybeDecimalModulo reports whether l % r over DOUBLE may be DuckDB's answer to decimals whose result would have more
// than 38 digits. It differs from the % of doubles for a divisor of 0, NULL and not NaN, and the plan does not tell them apart.
func maybeDecimalModulo(l, r Expr) bool {
	exact := func(e Expr) (o operand, cast bool) {
		c, ok := e.(*Cast)
		if !ok || c.Try {
			return o, false
		}
		t := c.Child.Type()
		if digits := integerDigits[t.ID]; digits > 0 {
			return operand{width: digits}, true
		}
		return operand{width: t.Width, scale: t.Scale}, t.ID == "DECIMAL"
	}
	constant := func(e Expr) bool {
		_, ok := e.(*Const)
		return ok
	}
	a, leftCast := exact(l)
	b, rightCast := exact(r)
	switch {
	case leftCast && rightCast:
		return max(a.scale, b.scale)+max(a.width-a.scale, b.width-b.scale) > 38
	case leftCast && constant(r), rightCast && constant(l): // whose own width is lost
		return a.width > 18 || b.width > 18
	}
	return false
}
