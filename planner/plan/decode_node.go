package plan

import (
	"encoding/json"
	"slices"
)

// node reads an operator and gives it with the bindings of its output columns.
func (d *decoder) node(v any) (Node, []binding) {
	o := asObject(v, "an operator")
	op := o.text("type")
	o.what = op
	switch op {
	case "LOGICAL_GET":
		return d.get(o)
	case "LOGICAL_COMPARISON_JOIN", "LOGICAL_ASOF_JOIN", "LOGICAL_ANY_JOIN", "LOGICAL_DELIM_JOIN":
		return d.join(o, op)
	case "LOGICAL_DELIM_GET":
		return d.delimGet(o)
	case "LOGICAL_MATERIALIZED_CTE", "LOGICAL_CTE_REF", "LOGICAL_RECURSIVE_CTE":
		return d.cte(o, op)
	case "LOGICAL_CHUNK_GET", "LOGICAL_EXPRESSION_GET", "LOGICAL_DUMMY_SCAN", "LOGICAL_EMPTY_RESULT":
		return d.rows(o, op)
	case "LOGICAL_UNION", "LOGICAL_EXCEPT", "LOGICAL_INTERSECT":
		return d.setOp(o, op)
	case "LOGICAL_CROSS_PRODUCT", "LOGICAL_POSITIONAL_JOIN":
		children, b := d.children(o, 2)
		o.done()
		if op == "LOGICAL_CROSS_PRODUCT" {
			return &Cross{children[0], children[1]}, slices.Concat(b[0], b[1])
		}
		return &Positional{children[0], children[1]}, slices.Concat(b[0], b[1])
	case "LOGICAL_AGGREGATE_AND_GROUP_BY":
		return d.aggregate(o)
	}
	return d.unary(o, op)
}

// children reads exactly n child operators.
func (d *decoder) children(o *object, n int) ([]Node, [][]binding) {
	list := o.list("children")
	if len(list) != n {
		fail(malformed("%s has %d children", o.what, len(list)))
	}
	nodes, b := make([]Node, n), make([][]binding, n)
	for i, c := range list {
		nodes[i], b[i] = d.node(c)
	}
	return nodes, b
}

// unary reads the operators with one child and nothing special.
func (d *decoder) unary(o *object, op string) (Node, []binding) {
	switch op {
	case "LOGICAL_PROJECTION", "LOGICAL_FILTER", "LOGICAL_DISTINCT", "LOGICAL_WINDOW", "LOGICAL_UNNEST",
		"LOGICAL_ORDER_BY", "LOGICAL_TOP_N", "LOGICAL_LIMIT", "LOGICAL_SAMPLE":
	default:
		fail(unsupported("operator %s", op))
	}
	children, bs := d.children(o, 1)
	child, b := children[0], bs[0]
	columns := len(child.Types())
	s := scope{d: d, bindings: b, columns: columns}
	var n Node
	switch op {
	case "LOGICAL_PROJECTION":
		p := &Project{Child: child, Exprs: s.exprs(o.list("expressions"))}
		n, b = p, bindings(o.number("table_index"), len(p.Exprs))
	case "LOGICAL_FILTER":
		f := &Filter{Child: child, Conds: s.exprs(o.list("expressions")), Keep: keep(o.take("projection_map"), columns, op)}
		n, b = f, pickBindings(b, f.Keep)
	case "LOGICAL_DISTINCT":
		n = s.distinct(o, child)
	case "LOGICAL_WINDOW":
		w := &Window{Child: child}
		for _, e := range o.list("expressions") {
			w.Exprs = append(w.Exprs, s.window(e))
		}
		n, b = w, append(b, bindings(o.number("window_index"), len(w.Exprs))...)
	case "LOGICAL_UNNEST":
		u := &Unnest{Child: child}
		for _, e := range o.list("expressions") {
			u.Lists = append(u.Lists, s.unnested(e))
		}
		n, b = u, append(b, bindings(o.number("unnest_index"), len(u.Lists))...)
	case "LOGICAL_ORDER_BY":
		k := keep(o.take("projections"), columns, op)
		n, b = &OrderBy{Child: child, Keys: s.orders(o.list("orders")), Keep: k}, pickBindings(b, k)
	case "LOGICAL_TOP_N":
		n = &TopN{Child: child, Keys: s.orders(o.list("orders")), Limit: o.number("limit"), Offset: o.number("offset")}
	case "LOGICAL_LIMIT":
		n = &Limit{Child: child, Limit: s.limit(o.object("limit_val")), Offset: s.limit(o.object("offset_val"))}
	case "LOGICAL_SAMPLE":
		n = sample(o.object("sample_options"), child)
	}
	o.done()
	return n, b
}

