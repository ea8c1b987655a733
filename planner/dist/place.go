package dist

import (
	"fmt"
	"slices"

	"manta/planner/plan"
)

// Options steer the placing of a plan.
type Options struct {
	Partitions int // tasks of a partitioned stage; at least 1
	// ReplicateBytes is the estimated size up to which a scan is read whole by every task.
	ReplicateBytes int64
	// BroadcastBytes is the estimated size up to which a join's side may be sent to
	// every task although its rows could be hashed.
	BroadcastBytes int64
	// SortBytes is the estimated size up to which rows are sorted by one task.
	SortBytes int64
	// Rows gives DuckDB's estimate of an operator's rows.
	Rows func(plan.Node) (float64, bool)
	// FileBytes gives the uncompressed bytes and the number of all rows of files.
	FileBytes func(files []string) (bytes, rows int64)
}

// Default sizes for Options.
const (
	DefaultReplicateBytes int64 = 1 << 20
	DefaultBroadcastBytes int64 = 64 << 20
	DefaultSortBytes      int64 = 1 << 30
)

// Placed is a plan with exchanges.
type Placed struct {
	Root   plan.Node
	Dist   Distribution
	Rows   float64   // estimate
	Shared []*Shared // in an order in which each reads only earlier ones
	Notes  []string  // what runs in a single task although its input could be spread, and why
}

// Place puts exchanges into a plan. The result is right for any number of tasks;
// estimates decide only which of several right plans it is. The error is a
// *plan.UnsupportedError.
func Place(root plan.Node, o Options) (*Placed, error) {
	if err := needsSession(root); err != nil {
		return nil, err
	}
	p := &placer{o: o, ctes: map[int]*cte{}, delims: map[int]*Shared{}, last: lastSort(root)}
	out, err := p.place(root)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(root.Types(), odd) {
		out = p.gather(out) // one task makes of what has travelled what the client asked for
	}
	return &Placed{Root: out.node, Dist: out.dist, Rows: out.rows, Shared: p.shared, Notes: p.notes}, nil
}

// placer holds what is known while a plan is placed.
type placer struct {
	o      Options
	ctes   map[int]*cte
	delims map[int]*Shared // the distinct values of a DelimJoin, by its ID
	shared []*Shared
	notes  []string
	last   *plan.OrderBy // whose order is the result's, or nil

	keptParts int // of recursions
}

// placed is a part of the plan that has been placed.
type placed struct {
	node plan.Node
	dist Distribution
	rows float64 // estimate
}

func (x placed) bytes() float64 { return x.rows * rowBytes(x.node.Types()) }

// place places an operator and everything below it.
func (p *placer) place(n plan.Node) (placed, error) {
	switch n := n.(type) {
	case *plan.Get:
		return p.scan(n)
	case *plan.DummyScan, *plan.Empty:
		return placed{n, p.everywhere(n), 1}, nil
	case *plan.Values:
		if n.Child == nil {
			return placed{n, p.everywhere(n), float64(len(n.Rows))}, nil
		}
	case *plan.Filter:
		return p.rowwise(n, n.Child, func(d Distribution) Distribution { return d.keep(n.Keep, 0) })
	case *plan.Project:
		return p.rowwise(n, n.Child, func(d Distribution) Distribution { return d.rewrite(projector(n.Exprs)) })
	case *plan.Unnest:
		return p.rowwise(n, n.Child, func(d Distribution) Distribution { return d })
	case *plan.Aggregate:
		return p.aggregate(n)
	case *plan.Distinct:
		return p.distinct(n)
	case *plan.Join:
		return p.join(n)
	case *plan.Cross:
		return p.cross(n)
	case *plan.OrderBy:
		return p.sort(n)
	case *plan.TopN:
		return p.topN(n)
	case *plan.Limit:
		return p.limit(n)
	case *plan.Window:
		return p.window(n)
	case *plan.SetOp:
		return p.setOp(n)
	case *plan.CTE:
		return p.cte(n)
	case *plan.CTERef:
		return p.cteRef(n)
	case *plan.DelimJoin:
		return p.delimJoin(n)
	case *plan.DelimGet:
		return p.delimGet(n)
	case *plan.RecursiveCTE:
		return p.recursive(n)
	case *plan.Positional:
		if unordered(n) {
			return placed{}, &plan.UnsupportedError{What: "a positional join, which needs the rows in the order of the files"}
		}
	case *plan.TableFunc:
		if !pureFunctions[n.Name] {
			return placed{}, &plan.UnsupportedError{What: "table function " + n.Name + ", which may look at the session that runs it"}
		}
	case *plan.TableScan:
		return placed{}, &plan.UnsupportedError{What: fmt.Sprintf("table %s, which only the planning node has", n.Table)}
	}
	return p.gathered(n, fmt.Sprintf("%T needs all its rows in one task", n))
}

// everywhere is the distribution of rows that come from the plan itself.
func (p *placer) everywhere(n plan.Node) Distribution {
	if plan.Volatile(n) {
		return Distribution{Kind: Single}
	}
	return Distribution{Kind: Replicated}
}

