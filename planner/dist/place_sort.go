package dist

import (
	"fmt"
	"slices"
	"strings"

	"manta/planner/plan"
)

// Rows that are too many to be sorted by one task are sorted by ranges: a sample
// of the sort keys gives bounds, each task gets the rows between two of them and
// sorts these, and one task takes the tasks' rows one after the other.

const (
	// maxRanges bounds the inputs of the task that takes the sorted rows, of which each is one task's.
	maxRanges = 64
	// sampleRows is the number of rows of each task's sample.
	sampleRows = "1000"
)

// lastSort is the ORDER BY in whose order the rows of a query are, or nil. In
// another's place an operator might take the tasks' rows in an order of its own.
func lastSort(root plan.Node) *plan.OrderBy {
	switch n := root.(type) {
	case *plan.OrderBy:
		return n
	case *plan.Project:
		return lastSort(n.Child)
	case *plan.CTE:
		return lastSort(n.Body)
	}
	return nil
}

// sort places an ORDER BY without a LIMIT.
func (p *placer) sort(n *plan.OrderBy) (placed, error) {
	c, err := p.place(n.Child)
	if err != nil {
		return placed{}, err
	}
	if n != p.last || c.dist.Kind != Partitioned || plan.Volatile(n) || p.o.Partitions > maxRanges ||
		c.bytes() <= float64(p.o.SortBytes) || !slices.ContainsFunc(n.Keys, varies) || slices.ContainsFunc(n.Keys, unranged) {
		c = p.gather(c)
		return placed{n.WithChildren([]plan.Node{c.node}), Distribution{Kind: Single}, p.rows(n, c.rows)}, nil
	}
	return p.ranges(n, c), nil
}

func varies(o plan.Order) bool { return len(plan.RefsOf(o.Expr)) > 0 }

// unranged reports a sort key of a type whose order is not surely that of its sort keys' bytes.
func unranged(o plan.Order) bool {
	t := o.Expr.Type()
	switch t.ID {
	case "VARCHAR", "BLOB", "BOOLEAN", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS", "TIMESTAMP_S", "TIMESTAMP_MS",
		"DECIMAL", "DOUBLE", "FLOAT", "UUID", "INTERVAL":
		return t.Alias != ""
	}
	return !t.IsInteger() || t.Alias != ""
}

// ranges places a sort of the partitioned rows of c by ranges.
func (p *placer) ranges(n *plan.OrderBy, c placed) placed {
	input := func() placed { return c }
	if moves(c.node) {
		s := p.share("rows to be sorted", c)
		input = func() placed { return read(s) }
	}
	// The bounds of all ranges but the last, as one row with a list.
	in := input()
	keys := placed{&plan.Project{Child: in.node, Exprs: []plan.Expr{sortKey(n.Keys)}}, Distribution{Kind: Partitioned}, in.rows}
	keys.node = &plan.Sample{Child: keys.node, Size: sampleRows, Method: "Reservoir", Seed: 1}
	keys.rows = 1000 * float64(p.o.Partitions)
	keys = p.gather(keys)
	key := &plan.Ref{Index: 0, T: plan.Blob}
	list := plan.ListOf(plan.Blob)
	keys.node = &plan.Aggregate{Child: keys.node, Aggs: []*plan.Agg{{Name: "list", Params: []plan.Expr{key}, Order: []plan.Order{{Expr: key}}, T: list}}}
	keys.node = &plan.Project{Child: keys.node, Exprs: []plan.Expr{&plan.Raw{
		SQL:    fmt.Sprintf("list_transform(range(1, %d), lambda i: {0}[1 + i * len({0}) // %d])", p.o.Partitions, p.o.Partitions),
		Params: []plan.Expr{&plan.Ref{Index: 0, T: list}}, T: list,
	}}}
	keys.rows = 1
	bounds := p.replicate(keys)

	in = input()
	width := len(in.node.Types())
	exprs := append(refs(in.node.Types()), &plan.Ref{Index: width, T: list}, sortKey(n.Keys))
	spread := &plan.Project{Child: &plan.Cross{Left: in.node, Right: bounds.node}, Exprs: exprs}
	of := &Exchange{Child: spread, Kind: Range, Keys: []plan.Expr{rangeOf(width)}, Order: n.Keys, From: Distribution{Kind: Partitioned}, Rows: in.rows}
	rows := &plan.Project{Child: of, Exprs: refs(in.node.Types())}
	sorted := n.WithChildren([]plan.Node{rows})
	out := &Exchange{Child: sorted, Kind: InOrder, From: Distribution{Kind: Partitioned}, Rows: in.rows}
	return placed{out, Distribution{Kind: Single}, p.rows(n, c.rows)}
}

// sortKey is a BLOB by whose bytes rows are in the order of the keys.
func sortKey(keys []plan.Order) *plan.Raw {
	args := make([]string, len(keys))
	out := &plan.Raw{T: plan.Blob}
	for i, k := range keys {
		way := "ASC"
		if k.Desc {
			way = "DESC"
		}
		nulls := "LAST"
		if k.NullsFirst {
			nulls = "FIRST"
		}
		args[i] = fmt.Sprintf("{%d}, '%s NULLS %s'", i, way, nulls)
		out.Params = append(out.Params, k.Expr)
	}
	// Without a text among them, short keys would make a BIGINT.
	out.SQL = "create_sort_key(" + strings.Join(args, ", ") + ", '', 'ASC NULLS LAST')"
	return out
}

// rangeOf is the number of the range that a row is in: how many of the bounds, the
// list at a column, its sort key, at the next column, is above.
func rangeOf(bounds int) *plan.Raw {
	return &plan.Raw{
		SQL:    "CAST(len(list_filter({0}, lambda b: b < {1})) AS UINTEGER)",
		Params: []plan.Expr{&plan.Ref{Index: bounds, T: plan.ListOf(plan.Blob)}, &plan.Ref{Index: bounds + 1, T: plan.Blob}},
		T:      plan.UInteger,
	}
}