func (s scope) distinct(o *object, child Node) Node {
	n := &Distinct{Child: child, On: s.exprs(o.list("distinct_targets"))}
	switch kind := o.text("distinct_type"); kind {
	case "DISTINCT":
		seen := make([]bool, s.columns)
		missing := s.columns
		plain := len(n.On) == s.columns
		for _, e := range n.On {
			if r, ok := e.(*Ref); !ok {
				plain = false
			} else if !seen[r.Index] {
				seen[r.Index] = true
				missing--
			}
		}
		if plain && missing == 0 {
			n.On = nil
		}
	case "DISTINCT_ON":
	default:
		fail(unsupported("distinct type %s", kind))
	}
	if by := o.take("order_by"); by != nil {
		n.Order = s.orderModifier(by)
	}
	return n
}

func (s scope) limit(o *object) LimitValue {
	kind := o.text("type")
	rows, share, e := o.number("constant_integer"), o.take("constant_percentage"), o.take("expression")
	o.done()
	v := LimitValue{Set: true}
	switch kind {
	case "UNSET":
		return LimitValue{}
	case "CONSTANT_VALUE":
		v.Rows = rows
	case "CONSTANT_PERCENTAGE":
		n, ok := share.(json.Number)
		if !ok {
			fail(unsupported("a limit of %v percent", share))
		}
		v.Percent, v.Share = true, n.String()
	case "EXPRESSION_VALUE", "EXPRESSION_PERCENTAGE":
		v.Percent, v.Expr = kind == "EXPRESSION_PERCENTAGE", s.expr(e)
	default:
		fail(unsupported("limit type %s", kind))
	}
	return v
}

func sample(o *object, child Node) Node {
	n := &Sample{Child: child, Percent: o.flag("is_percentage"), Method: o.text("method"), Seed: -1}
	size := decodeValue(o.take("sample_size"))
	switch n.Size = size.Text; size.Type.ID {
	case "BIGINT", "DOUBLE":
	default:
		fail(unsupported("a sample size of type %s", size.Type))
	}
	if seed, ok := asNumber(o.take("seed")); ok {
		n.Seed = int64(seed)
	}
	switch n.Method {
	case "System", "Bernoulli", "Reservoir":
	default:
		fail(unsupported("sample method %s", n.Method))
	}
	o.done()
	return n
}

func (d *decoder) aggregate(o *object) (Node, []binding) {
	children, bs := d.children(o, 1)
	s := scope{d: d, bindings: bs[0], columns: len(children[0].Types())}
	n := &Aggregate{Child: children[0], Groups: s.exprs(o.list("groups"))}
	for _, set := range o.list("grouping_sets") {
		n.Sets = append(n.Sets, asInts(set, "a grouping set"))
	}
	if len(n.Sets) == 0 && len(n.Groups) > 0 { // as decorrelation makes it
		n.Sets = [][]int{Range(len(n.Groups))}
	}
	for _, e := range o.list("expressions") {
		n.Aggs = append(n.Aggs, s.agg(e))
	}
	for _, g := range o.list("grouping_functions") {
		n.Groupings = append(n.Groupings, asInts(g, "a grouping function"))
	}
	for _, positions := range append(append([][]int{}, n.Sets...), n.Groupings...) {
		for _, p := range positions {
			if p >= len(n.Groups) {
				fail(malformed("a grouping set names group %d of %d", p, len(n.Groups)))
			}
		}
	}
	b := bindings(o.number("group_index"), len(n.Groups))
	b = append(b, bindings(o.number("aggregate_index"), len(n.Aggs))...)
	b = append(b, bindings(o.number("groupings_index"), len(n.Groupings))...)
	o.ignore("distinct_validity")
	o.done()
	return n, b
}

