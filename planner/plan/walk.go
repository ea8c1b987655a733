package plan

// Walk calls f for the node and everything below it, parents first; where f gives false it does not go deeper.
func Walk(n Node, f func(Node) bool) {
	if !f(n) {
		return
	}
	for _, c := range n.Children() {
		Walk(c, f)
	}
}

// Rewrite rebuilds a tree from the leaves up: f gets each node with its children already rewritten.
func Rewrite(n Node, f func(Node) Node) Node {
	old := n.Children()
	children := make([]Node, len(old))
	changed := false
	for i, c := range old {
		children[i] = Rewrite(c, f)
		changed = changed || children[i] != c
	}
	if changed {
		n = n.WithChildren(children)
	}
	return f(n)
}

// WalkExpr calls f for the expression and its arguments, parents first; where f gives false it does not go deeper.
func WalkExpr(e Expr, f func(Expr) bool) {
	if !f(e) {
		return
	}
	for _, a := range e.Args() {
		WalkExpr(a, f)
	}
}

// MapExpr rebuilds an expression from the leaves up.
func MapExpr(e Expr, f func(Expr) Expr) Expr {
	old := e.Args()
	args := make([]Expr, len(old))
	changed := false
	for i, a := range old {
		args[i] = MapExpr(a, f)
		changed = changed || args[i] != a
	}
	if changed {
		e = e.WithArgs(args)
	}
	return f(e)
}

// MapRefs replaces every reference by what f gives for it.
func MapRefs(e Expr, f func(*Ref) Expr) Expr {
	return MapExpr(e, func(e Expr) Expr {
		if r, ok := e.(*Ref); ok {
			return f(r)
		}
		return e
	})
}

// ShiftRefs adds by to every reference's position.
func ShiftRefs(e Expr, by int) Expr {
	return MapRefs(e, func(r *Ref) Expr { return &Ref{Index: r.Index + by, T: r.T} })
}

// RefsOf are the positions that an expression reads, each once, in order of appearance.
func RefsOf(exprs ...Expr) []int {
	var out []int
	seen := map[int]bool{}
	for _, e := range exprs {
		WalkExpr(e, func(e Expr) bool {
			if r, ok := e.(*Ref); ok && !seen[r.Index] {
				seen[r.Index] = true
				out = append(out, r.Index)
			}
			return true
		})
	}
	return out
}

// volatile functions give another value at each call, or have an effect.
var volatile = map[string]bool{
	"random": true, "uuid": true, "gen_random_uuid": true, "uuidv4": true, "uuidv7": true, "nextval": true,
	"currval": true, "setseed": true, "sleep_ms": true, "write_log": true,
}

// IsVolatile reports whether evaluating the expression twice may give two values.
func IsVolatile(e Expr) bool {
	found := false
	WalkExpr(e, func(e Expr) bool {
		switch e := e.(type) {
		case *Func:
			found = found || volatile[e.Name] || e.Lambda != nil && IsVolatile(e.Lambda.Body)
		case *Raw:
			found = found || e.Volatile
		}
		return !found
	})
	return found
}

// Exprs are the expressions that a node itself holds, over the columns of its children. A join's conditions are given
// side by side, each over its own child.
func Exprs(n Node) []Expr {
	switch n := n.(type) {
	case *Values:
		var out []Expr
		for _, row := range n.Rows {
			out = append(out, row...)
		}
		return out
	case *Project:
		return n.Exprs
	case *Filter:
		return n.Conds
	case *Aggregate:
		return append(append([]Expr{}, n.Groups...), widen(n.Aggs)...)
	case *Distinct:
		return appendOrders(append([]Expr{}, n.On...), n.Order)
	case *Window:
		return widen(n.Exprs)
	case *Unnest:
		return n.Lists
	case *OrderBy:
		return appendOrders(nil, n.Keys)
	case *TopN:
		return appendOrders(nil, n.Keys)
	case *Limit:
		var out []Expr
		for _, v := range []LimitValue{n.Limit, n.Offset} {
			if v.Expr != nil {
				out = append(out, v.Expr)
			}
		}
		return out
	case *Join:
		var out []Expr
		for _, c := range n.Conds {
			out = append(out, c.Left, c.Right)
		}
		if n.On != nil {
			out = append(out, n.On)
		}
		return out
	case *DelimJoin:
		return append(Exprs(n.Join), n.Columns...)
	case *Get:
		return n.Filters
	case *TableScan:
		return n.Filters
	case *TableFunc:
		return n.Filters
	}
	return nil
}

// Volatile reports whether the node itself, without its children, computes anything that IsVolatile.
func Volatile(n Node) bool {
	for _, e := range Exprs(n) {
		if IsVolatile(e) {
			return true
		}
	}
	return false
}

func widen[E Expr](exprs []E) []Expr {
	out := make([]Expr, len(exprs))
	for i, e := range exprs {
		out[i] = e
	}
	return out
}
