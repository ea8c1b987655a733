package disttest

import (
	"fmt"
	"reflect"
	"slices"

	"manta/planner/dist"
	"manta/planner/plan"
)

// Proof follows the rows of a plan from the files to the client, and is nil if
// every operator is seen to get together what it needs together: rows of one
// group, of one window, with one join key. It knows less than dist.Check, shares
// no code with it, and what it can't follow is no proof.
func Proof(p *dist.Plan) error {
	ways := map[*dist.Stage]way{}
	for _, s := range p.Stages {
		t := tracer{stage: s, ways: ways}
		w, err := t.trace(s.Root)
		if err == nil && s.Tasks > 1 && w.everywhere {
			err = fmt.Errorf("every task gives all rows")
		}
		if err != nil {
			return fmt.Errorf("stage %d: %w", s.ID, err)
		}
		ways[s] = w
	}
	return nil
}

// way is how rows come to the tasks of a stage: all to each, or each to one.
// Of the latter, by names what decides which, if anything is known: a list of
// values, of each the expressions over the columns that have it.
type way struct {
	everywhere bool
	by         [][]plan.Expr
}

type tracer struct {
	stage *dist.Stage
	ways  map[*dist.Stage]way
}

func (t *tracer) trace(n plan.Node) (way, error) {
	switch n := n.(type) {
	case *dist.Input:
		return t.input(n.Edge), nil
	case *dist.Scan:
		return way{everywhere: !n.Split}, nil
	case *dist.Partial:
		return t.partial(n)
	}
	var in []way
	for _, c := range n.Children() {
		w, err := t.trace(c)
		if err != nil {
			return way{}, err
		}
		in = append(in, w)
	}
	if t.stage.Tasks == 1 {
		return way{}, nil // all rows are together
	}
	if !slices.ContainsFunc(in, func(w way) bool { return !w.everywhere }) {
		return way{everywhere: true}, nil // the same rows in every task, if the operator needs no order; dist.Check has seen to that
	}
	switch n := n.(type) {
	case *plan.Project:
		return in[0].rewritten(func(k []plan.Expr) []plan.Expr {
			names := renamed(k, columnsOf(n.Exprs), 0)
			for i, e := range n.Exprs {
				if among(k, e) && !plan.IsVolatile(e) {
					names = append(names, &plan.Ref{Index: i, T: e.Type()})
				}
			}
			return names
		}), nil
	case *plan.Filter:
		return in[0].rewritten(func(k []plan.Expr) []plan.Expr { return renamed(k, n.Keep, 0) }), nil
	case *plan.Unnest, *plan.Sample:
		return in[0], nil
	case *plan.OrderBy: // dist.Check sees to the order of the tasks
		if p, ok := n.Child.(*plan.Project); ok {
			if e, ok := p.Child.(*dist.Input); ok && e.Edge.Kind == dist.Range {
				return way{}, nil
			}
		}
	case *plan.Window:
		for _, w := range n.Exprs {
			if !in[0].together(w.Partitions) {
				return way{}, fmt.Errorf("a window's rows may be at several tasks")
			}
		}
		return in[0], nil
	case *plan.Distinct:
		keys := n.On
		if keys == nil {
			keys = columns(n.Types())
		}
		if !in[0].together(keys) {
			return way{}, fmt.Errorf("equal rows may be at several tasks")
		}
		return in[0], nil
	case *plan.Aggregate:
		return groups(n, in[0])
	case *plan.SetOp:
		return setOperation(n, in)
	case *plan.Cross:
		switch {
		case in[1].everywhere:
			return in[0], nil
		case in[0].everywhere:
			return in[1].shifted(len(n.Left.Types())), nil
		}
		return way{}, fmt.Errorf("rows of a cross product do not meet")
	case *plan.Join:
		return join(n, in[0], in[1])
	}
	return way{}, fmt.Errorf("%T over rows at several tasks", n)
}

