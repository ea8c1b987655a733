package plan

// Expr is an expression over the columns of a node's children. Expressions are immutable.
type Expr interface {
	Type() Type
	// Args are the sub-expressions that are evaluated over the same columns, in a fixed order. A lambda's body is not
	// among them: its references count the lambda's parameters and captures.
	Args() []Expr
	// WithArgs is a copy with other arguments; there must be as many.
	WithArgs(args []Expr) Expr
}

// Ref is a column of the input, by position.
type Ref struct {
	Index int
	T     Type
}

// Const is a constant.
type Const struct{ Value Value }

// Cast converts; Try gives NULL where the conversion fails.
type Cast struct {
	Child Expr
	T     Type
	Try   bool
	// At is where the query's text has the cast, from 1; 0: nobody knows. It is no part of what the cast means.
	At int
}

// CompareOp is a comparison.
type CompareOp int

// Comparisons. NotDistinctFrom and DistinctFrom treat NULL as a value.
const (
	Eq CompareOp = iota
	Ne
	Lt
	Le
	Gt
	Ge
	NotDistinctFrom
	DistinctFrom
)

// Compare gives BOOLEAN.
type Compare struct {
	Op          CompareOp
	Left, Right Expr
}

// Between is lower <= input <= upper; each bound may be exclusive.
type Between struct {
	Input, Lower, Upper            Expr
	LowerInclusive, UpperInclusive bool
}

// Conj joins its arguments by AND, or by OR.
type Conj struct {
	Or    bool
	Parts []Expr
}

// Case is CASE WHEN ... THEN ... ELSE ... END.
type Case struct {
	Checks []CaseCheck
	Else   Expr
	T      Type
}

// CaseCheck is one branch of a Case.
type CaseCheck struct{ When, Then Expr }

// OperatorKind is one of the operators that are neither comparison nor function.
type OperatorKind int

// Operators. For In and NotIn the first argument is the tested value.
const (
	Not OperatorKind = iota
	IsNull
	IsNotNull
	In
	NotIn
	Coalesce
	Try
)

// Operator applies one of them.
type Operator struct {
	Kind  OperatorKind
	Parts []Expr
	T     Type
}

// Func calls a scalar function.
type Func struct {
	Name   string
	Params []Expr
	Names  []string // when set, the names of the arguments; "" = none (struct_pack(a := x))
	Lambda *Lambda  // list_transform and its like: printed after the list argument
	T      Type
}

// Lambda is a function argument. In the Body, Ref{i} with i < Params is parameter i, in the order of SQL, and any other
// is capture i-Params, an expression over the columns that the call itself sees.
type Lambda struct {
	Params   int
	Captures []Expr
	Body     Expr
}

// Agg is an aggregate function; as an expression it stands only in an Aggregate.
type Agg struct {
	Name     string // "count_star" is count(*)
	Params   []Expr
	Distinct bool
	Filter   Expr // nil = all rows
	Order    []Order
	T        Type
}

// Order is a sort key.
type Order struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

// Raw is SQL text in which {0}, {1}, ... stand for the arguments.
type Raw struct {
	SQL      string
	Params   []Expr
	T        Type
	Volatile bool
}

func (e *Ref) Type() Type      { return e.T }
func (e *Const) Type() Type    { return e.Value.Type }
func (e *Cast) Type() Type     { return e.T }
func (e *Compare) Type() Type  { return Boolean }
func (e *Between) Type() Type  { return Boolean }
func (e *Conj) Type() Type     { return Boolean }
func (e *Case) Type() Type     { return e.T }
func (e *Operator) Type() Type { return e.T }
func (e *Func) Type() Type     { return e.T }
func (e *Agg) Type() Type      { return e.T }
func (e *Raw) Type() Type      { return e.T }