func (d *decoder) setOp(o *object, op string) (Node, []binding) {
	n := &SetOp{All: o.flag("setop_all")}
	switch op {
	case "LOGICAL_EXCEPT":
		n.Kind = Except
	case "LOGICAL_INTERSECT":
		n.Kind = Intersect
	}
	count := len(asList(o.fields["children"], "children of "+op))
	n.Inputs, _ = d.children(o, count)
	columns := o.integer("column_count")
	for _, in := range n.Inputs {
		if len(in.Types()) != columns {
			fail(malformed("an input of %s has %d columns, not %d", op, len(in.Types()), columns))
		}
	}
	if count < 1 || n.Kind != Union && count != 2 {
		fail(malformed("%s has %d children", op, count))
	}
	n.Out = n.Inputs[0].Types()
	b := bindings(o.number("table_index"), columns)
	o.ignore("allow_out_of_order")
	o.done()
	if count == 1 { // the others were found to be empty
		if n.All {
			return &Project{Child: n.Inputs[0], Exprs: refs(n.Out)}, b
		}
		return &Distinct{Child: n.Inputs[0]}, b
	}
	return n, b
}

// refs are references to all columns.
func refs(types []Type) []Expr {
	out := make([]Expr, len(types))
	for i, t := range types {
		out[i] = &Ref{i, t}
	}
	return out
}

// rows reads the operators whose rows are in the plan.
func (d *decoder) rows(o *object, op string) (Node, []binding) {
	switch op {
	case "LOGICAL_DUMMY_SCAN":
		d.children(o, 0)
		b := bindings(o.number("table_index"), 1)
		o.done()
		return &DummyScan{}, b
	case "LOGICAL_EMPTY_RESULT":
		d.children(o, 0)
		n := &Empty{Out: decodeTypes(o.list("return_types"))}
		var b []binding
		for _, v := range o.list("bindings") {
			b = append(b, asBinding(v))
		}
		o.done()
		return n, b
	case "LOGICAL_CHUNK_GET":
		d.children(o, 0)
		n := &Values{Out: decodeTypes(o.list("chunk_types")), Rows: chunk(o.object("collection"))}
		b := bindings(o.number("table_index"), len(n.Out))
		o.done()
		return n, b
	}
	children, bs := d.children(o, 1)
	n := &Values{Child: children[0], Out: decodeTypes(o.list("expr_types"))}
	s := scope{d: d, bindings: bs[0], columns: len(children[0].Types())}
	if _, ok := n.Child.(*DummyScan); ok {
		n.Child = nil
	}
	for _, row := range o.list("expressions") {
		n.Rows = append(n.Rows, s.exprs(asList(row, "a row")))
	}
	for _, row := range n.Rows {
		if len(row) != len(n.Out) {
			fail(malformed("a row of %d values for %d columns", len(row), len(n.Out)))
		}
	}
	b := bindings(o.number("table_index"), len(n.Out))
	o.done()
	return n, b
}

// chunk turns columns of values into rows.
func chunk(o *object) [][]Expr {
	o.ignore("types")
	var rows [][]Expr
	for c, column := range o.list("values") {
		values := asList(column, "a column of values")
		if c == 0 {
			rows = make([][]Expr, len(values))
		}
		if len(values) != len(rows) {
			fail(malformed("columns of %d and %d values", len(rows), len(values)))
		}
		for r, v := range values {
			rows[r] = append(rows[r], &Const{decodeValue(v)})
		}
	}
	o.done()
	return rows
}

func asBinding(v any) binding {
	o := asObject(v, "a binding")
	b := binding{o.number("table_index"), o.number("column_index")}
	o.done()
	return b
}
