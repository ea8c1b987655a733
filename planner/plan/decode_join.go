package plan

import "slices"

var joinTypes = map[string]JoinType{
	"INNER": Inner, "LEFT": Left, "RIGHT": Right, "FULL": Full, "SEMI": Semi, "ANTI": Anti,
	"RIGHT_SEMI": RightSemi, "RIGHT_ANTI": RightAnti, "MARK": Mark, "SINGLE": Single,
}

var compareOps = map[string]CompareOp{
	"COMPARE_EQUAL": Eq, "COMPARE_NOTEQUAL": Ne, "COMPARE_LESSTHAN": Lt, "COMPARE_LESSTHANOREQUALTO": Le,
	"COMPARE_GREATERTHAN": Gt, "COMPARE_GREATERTHANOREQUALTO": Ge,
	"COMPARE_NOT_DISTINCT_FROM": NotDistinctFrom, "COMPARE_DISTINCT_FROM": DistinctFrom,
}

func compareOp(name string) CompareOp {
	op, ok := compareOps[name]
	if !ok {
		fail(unsupported("comparison %s", name))
	}
	return op
}

// join reads the four operators that join by a condition.
func (d *decoder) join(o *object, op string) (Node, []binding) {
	name := o.text("join_type")
	kind, ok := joinTypes[name]
	if !ok {
		fail(unsupported("join type %s", name))
	}
	n := &Join{Type: kind, AsOf: op == "LOGICAL_ASOF_JOIN"}
	delim := &DelimJoin{Join: n}
	if op != "LOGICAL_ANY_JOIN" {
		delim.Flipped = o.flag("delim_flipped")
	}
	delimited := op == "LOGICAL_DELIM_JOIN"
	if delimited {
		d.delims++
		delim.ID = d.delims
	}
	list := o.list("children")
	if len(list) != 2 {
		fail(malformed("%s has %d children", op, len(list)))
	}
	var b [2][]binding
	var sides [2]Node
	for i, c := range list {
		other := delimited && (i == 1) != delim.Flipped
		if other {
			d.delimOpen = append(d.delimOpen, delim.ID)
		}
		sides[i], b[i] = d.node(c)
		if other {
			d.delimOpen = d.delimOpen[:len(d.delimOpen)-1]
		}
	}
	n.Left, n.Right = sides[0], sides[1]
	left := scope{d: d, bindings: b[0], columns: len(n.Left.Types())}
	right := scope{d: d, bindings: b[1], columns: len(n.Right.Types())}
	both := scope{d: d, bindings: slices.Concat(b[0], b[1]), columns: left.columns + right.columns}
	n.LeftKeep = keep(o.take("left_projection_map"), left.columns, "left map of "+op)
	n.RightKeep = keep(o.take("right_projection_map"), right.columns, "right map of "+op)
	mark := o.number("mark_index")
	if op == "LOGICAL_ANY_JOIN" {
		n.On = both.expr(o.take("condition"))
	} else {
		for _, c := range o.list("conditions") {
			c := asObject(c, "a condition of "+op)
			n.Conds = append(n.Conds, JoinCond{compareOp(c.text("comparison")), left.expr(c.take("left")), right.expr(c.take("right"))})
			c.done()
		}
		if p := o.take("predicate"); p != nil {
			n.On = both.expr(p)
		}
		source := left
		if delim.Flipped {
			source = right
		}
		delim.Columns = source.exprs(o.list("duplicate_eliminated_columns"))
		if !delimited && len(delim.Columns) > 0 {
			fail(unsupported("duplicate elimination in %s", op))
		}
	}
	o.ignore("mark_types")
	o.done()
	out := joinBindings(kind, pickBindings(b[0], n.LeftKeep), pickBindings(b[1], n.RightKeep), mark)
	if delimited {
		return delim, out
	}
	return n, out
}

func joinBindings(kind JoinType, left, right []binding, mark uint64) []binding {
	switch kind {
	case Semi, Anti:
		return left
	case RightSemi, RightAnti:
		return right
	case Mark:
		return append(left, binding{mark, 0})
	}
	return append(left, right...)
}

func (d *decoder) delimGet(o *object) (Node, []binding) {
	d.children(o, 0)
	n := &DelimGet{Out: decodeTypes(o.list("chunk_types"))}
	if len(d.delimOpen) == 0 {
		fail(malformed("a DELIM_GET outside of any DELIM_JOIN"))
	}
	n.ID = d.delimOpen[len(d.delimOpen)-1]
	b := bindings(o.number("table_index"), len(n.Out))
	o.done()
	return n, b
}

func (d *decoder) cte(o *object, op string) (Node, []binding) {
	table := o.number("table_index")
	switch op {
	case "LOGICAL_CTE_REF":
		d.children(o, 0)
		n := &CTERef{ID: o.integer("cte_index"), Recurring: o.flag("is_recurring"), Out: decodeTypes(o.list("chunk_types"))}
		o.ignore("bound_columns")
		o.done()
		return n, bindings(table, len(n.Out))
	case "LOGICAL_MATERIALIZED_CTE":
		children, b := d.children(o, 2)
		n := &CTE{ID: int(table), Name: o.text("ctename"), Def: children[0], Body: children[1]}
		o.ignore("column_count", "materialize")
		o.done()
		return n, b[1]
	}
	children, b := d.children(o, 2)
	n := &RecursiveCTE{ID: int(table), Name: o.text("ctename"), All: o.flag("union_all"), Base: children[0], Step: children[1]}
	s := scope{d: d, bindings: b[0], columns: len(n.Base.Types())}
	for _, e := range s.exprs(o.list("key_targets")) {
		r, ok := e.(*Ref)
		if !ok {
			fail(unsupported("USING KEY with an expression"))
		}
		n.Keys = append(n.Keys, r.Index)
	}
	n.Out = n.Base.Types()
	o.ignore("column_count", "ref_recurring")
	o.done()
	return n, bindings(table, len(n.Out))
}
