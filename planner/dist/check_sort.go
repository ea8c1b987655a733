package dist

import (
	"fmt"
	"slices"

	"manta/planner/plan"
)

// Rows that are sorted by ranges are checked from both ends. Where a row goes
// depends on a sample, of which nothing else may depend; and the order of the
// ranges, of the rows in each, and of the tasks that are read must be one.

// sampling notes what of the plan depends on a sample. The stage that sends rows
// by ranges gets the bounds from one and lets nothing of them through.
func (c *checker) sampling() error {
	s := c.stage
	if !c.fromSample || c.byRange() {
		return nil
	}
	c.sampled[s] = true
	for _, e := range s.Outputs {
		if e.To == nil {
			return fmt.Errorf("rows of a sample are taken for all rows")
		}
	}
	return nil
}

// byRange reports whether the stage puts bounds beside every row, and sends them by ranges and without the bounds.
func (c *checker) byRange() bool {
	width, ok := c.bounded()
	return ok && !slices.ContainsFunc(c.stage.Outputs, func(e *Edge) bool {
		return e.Kind != Range || slices.ContainsFunc(e.Keep, func(k int) bool { return k >= width })
	})
}

// bounded gives the number of columns of rows that have bounds from a sample in the next one.
func (c *checker) bounded() (width int, ok bool) {
	p, ok := c.stage.Root.(*plan.Project)
	if !ok {
		return 0, false
	}
	cross, ok := p.Child.(*plan.Cross)
	if !ok {
		return 0, false
	}
	bounds, ok := cross.Right.(*Input)
	if !ok || bounds.Edge.Kind != Broadcast || c.fromSampleBelow(cross.Left) {
		return 0, false
	}
	width = len(cross.Left.Types())
	return width, len(p.Exprs) == width+2 && !slices.ContainsFunc(plan.Range(width+1), func(i int) bool { return columnAt(p.Exprs[i]) != i })
}

func (c *checker) fromSampleBelow(n plan.Node) bool {
	found := false
	plan.Walk(n, func(n plan.Node) bool {
		switch n := n.(type) {
		case *plan.Sample:
			found = true
		case *Input:
			found = found || c.sampled[n.Edge.From]
		}
		return !found
	})
	return found
}

// rangeEdge checks that an edge sends rows to the tasks in the order that it says.
func (c *checker) rangeEdge(e *Edge) error {
	width, ok := c.bounded()
	if !ok || len(e.Keys) != 1 || e.Readers() != c.partitions {
		return fmt.Errorf("ranges without bounds, or for %d tasks", e.Readers())
	}
	key, isKey := c.stage.Root.(*plan.Project).Exprs[width+1].(*plan.Raw)
	number, isNumber := e.Keys[0].(*plan.Raw)
	if !isKey || !isNumber || !sameRaw(key, sortKey(e.Order)) || !sameRaw(number, rangeOf(width)) {
		return fmt.Errorf("ranges that are not those of its order")
	}
	return nil
}

func sameRaw(a, b *plan.Raw) bool {
	return a.SQL == b.SQL && slices.EqualFunc(a.Params, b.Params, sameExpr)
}

// sorted checks a sort of the rows that each task has: they must be a range in the same order.
func (c *checker) sorted(n *plan.OrderBy) (Distribution, error) {
	p, ok := n.Child.(*plan.Project)
	if ok {
		var in *Input
		if in, ok = p.Child.(*Input); ok {
			ok = in.Edge.Kind == Range && sameOrder(in.Edge.Order, n.Keys) &&
				!slices.ContainsFunc(plan.Range(len(p.Exprs)), func(i int) bool { return columnAt(p.Exprs[i]) != i })
		}
	}
	if !ok || c.stage.Root != plan.Node(n) {
		return Distribution{}, fmt.Errorf("a sort of rows that are no range of that order")
	}
	for i, e := range c.stage.Outputs {
		if e.Source != i+1 || e.Kind != Gather || e.To == nil || e.To != c.stage.Outputs[0].To || len(c.stage.Outputs) != c.stage.Tasks {
			return Distribution{}, fmt.Errorf("sorted ranges do not stay in order")
		}
	}
	return Distribution{Kind: Partitioned}, nil
}

func sameOrder(a, b []plan.Order) bool {
	return slices.EqualFunc(a, b, func(a, b plan.Order) bool {
		return a.Desc == b.Desc && a.NullsFirst == b.NullsFirst && canonical(a.Expr) == canonical(b.Expr)
	})
}

// keepsOrder checks that rows that are read in order go to the client as they are.
func (c *checker) keepsOrder() error {
	n := c.stage.Root
	for {
		p, ok := n.(*plan.Project)
		if !ok {
			break
		}
		n = p.Child
	}
	set, ok := n.(*plan.SetOp)
	if !ok || len(set.Inputs) != len(c.ordered) {
		return fmt.Errorf("rows in order are read by an operator that may not heed it")
	}
	for _, e := range c.stage.Outputs {
		if e.To != nil {
			return fmt.Errorf("rows in order do not go to the client")
		}
	}
	return nil
}

// inOrder checks that the tasks of a stage are read one after the other, if they are read one by one.
func (c *checker) inOrder(n *plan.SetOp) error {
	var from *Stage
	for i, child := range n.Inputs {
		in, ok := child.(*Input)
		switch {
		case ok && i == 0 && in.Edge.Source > 0:
			from = in.Edge.From
		case from == nil && (!ok || in.Edge.Source == 0):
			continue
		}
		if from == nil || !ok || in.Edge.From != from || in.Edge.Source != i+1 || len(n.Inputs) != from.Tasks || n.Kind != plan.Union || !n.All {
			return fmt.Errorf("the tasks of a stage are read in another order")
		}
		c.ordered = append(c.ordered, in.Edge)
	}
	return nil
}
