package plan

import "slices"

// WindowExpr is a window function; it stands only in a Window.
type WindowExpr struct {
	Name        string // SQL name: "row_number", "lag", or an aggregate's
	Params      []Expr // with LEAD's and LAG's offset and default
	Distinct    bool
	ArgOrder    []Order // ORDER BY inside the call
	IgnoreNulls bool
	Filter      Expr // nil = all rows
	Partitions  []Expr
	Order       []Order
	Frame       Frame
	T           Type
}

// Frame is the window's frame.
type Frame struct {
	Unit       string // "ROWS", "RANGE", "GROUPS"
	Start, End Bound
	Exclude    string // "" or the words after EXCLUDE
}

// BoundKind says where a frame begins or ends.
type BoundKind int

// Bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Bound is one end of a frame. Offset is set for Preceding and Following.
type Bound struct {
	Kind   BoundKind
	Offset Expr
}

func (e *WindowExpr) Type() Type { return e.T }

func (e *WindowExpr) Args() []Expr {
	args := appendOrders(slices.Clone(e.Params), e.ArgOrder)
	if e.Filter != nil {
		args = append(args, e.Filter)
	}
	args = appendOrders(append(args, e.Partitions...), e.Order)
	for _, b := range []Bound{e.Frame.Start, e.Frame.End} {
		if b.Offset != nil {
			args = append(args, b.Offset)
		}
	}
	return args
}

func (e *WindowExpr) WithArgs(a []Expr) Expr {
	c := *e
	c.Params, a = slices.Clone(a[:len(e.Params)]), a[len(e.Params):]
	c.ArgOrder, a = takeOrders(e.ArgOrder, a)
	if e.Filter != nil {
		c.Filter, a = a[0], a[1:]
	}
	c.Partitions, a = slices.Clone(a[:len(e.Partitions)]), a[len(e.Partitions):]
	c.Order, a = takeOrders(e.Order, a)
	for _, b := range []*Bound{&c.Frame.Start, &c.Frame.End} {
		if b.Offset != nil {
			b.Offset, a = a[0], a[1:]
		}
	}
	return &c
}