// rows is DuckDB's estimate for an operator of the original plan, or else the given one.
func (p *placer) rows(n plan.Node, otherwise float64) float64 {
	if r, ok := p.o.Rows(n); ok {
		return r
	}
	return otherwise
}

func (p *placer) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// rowwise places an operator that looks at one row at a time. A volatile
// expression must be computed once for each row of the query, and over rows in
// one task, for a replicated input would give every task other values.
func (p *placer) rowwise(n, child plan.Node, to func(Distribution) Distribution) (placed, error) {
	c, err := p.place(child)
	if err != nil {
		return placed{}, err
	}
	if plan.Volatile(n) && c.dist.Kind != Single {
		p.note("a volatile function is computed in one task")
		c = p.gather(c)
	}
	return placed{n.WithChildren([]plan.Node{c.node}), to(c.dist), p.rows(n, c.rows)}, nil
}

// projector maps expressions over a projection's input to expressions over its output.
func projector(exprs []plan.Expr) func(plan.Expr) plan.Expr {
	return func(e plan.Expr) plan.Expr {
		want := canonical(e)
		for i, x := range exprs {
			if canonical(x) == want {
				return &plan.Ref{Index: i, T: x.Type()}
			}
		}
		// The expression's columns may be there although the expression is not.
		at := map[int]int{}
		for i, x := range exprs {
			if r, ok := x.(*plan.Ref); ok {
				at[r.Index] = i
			}
		}
		for _, r := range plan.RefsOf(e) {
			if _, ok := at[r]; !ok {
				return nil
			}
		}
		return plan.MapRefs(e, func(r *plan.Ref) plan.Expr { return &plan.Ref{Index: at[r.Index], T: r.T} })
	}
}

// unordered reports whether an operator's rows have no order but that of the files which they come from.
func unordered(n plan.Node) bool {
	switch n.(type) {
	case *plan.OrderBy, *plan.TopN:
		return false
	case *plan.Get, *plan.CTERef, *plan.DelimGet:
		return true
	}
	return slices.ContainsFunc(n.Children(), unordered)
}

// gathered places an operator in one task, over all rows of its inputs.
func (p *placer) gathered(n plan.Node, why string) (placed, error) {
	var children []plan.Node
	var rows float64
	spread := false
	for _, child := range n.Children() {
		c, err := p.place(child)
		if err != nil {
			return placed{}, err
		}
		spread = spread || c.dist.Kind == Partitioned
		c = p.gather(c)
		children = append(children, c.node)
		rows = max(rows, c.rows)
	}
	if spread && why != "" {
		p.note("%s", why)
	}
	return placed{n.WithChildren(children), Distribution{Kind: Single}, p.rows(n, rows)}, nil
}

// gather brings all rows into one task.
func (p *placer) gather(c placed) placed {
	switch c.dist.Kind {
	case Partitioned:
		return p.exchange(c, Gather, nil)
	case Replicated: // what every task could compute, one task can
		c.dist = Distribution{Kind: Single}
	}
	return c
}

// hash brings rows with equal keys to one task; rows that are there already stay.
func (p *placer) hash(c placed, keys []plan.Expr) placed {
	if c.dist.by(keys) {
		return c
	}
	return p.exchange(c, Hash, keys)
}

// replicate brings all rows to every task.
func (p *placer) replicate(c placed) placed {
	if c.dist.Kind == Replicated {
		return c
	}
	return p.exchange(c, Broadcast, nil)
}

// pin gives rows of one task a place among partitioned rows.
func (p *placer) pin(c placed) placed {
	if c.dist.Kind == Partitioned {
		return c
	}
	return p.exchange(c, Pin, nil)
}

func (p *placer) exchange(c placed, kind ExchangeKind, keys []plan.Expr) placed {
	d := Distribution{Kind: Partitioned}
	switch kind {
	case Gather:
		d = Distribution{Kind: Single}
	case Broadcast:
		d = Distribution{Kind: Replicated}
	case Hash:
		d = hashed(keys)
	}
	return placed{&Exchange{Child: c.node, Kind: kind, Keys: keys, From: c.dist, Rows: c.rows}, d, c.rows}
}

// scan places a scan: a small one is read whole by every task, for that costs
// less than moving its rows; others are shared out.
func (p *placer) scan(n *plan.Get) (placed, error) {
	bytes, total := p.o.FileBytes(n.Files)
	rows := p.rows(n, float64(total))
	if ok, why := n.Splittable(); !ok {
		p.note("a scan runs in one task: %s", why)
		return placed{&Scan{Get: n}, Distribution{Kind: Single}, rows}, nil
	}
	if plan.Volatile(n) {
		p.note("a scan runs in one task: its filter is volatile")
		return placed{&Scan{Get: n}, Distribution{Kind: Single}, rows}, nil
	}
	if p.o.Partitions == 1 {
		return placed{&Scan{Get: n}, Distribution{Kind: Single}, rows}, nil
	}
	if bytes <= p.o.ReplicateBytes {
		return placed{&Scan{Get: n}, Distribution{Kind: Replicated}, rows}, nil
	}
	return placed{&Scan{Get: n, Split: true}, Distribution{Kind: Partitioned}, rows}, nil
}