func (t *tracer) input(e *dist.Edge) way {
	switch e.Kind {
	case dist.Hash:
		var w way
		for _, k := range e.Keys {
			w.by = append(w.by, []plan.Expr{k})
		}
		return w
	case dist.Broadcast:
		return way{everywhere: true}
	case dist.Forward:
		return t.ways[e.From]
	}
	return way{} // one task has them all, and nothing tells which rows it has
}

func (t *tracer) partial(n *dist.Partial) (way, error) {
	w, err := t.trace(n.Op.Children()[0])
	if err != nil || w.everywhere && t.stage.Tasks > 1 {
		return w, err
	}
	if agg, ok := n.Op.(*plan.Aggregate); ok && t.stage.Tasks > 1 {
		for _, a := range agg.Aggs {
			if a.Distinct && a.Name != "min" && a.Name != "max" && !w.together(a.Params) {
				return way{}, fmt.Errorf("a distinct value may be at several tasks")
			}
		}
	}
	return way{}, nil
}

// columnsOf are the columns that expressions are, -1 for others.
func columnsOf(exprs []plan.Expr) []int {
	out := make([]int, len(exprs))
	for i, e := range exprs {
		out[i] = -1
		if r, ok := e.(*plan.Ref); ok {
			out[i] = r.Index
		}
	}
	return out
}

// rewritten is the way of rows that have other columns: to gives the names of a value in them.
func (w way) rewritten(to func([]plan.Expr) []plan.Expr) way {
	out := way{everywhere: w.everywhere}
	for _, k := range w.by {
		names := to(k)
		if names == nil {
			return way{everywhere: w.everywhere}
		}
		out.by = append(out.by, names)
	}
	return out
}

// renamed are the expressions over the columns that are left, all names of a column for one of them.
func renamed(exprs []plan.Expr, columns []int, first int) (out []plan.Expr) {
	for _, e := range exprs {
		if r, ok := e.(*plan.Ref); ok {
			for at, c := range columns {
				if c == r.Index {
					out = append(out, &plan.Ref{Index: first + at, T: r.T})
				}
			}
			continue
		}
		whole := true
		for _, r := range plan.RefsOf(e) {
			whole = whole && slices.Contains(columns, r)
		}
		if whole {
			out = append(out, plan.MapRefs(e, func(r *plan.Ref) plan.Expr {
				return &plan.Ref{Index: first + slices.Index(columns, r.Index), T: r.T}
			}))
		}
	}
	return out
}

func (w way) shifted(by int) way {
	out := way{}
	for _, k := range w.by {
		var moved []plan.Expr
		for _, e := range k {
			moved = append(moved, plan.ShiftRefs(e, by))
		}
		out.by = append(out.by, moved)
	}
	return out
}

// together reports whether rows that agree in the expressions are at one task.
func (w way) together(exprs []plan.Expr) bool {
	return w.everywhere || w.by != nil && !slices.ContainsFunc(w.by, func(k []plan.Expr) bool {
		return !slices.ContainsFunc(exprs, func(e plan.Expr) bool { return among(k, e) })
	})
}

func among(exprs []plan.Expr, e plan.Expr) bool {
	return slices.ContainsFunc(exprs, func(x plan.Expr) bool { return reflect.DeepEqual(nowhere(x), nowhere(e)) })
}

// nowhere is an expression without the places in the query's text that its casts have.
func nowhere(e plan.Expr) plan.Expr {
	return plan.MapExpr(e, func(e plan.Expr) plan.Expr {
		if c, ok := e.(*plan.Cast); ok && c.At != 0 {
			plain := *c
			plain.At = 0
			return &plain
		}
		return e
	})
}

func groups(n *plan.Aggregate, w way) (way, error) {
	var always []plan.Expr // groups of every grouping set
	at := map[int]plan.Expr{}
	for i, g := range n.Groups {
		if len(n.Sets) > 0 && !slices.ContainsFunc(n.Sets, func(s []int) bool { return !slices.Contains(s, i) }) {
			always, at[i] = append(always, g), g
		}
	}
	if !w.together(always) {
		return way{}, fmt.Errorf("rows of a group may be at several tasks")
	}
	var out way
	for _, k := range w.by {
		var kept []plan.Expr
		for i, g := range at {
			if among(k, g) {
				kept = append(kept, &plan.Ref{Index: i, T: g.Type()})
			}
		}
		out.by = append(out.by, kept)
	}
	return out, nil
}

