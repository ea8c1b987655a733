package dist

import (
	"slices"
	"strings"

	"manta/planner/plan"
)

// ExchangeKind is what an exchange does with a row.
type ExchangeKind int

// Kinds of exchange.
const (
	Gather    ExchangeKind = iota // to the only task of a single stage
	Hash                          // to the task that the hash of the keys names
	Broadcast                     // to every task
	Pin                           // to the first task of a partitioned stage
	Forward                       // from task i to task i
	Range                         // to the task whose range of sort keys the row is in
	InOrder                       // to the only task of a single stage, from one task after the other
)

func (k ExchangeKind) String() string {
	return [...]string{"gather", "hash", "broadcast", "pin", "forward", "range", "in order"}[k]
}

// Exchange moves its child's rows to other tasks.
type Exchange struct {
	Child plan.Node
	Kind  ExchangeKind
	Keys  []plan.Expr  // Hash: over the child's output; Range: the number of the range
	Order []plan.Order // Range: by which the ranges are in order, over the child's output
	From  Distribution // the child's
	Rows  float64      // estimate
}

// Shared is a part of the plan that is computed once and read by several SharedRefs.
type Shared struct {
	ID   int
	Name string // for EXPLAIN
	Def  plan.Node
	Dist Distribution
	Rows float64 // estimate
}

// SharedRef reads a Shared part.
type SharedRef struct{ Shared *Shared }

// Scan reads files: all of them in every task, or each task its share.
type Scan struct {
	Get   *plan.Get
	Split bool
}

// Partial is an operator that each task applies to its own rows only, to make
// less of them; the operator above the next exchange completes it.
type Partial struct{ Op plan.Node }

// Input is the view through which a fragment reads an edge.
type Input struct {
	Edge *Edge
	View string // set when the fragment of one task is printed
}

var _ = []plan.Leaf{(*Partial)(nil), (*Input)(nil)}

func (n *Exchange) Types() []plan.Type     { return n.Child.Types() }
func (n *Exchange) Children() []plan.Node  { return []plan.Node{n.Child} }
func (n *SharedRef) Types() []plan.Type    { return n.Shared.Def.Types() }
func (n *SharedRef) Children() []plan.Node { return nil }
func (n *Scan) Types() []plan.Type         { return n.Get.Types() }
func (n *Scan) Children() []plan.Node      { return nil }
func (n *Partial) Types() []plan.Type      { return n.Op.Types() }
func (n *Partial) Children() []plan.Node   { return n.Op.Children() }
func (n *Input) Types() []plan.Type        { return n.Edge.Types }
func (n *Input) Children() []plan.Node     { return nil }

func (n *SharedRef) WithChildren([]plan.Node) plan.Node { return n }
func (n *Scan) WithChildren([]plan.Node) plan.Node      { return n }
func (n *Input) WithChildren([]plan.Node) plan.Node     { return n }

func (n *Exchange) WithChildren(c []plan.Node) plan.Node {
	m := *n
	m.Child = c[0]
	return &m
}

func (n *Partial) WithChildren(c []plan.Node) plan.Node {
	return &Partial{Op: n.Op.WithChildren(c)}
}

// PrintSQL prints the operator as it is: that it sees one task's rows only is nothing to the text.
func (n *Partial) PrintSQL(p *plan.Printer) (string, error) { return p.Select(n.Op) }

// PrintSQL reads the view. Columns that the edge does not carry are never looked
// at; they are there as NULL, so that all positions stay as they were planned.
func (n *Input) PrintSQL(*plan.Printer) (string, error) {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, t := range n.Edge.Types {
		if i > 0 {
			b.WriteString(", ")
		}
		at := slices.Index(n.Edge.Keep, i)
		switch {
		case at >= 0:
			b.WriteString(arriving(columnName(at), t))
		case t.Spellable():
			b.WriteString("CAST(NULL AS " + t.String() + ")")
		default:
			b.WriteString("NULL")
		}
		b.WriteString(" AS " + columnName(i))
	}
	b.WriteString(" FROM " + plan.Ident(n.View))
	return b.String(), nil
}
