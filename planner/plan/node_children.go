package plan

import "slices"

func (*DummyScan) Children() []Node   { return nil }
func (*Empty) Children() []Node       { return nil }
func (n *Project) Children() []Node   { return []Node{n.Child} }
func (n *Filter) Children() []Node    { return []Node{n.Child} }
func (n *Aggregate) Children() []Node { return []Node{n.Child} }
func (n *Distinct) Children() []Node  { return []Node{n.Child} }
func (n *Window) Children() []Node    { return []Node{n.Child} }
func (n *Unnest) Children() []Node    { return []Node{n.Child} }
func (n *OrderBy) Children() []Node   { return []Node{n.Child} }
func (n *TopN) Children() []Node      { return []Node{n.Child} }
func (n *Limit) Children() []Node     { return []Node{n.Child} }
func (n *Sample) Children() []Node    { return []Node{n.Child} }
func (n *SetOp) Children() []Node     { return n.Inputs }
func (n *Values) Children() []Node    { return optional(n.Child) }

func (n *DummyScan) WithChildren([]Node) Node { return n }
func (n *Empty) WithChildren([]Node) Node     { return n }

func (n *Project) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Filter) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Aggregate) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Distinct) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Window) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Unnest) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *OrderBy) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *TopN) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Limit) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Sample) WithChildren(c []Node) Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *SetOp) WithChildren(c []Node) Node {
	m := *n
	m.Inputs = slices.Clone(c)
	return &m
}

func (n *Values) WithChildren(c []Node) Node {
	m := *n
	if n.Child != nil {
		m.Child = c[0]
	}
	return &m
}

func optional(n Node) []Node {
	if n == nil {
		return nil
	}
	return []Node{n}
}
