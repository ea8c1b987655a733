package dist

import (
	"manta/planner/plan"
)

// Plan is a query cut into stages.
type Plan struct {
	Stages     []*Stage // each reads only from earlier ones
	Result     *Edge    // the edge to the client; its To is nil
	Partitions int
	Notes      []string
}

// Stage is a fragment and the number of tasks that run it.
type Stage struct {
	ID      int
	Root    plan.Node // its leaves are Scans, Inputs, and rows of the plan itself
	Dist    Distribution
	Tasks   int
	Inputs  []*Edge
	Outputs []*Edge
	Name    string // of the shared part it computes, else empty
}

// Edge is an exchange between two stages, or from the last stage to the client.
type Edge struct {
	ID    int
	From  *Stage
	To    *Stage // nil: the client
	Kind  ExchangeKind
	Keys  []plan.Expr  // Hash: over From's output; Range: the number of the range
	Order []plan.Order // Range: by which the ranges are in order, over From's output
	// Source, when not 0, is the number from 1 of the only task that writes the edge.
	Source int
	// Types are the types of From's output, Keep the columns of it that are sent.
	Types []plan.Type
	Keep  []int
	Rows  float64 // estimate
}

// Readers is the number of tasks that read the edge.
func (e *Edge) Readers() int {
	if e.To == nil {
		return 1
	}
	return e.To.Tasks
}

// Bytes estimates what one reading of the edge moves.
func (e *Edge) Bytes() float64 {
	types := make([]plan.Type, len(e.Keep))
	for i, k := range e.Keep {
		types[i] = e.Types[k]
	}
	return e.Rows * rowBytes(types)
}

// Waits reports whether the edge must take all of its producers' rows although a
// reader takes none: its stage feeds other edges too, whose readers may have to
// be served first, or its rows go to several readers that each have their own order.
// A task whose rows nobody else writes to the same place has one output, and has
// read all its input before the first row of it, for it sorts.
func (e *Edge) Waits() bool {
	return len(e.From.Outputs) > 1 && e.Source == 0 || e.Kind == Broadcast && e.Readers() > 1
}

// Writes reports whether a task of From, from 0, writes the edge.
func (e *Edge) Writes(task int) bool { return e.Source == 0 || e.Source == task+1 }

// Cut cuts a placed plan at its exchanges.
func Cut(p *Placed, partitions int) *Plan {
	c := &cutter{plan: &Plan{Partitions: partitions, Notes: p.Notes}, stages: map[*Shared]*Stage{}}
	// Shared parts come first, so that every stage reads from earlier ones only.
	for _, s := range p.Shared {
		c.stages[s] = c.stage(s.Def, s.Dist, s.Name)
	}
	root := c.stage(p.Root, p.Dist, "")
	c.plan.Result = c.edge(root, nil, Gather, nil, p.Rows)
	c.removeUnread()
	for i, s := range c.plan.Stages {
		s.ID = i
	}
	prune(c.plan)
	return c.plan
}

type cutter struct {
	plan   *Plan
	stages map[*Shared]*Stage
	edges  int
}

// stage makes a stage of a part of the plan, and stages of everything below its exchanges.
func (c *cutter) stage(root plan.Node, d Distribution, name string) *Stage {
	s := &Stage{Dist: d, Tasks: 1, Name: name}
	if d.Kind == Partitioned {
		s.Tasks = c.plan.Partitions
	}
	s.Root = c.fragment(root, s)
	c.plan.Stages = append(c.plan.Stages, s)
	return s
}

// fragment replaces exchanges and shared parts by inputs of the stage to.
func (c *cutter) fragment(n plan.Node, to *Stage) plan.Node {
	switch n := n.(type) {
	case *Exchange:
		if ref, ok := n.Child.(*SharedRef); ok {
			return &Input{Edge: c.edge(c.stages[ref.Shared], to, n.Kind, n.Keys, n.Rows)}
		}
		from := c.stage(n.Child, n.From, "")
		if n.Kind == InOrder {
			return c.inOrder(from, to, n.Rows)
		}
		e := c.edge(from, to, n.Kind, n.Keys, n.Rows)
		e.Order = n.Order
		return &Input{Edge: e}
	case *SharedRef:
		from := c.stages[n.Shared]
		kind := Forward
		if from.Tasks != to.Tasks || from.Dist.Kind == Single {
			kind = Gather // a shared part in one task is read in place only by a single stage
		}
		return &Input{Edge: c.edge(from, to, kind, nil, n.Shared.Rows)}
	}
	children := n.Children()
	if len(children) == 0 {
		return n
	}
	cut := make([]plan.Node, len(children))
	// A join reads its right side first, so the stages that make it come first too.
	for i := len(children) - 1; i >= 0; i-- {
		cut[i] = c.fragment(children[i], to)
	}
	return n.WithChildren(cut)
}

// inOrder reads the tasks of a stage one after the other, through an edge from each.
func (c *cutter) inOrder(from, to *Stage, rows float64) plan.Node {
	all := &plan.SetOp{Kind: plan.Union, All: true, Out: from.Root.Types()}
	for i := range from.Tasks {
		e := c.edge(from, to, Gather, nil, rows/float64(from.Tasks))
		e.Source = i + 1
		all.Inputs = append(all.Inputs, &Input{Edge: e})
	}
	if len(all.Inputs) == 1 {
		return all.Inputs[0]
	}
	return all
}

func (c *cutter) edge(from, to *Stage, kind ExchangeKind, keys []plan.Expr, rows float64) *Edge {
	if kind == Broadcast && to.Tasks == 1 {
		kind = Gather
	}
	e := &Edge{ID: c.edges, From: from, To: to, Kind: kind, Keys: keys, Types: from.Root.Types(), Rows: rows}
	c.edges++
	from.Outputs = append(from.Outputs, e)
	if to != nil {
		to.Inputs = append(to.Inputs, e)
	}
	return e
}

// removeUnread drops stages whose output nobody reads: a CTE that is never
// referenced, or the values of a subquery that does not ask for them.
func (c *cutter) removeUnread() {
	for i := len(c.plan.Stages) - 1; i >= 0; i-- {
		s := c.plan.Stages[i]
		if len(s.Outputs) > 0 {
			continue
		}
		for _, e := range s.Inputs {
			e.From.Outputs = remove(e.From.Outputs, e)
		}
		c.plan.Stages = append(c.plan.Stages[:i:i], c.plan.Stages[i+1:]...)
	}
}

func remove(edges []*Edge, e *Edge) []*Edge {
	var out []*Edge
	for _, x := range edges {
		if x != e {
			out = append(out, x)
		}
	}
	return out
}
