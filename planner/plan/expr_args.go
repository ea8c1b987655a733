package plan

import "slices"

func (e *Ref) Args() []Expr   { return nil }
func (e *Const) Args() []Expr { return nil }
func (e *Cast) Args() []Expr  { return []Expr{e.Child} }

func (e *Compare) Args() []Expr  { return []Expr{e.Left, e.Right} }
func (e *Between) Args() []Expr  { return []Expr{e.Input, e.Lower, e.Upper} }
func (e *Conj) Args() []Expr     { return e.Parts }
func (e *Operator) Args() []Expr { return e.Parts }
func (e *Raw) Args() []Expr      { return e.Params }

func (e *Case) Args() []Expr {
	var args []Expr
	for _, c := range e.Checks {
		args = append(args, c.When, c.Then)
	}
	return append(args, e.Else)
}

func (e *Func) Args() []Expr {
	if e.Lambda == nil {
		return e.Params
	}
	return slices.Concat(e.Params, e.Lambda.Captures)
}

func (e *Agg) Args() []Expr {
	args := slices.Clone(e.Params)
	if e.Filter != nil {
		args = append(args, e.Filter)
	}
	return appendOrders(args, e.Order)
}

func (e *Ref) WithArgs([]Expr) Expr   { return e }
func (e *Const) WithArgs([]Expr) Expr { return e }

func (e *Cast) WithArgs(a []Expr) Expr {
	c := *e
	c.Child = a[0]
	return &c
}

func (e *Compare) WithArgs(a []Expr) Expr { return &Compare{Op: e.Op, Left: a[0], Right: a[1]} }

func (e *Between) WithArgs(a []Expr) Expr {
	c := *e
	c.Input, c.Lower, c.Upper = a[0], a[1], a[2]
	return &c
}

func (e *Conj) WithArgs(a []Expr) Expr { return &Conj{Or: e.Or, Parts: slices.Clone(a)} }

func (e *Case) WithArgs(a []Expr) Expr {
	c := Case{T: e.T, Else: a[len(a)-1]}
	for i := range e.Checks {
		c.Checks = append(c.Checks, CaseCheck{When: a[2*i], Then: a[2*i+1]})
	}
	return &c
}

func (e *Operator) WithArgs(a []Expr) Expr {
	return &Operator{Kind: e.Kind, Parts: slices.Clone(a), T: e.T}
}

func (e *Func) WithArgs(a []Expr) Expr {
	c := *e
	c.Params = slices.Clone(a[:len(e.Params)])
	if e.Lambda != nil {
		l := *e.Lambda
		l.Captures = slices.Clone(a[len(e.Params):])
		c.Lambda = &l
	}
	return &c
}

func (e *Agg) WithArgs(a []Expr) Expr {
	c := *e
	c.Params, a = slices.Clone(a[:len(e.Params)]), a[len(e.Params):]
	if e.Filter != nil {
		c.Filter, a = a[0], a[1:]
	}
	c.Order, _ = takeOrders(e.Order, a)
	return &c
}

func (e *Raw) WithArgs(a []Expr) Expr {
	c := *e
	c.Params = slices.Clone(a)
	return &c
}

func appendOrders(args []Expr, orders []Order) []Expr {
	for _, o := range orders {
		args = append(args, o.Expr)
	}
	return args
}

// takeOrders puts the first of the args into copies of the orders, and returns the rest of the args.
func takeOrders(orders []Order, args []Expr) ([]Order, []Expr) {
	out := slices.Clone(orders)
	for i := range out {
		out[i].Expr = args[i]
	}
	return out, args[len(out):]
}
