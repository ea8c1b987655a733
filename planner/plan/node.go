package plan

// Node is an operator of the plan. Nodes are immutable.
type Node interface {
	Children() []Node
	// WithChildren is a copy over other children; there must be as many, with the same output types.
	WithChildren(children []Node) Node
	// Types are the types of the output columns.
	Types() []Type
}

// Leaf is a node that another package brings and that prints itself.
type Leaf interface {
	Node
	// PrintSQL gives a complete SELECT whose outputs are named c0, c1, ... and have the node's types.
	PrintSQL(p *Printer) (string, error)
}

// DummyScan is one row. DuckDB gives it one column, which nobody reads.
type DummyScan struct{}

// Empty is no rows.
type Empty struct{ Out []Type }

// Values is a list of rows. With a Child the expressions refer to its columns, and each row of the child gives all the
// rows of the list; the child's own columns are not in the output.
type Values struct {
	Child Node // nil = none
	Rows  [][]Expr
	Out   []Type
}

// Project computes columns.
type Project struct {
	Child Node
	Exprs []Expr
}

// Filter keeps the rows for which every condition holds, and the columns in Keep.
type Filter struct {
	Child Node
	Conds []Expr
	Keep  []int
}

// Aggregate groups. The output is the groups, then the aggregates, then the grouping values.
type Aggregate struct {
	Child  Node
	Groups []Expr
	// Sets are the grouping sets, as positions in Groups. None, or one of all groups, is plain GROUP BY. Without groups, no
	// set is the aggregate over everything, which gives one row for an empty input; so does one empty set.
	Sets      [][]int
	Aggs      []*Agg
	Groupings [][]int // each: the groups whose GROUPING() value is a BIGINT column
}

// Distinct removes duplicates.
type Distinct struct {
	Child Node
	On    []Expr  // nil = all columns; else the first row for each value of these
	Order []Order // which row is first
}

// Window adds the values of window functions to the child's columns.
type Window struct {
	Child Node
	Exprs []*WindowExpr
}

// Unnest adds, to each row, the elements of lists side by side, padded with NULL to the longest. A struct's fields are
// not unnested here. The output is the child's columns, then one column for each list.
type Unnest struct {
	Child Node
	Lists []Expr
}

// OrderBy sorts, and outputs the columns in Keep.
type OrderBy struct {
	Child Node
	Keys  []Order
	Keep  []int
}

// TopN is the rows [Offset, Offset+Limit) in order.
type TopN struct {
	Child         Node
	Keys          []Order
	Limit, Offset uint64
}

// Limit cuts.
type Limit struct {
	Child         Node
	Limit, Offset LimitValue
}

// LimitValue is a bound of a Limit. The zero value is no bound.
type LimitValue struct {
	Set     bool
	Percent bool
	Rows    uint64
	Share   string // with Percent: the number, as text
	Expr    Expr   // when not nil, the value is this expression in the child's first row
}

// Sample takes some of the rows.
type Sample struct {
	Child   Node
	Size    string // a number
	Percent bool
	Method  string // "System", "Bernoulli", "Reservoir"
	Seed    int64  // -1 = none
}

// SetKind is a set operation.
type SetKind int

// Set operations.
const (
	Union SetKind = iota
	Except
	Intersect
)

// SetOp unites or compares its inputs; a Union may have more than two.
type SetOp struct {
	Kind   SetKind
	All    bool
	Inputs []Node
	Out    []Type
}

func (*DummyScan) Types() []Type { return []Type{Integer} }
func (n *Empty) Types() []Type   { return n.Out }
func (n *Values) Types() []Type  { return n.Out }
func (n *Project) Types() []Type { return TypesOf(n.Exprs) }
func (n *Filter) Types() []Type  { return pick(n.Child.Types(), n.Keep) }

func (n *Aggregate) Types() []Type {
	out := append(TypesOf(n.Groups), TypesOf(n.Aggs)...)
	for range n.Groupings {
		out = append(out, BigInt)
	}
	return out
}

func (n *Distinct) Types() []Type { return n.Child.Types() }
func (n *Window) Types() []Type   { return join(n.Child.Types(), TypesOf(n.Exprs)) }

func (n *Unnest) Types() []Type {
	out := join(n.Child.Types(), nil)
	for _, l := range n.Lists {
		if c := l.Type().Child; c != nil {
			out = append(out, *c)
		} else {
			out = append(out, Null)
		}
	}
	return out
}

func (n *OrderBy) Types() []Type { return pick(n.Child.Types(), n.Keep) }
func (n *TopN) Types() []Type    { return n.Child.Types() }
func (n *Limit) Types() []Type   { return n.Child.Types() }
func (n *Sample) Types() []Type  { return n.Child.Types() }
func (n *SetOp) Types() []Type   { return n.Out }

// TypesOf are the types of expressions.
func TypesOf[E Expr](exprs []E) []Type {
	out := make([]Type, len(exprs))
	for i, e := range exprs {
		out[i] = e.Type()
	}
	return out
}

func pick(types []Type, keep []int) []Type {
	out := make([]Type, len(keep))
	for i, k := range keep {
		out[i] = types[k]
	}
	return out
}

func join(a, b []Type) []Type {
	out := make([]Type, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

// Range is 0, 1, ..., n-1: a Keep list of all n columns.
func Range(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