func setOperation(n *plan.SetOp, in []way) (way, error) {
	whole := n.Kind != plan.Union || !n.All // rows are compared
	var out way
	for i, key := range columns(n.Out) {
		for _, w := range in {
			if w.everywhere {
				return way{}, fmt.Errorf("a set operation of rows of one task and rows of all")
			}
			if whole && (len(w.by) != len(n.Out) || !among(w.by[i], key)) {
				return way{}, fmt.Errorf("equal rows of a set operation may not meet")
			}
		}
		if whole {
			out.by = append(out.by, []plan.Expr{key})
		}
	}
	return out, nil
}

func join(n *plan.Join, l, r way) (way, error) {
	leftRows := !slices.Contains([]plan.JoinType{plan.RightSemi, plan.RightAnti}, n.Type)
	rightRows := !slices.Contains([]plan.JoinType{plan.Semi, plan.Anti, plan.Mark}, n.Type)
	width := 0
	if leftRows {
		width = len(n.LeftKeep)
	}
	// What the two sides' rows say about where they are, in the columns of the output.
	left := func(k []plan.Expr) []plan.Expr {
		if !leftRows || n.Type == plan.Right || n.Type == plan.Full {
			return nil
		}
		return renamed(k, n.LeftKeep, 0)
	}
	right := func(k []plan.Expr) []plan.Expr {
		if !rightRows || n.Type == plan.Left || n.Type == plan.Single || n.Type == plan.Full {
			return nil
		}
		return renamed(k, n.RightKeep, width)
	}
	equal := func(c plan.JoinCond) bool {
		return (c.Op == plan.NotDistinctFrom || c.Op == plan.Eq && n.Type != plan.Mark) && c.Left.Type().Equal(c.Right.Type())
	}
	var by [][]plan.Expr
	switch {
	case !l.everywhere && !r.everywhere:
		if len(l.by) == 0 || len(l.by) != len(r.by) {
			return way{}, fmt.Errorf("rows of a join may not meet")
		}
		for i := range l.by {
			if !slices.ContainsFunc(n.Conds, func(c plan.JoinCond) bool { return equal(c) && among(l.by[i], c.Left) && among(r.by[i], c.Right) }) {
				return way{}, fmt.Errorf("rows of a join may not meet")
			}
			by = append(by, append(left(l.by[i]), right(r.by[i])...))
		}
	case r.everywhere:
		if !slices.Contains([]plan.JoinType{plan.Inner, plan.Left, plan.Semi, plan.Anti, plan.Mark, plan.Single}, n.Type) {
			return way{}, fmt.Errorf("a row of the right side is unmatched in several tasks")
		}
		for _, k := range l.by {
			names := left(k)
			for _, c := range n.Conds {
				if n.Type == plan.Inner && equal(c) && among(k, c.Left) {
					names = append(names, right([]plan.Expr{c.Right})...)
				}
			}
			by = append(by, names)
		}
	default:
		if n.AsOf || !slices.Contains([]plan.JoinType{plan.Inner, plan.Right, plan.RightSemi, plan.RightAnti}, n.Type) {
			return way{}, fmt.Errorf("a row of the left side is unmatched in several tasks")
		}
		for _, k := range r.by {
			names := right(k)
			for _, c := range n.Conds {
				if n.Type == plan.Inner && equal(c) && among(k, c.Right) {
					names = append(names, left([]plan.Expr{c.Left})...)
				}
			}
			by = append(by, names)
		}
	}
	if slices.ContainsFunc(by, func(k []plan.Expr) bool { return len(k) == 0 }) {
		by = nil
	}
	return way{by: by}, nil
}
