package dist

import (
	"manta/planner/plan"
)

// recursive places a recursive CTE in one task. What its step reads anew in
// every round, but is the same in all of them, is computed by however many tasks,
// brought to that one and kept there: an exchange can be read only once.
func (p *placer) recursive(n *plan.RecursiveCTE) (placed, error) {
	base, err := p.place(n.Base)
	if err != nil {
		return placed{}, err
	}
	h := &hoister{placer: p}
	step, err := h.hoist(n.Step)
	if err != nil {
		return placed{}, err
	}
	var out plan.Node = n.WithChildren([]plan.Node{p.gather(base).node, step})
	for i := len(h.kept) - 1; i >= 0; i-- {
		out = &plan.CTE{ID: h.kept[i].id, Name: "kept", Def: h.kept[i].def, Body: out}
	}
	if len(h.kept) > 0 || base.dist.Kind == Partitioned {
		p.note("the rounds of a recursive CTE run in one task")
	}
	return placed{out, Distribution{Kind: Single}, p.rows(n, base.rows)}, nil
}

// hoister takes out of a recursion's step what does not depend on the round.
type hoister struct {
	placer *placer
	kept   []kept
}

// firstKept is where the numbers of kept parts begin, far from DuckDB's own of CTEs.
const firstKept = 1 << 30

// kept is a part of the step that is computed before the first round.
type kept struct {
	id  int
	def plan.Node
}

// hoist gives the step with references in the place of its largest parts that are the same in every round.
func (h *hoister) hoist(n plan.Node) (plan.Node, error) {
	reads := false // anything but rows of the plan itself
	plan.Walk(n, func(x plan.Node) bool {
		switch x.(type) {
		case *plan.DummyScan, *plan.Values, *plan.Empty:
		default:
			reads = reads || len(x.Children()) == 0
		}
		return !reads
	})
	if !reads {
		return n, nil
	}
	if h.closed(n) {
		if volatileBelow(n) {
			return nil, &plan.UnsupportedError{What: "a volatile function in a recursive CTE"}
		}
		c, err := h.placer.place(n)
		if err != nil {
			return nil, err
		}
		h.placer.keptParts++
		k := kept{id: firstKept + h.placer.keptParts, def: h.placer.gather(c).node}
		h.kept = append(h.kept, k)
		return &plan.CTERef{ID: k.id, Out: n.Types()}, nil
	}
	if j, ok := n.(*plan.Join); ok && j.AsOf {
		return nil, &plan.UnsupportedError{What: "an ASOF join in the step of a recursive CTE, which DuckDB can't run"}
	}
	children := n.Children()
	if len(children) == 0 {
		return n, nil
	}
	out := make([]plan.Node, len(children))
	for i, c := range children {
		var err error
		if out[i], err = h.hoist(c); err != nil {
			return nil, err
		}
	}
	return n.WithChildren(out), nil
}

// closed reports whether all that a part of the plan refers to is in it, or has been placed before.
func (h *hoister) closed(n plan.Node) bool {
	ctes, delims := map[int]bool{}, map[int]bool{}
	for id := range h.placer.ctes {
		ctes[id] = true
	}
	for id := range h.placer.delims {
		delims[id] = true
	}
	plan.Walk(n, func(x plan.Node) bool {
		switch x := x.(type) {
		case *plan.CTE:
			ctes[x.ID] = true
		case *plan.RecursiveCTE:
			ctes[x.ID] = true
		case *plan.DelimJoin:
			delims[x.ID] = true
		}
		return true
	})
	closed := true
	plan.Walk(n, func(x plan.Node) bool {
		switch x := x.(type) {
		case *plan.CTERef:
			closed = closed && ctes[x.ID]
		case *plan.DelimGet:
			closed = closed && delims[x.ID]
		}
		return closed
	})
	return closed
}

func volatileBelow(n plan.Node) bool {
	found := false
	plan.Walk(n, func(x plan.Node) bool {
		found = found || plan.Volatile(x)
		return !found
	})
	return found
}
