package plan

// JoinType says which rows a join gives, and which columns.
type JoinType int

// Join types. The output is the kept columns of the left, then those of the right, except: Semi and Anti give the left
// only, RightSemi and RightAnti the right only, and Mark the left and a BOOLEAN that may be NULL.
const (
	Inner JoinType = iota
	Left
	Right
	Full
	Semi
	Anti
	RightSemi
	RightAnti
	Mark   // does the left row have a partner: TRUE, FALSE or NULL, as IN and EXISTS define it
	Single // a left join in which a second partner is an error
)

// Join combines two inputs. DuckDB builds its hash table over the right child and probes with the left.
type Join struct {
	Left, Right Node
	Type        JoinType
	AsOf        bool // the last condition is an inequality, of whose matches only the nearest counts
	// Conds are ANDed. The sides are kept apart: Left refers to the left child's columns, Right to the right child's.
	Conds []JoinCond
	// On is any condition over the left child's columns followed by the right child's, ANDed to Conds; nil = none.
	On                  Expr
	LeftKeep, RightKeep []int // columns of each side that reach the output, where the type outputs that side
}

// JoinCond compares an expression of each side.
type JoinCond struct {
	Op          CompareOp
	Left, Right Expr
}

// Cross is every pair of rows.
type Cross struct{ Left, Right Node }

// Positional puts rows side by side by position, padding the shorter input with NULL.
type Positional struct{ Left, Right Node }

// DelimJoin is a join whose source side feeds the distinct values of some of its columns into the other side, where the
// DelimGet with the same ID reads them. That is how a correlated subquery looks after decorrelation.
type DelimJoin struct {
	ID      int
	Join    *Join
	Flipped bool   // the source is the right child, not the left
	Columns []Expr // over the source's columns: the columns of DelimGet
}

// DelimGet is the distinct rows of the Columns of the DelimJoin with the ID; NULL is a value.
type DelimGet struct {
	ID  int
	Out []Type
}

// Source is the side whose values are fed to the Other.
func (n *DelimJoin) Source() Node {
	if n.Flipped {
		return n.Join.Right
	}
	return n.Join.Left
}

// Other is the side that holds the DelimGets.
func (n *DelimJoin) Other() Node {
	if n.Flipped {
		return n.Join.Left
	}
	return n.Join.Right
}

func (n *Join) Types() []Type {
	left, right := pick(n.Left.Types(), n.LeftKeep), pick(n.Right.Types(), n.RightKeep)
	switch n.Type {
	case Semi, Anti:
		return left
	case RightSemi, RightAnti:
		return right
	case Mark:
		return append(left, Boolean)
	}
	return append(left, right...)
}

func (n *Cross) Types() []Type      { return join(n.Left.Types(), n.Right.Types()) }
func (n *Positional) Types() []Type { return join(n.Left.Types(), n.Right.Types()) }
func (n *DelimJoin) Types() []Type  { return n.Join.Types() }
func (n *DelimGet) Types() []Type   { return n.Out }

func (n *Join) Children() []Node       { return []Node{n.Left, n.Right} }
func (n *Cross) Children() []Node      { return []Node{n.Left, n.Right} }
func (n *Positional) Children() []Node { return []Node{n.Left, n.Right} }
func (n *DelimJoin) Children() []Node  { return n.Join.Children() }
func (*DelimGet) Children() []Node     { return nil }

func (n *Join) WithChildren(c []Node) Node {
	m := *n
	m.Left, m.Right = c[0], c[1]
	return &m
}

func (n *Cross) WithChildren(c []Node) Node      { return &Cross{c[0], c[1]} }
func (n *Positional) WithChildren(c []Node) Node { return &Positional{c[0], c[1]} }

func (n *DelimJoin) WithChildren(c []Node) Node {
	m := *n
	m.Join = n.Join.WithChildren(c).(*Join)
	return &m
}

func (n *DelimGet) WithChildren([]Node) Node { return n }
