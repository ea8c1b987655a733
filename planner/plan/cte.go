package plan

// CTE computes Def once; the CTERefs with its ID in Body read it. The output is Body's.
type CTE struct {
	ID        int
	Name      string // as written by the user, or made by DuckDB; not unique
	Def, Body Node
}

// CTERef reads the CTE with the ID or, inside a RecursiveCTE's Step, the rows of the last round.
type CTERef struct {
	ID        int
	Recurring bool // inside a RecursiveCTE with Keys: all rows so far
	Out       []Type
}

// RecursiveCTE starts with Base and repeats Step until it gives no new row.
type RecursiveCTE struct {
	ID         int
	Name       string
	All        bool // keep duplicates
	Base, Step Node
	Keys       []int // USING KEY: a later row replaces the one with equal keys
	Out        []Type
}

func (n *CTE) Types() []Type          { return n.Body.Types() }
func (n *CTERef) Types() []Type       { return n.Out }
func (n *RecursiveCTE) Types() []Type { return n.Out }

func (n *CTE) Children() []Node          { return []Node{n.Def, n.Body} }
func (*CTERef) Children() []Node         { return nil }
func (n *RecursiveCTE) Children() []Node { return []Node{n.Base, n.Step} }

func (n *CTE) WithChildren(c []Node) Node {
	m := *n
	m.Def, m.Body = c[0], c[1]
	return &m
}

func (n *CTERef) WithChildren([]Node) Node { return n }

func (n *RecursiveCTE) WithChildren(c []Node) Node {
	m := *n
	m.Base, m.Step = c[0], c[1]
	return &m
}
