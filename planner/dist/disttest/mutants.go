package disttest

import (
	"fmt"
	"slices"

	"manta/planner/dist"
	"manta/planner/plan"
)

// Mutant is a plan with one mistake in it. The mistake is in the plan while With runs.
type Mutant struct {
	Kind string // what was done, the same word for every plan
	What string // what was done to what
	Edge *dist.Edge

	mutate func() (undo func())
}

// With makes the mistake, calls f, and puts the plan right again.
func (m Mutant) With(f func()) {
	undo := m.mutate()
	defer undo()
	f()
}

// Kinds of mutants for which there is no excuse.
const (
	Removed        = "removed" // the rows of an exchange stay at the tasks where they were
	wronglyDone    = "completed wrongly"
	takenForWhole  = "partial taken for whole"
	wholeEachScans = "shared scan whole"
	outOfOrder     = "sorted ranges out of order"
)

// Fatal reports whether no such mutant gives the right rows, whatever the plan.
func (m Mutant) Fatal() bool {
	return slices.Contains([]string{Removed, wronglyDone, takenForWhole, wholeEachScans, outOfOrder}, m.Kind)
}

// Mutants gives the mutants of a plan of several partitions: each with one
// exchange removed, or moving its rows otherwise, one scan shared out that was
// whole or the other way round, or one partial result that is completed wrongly.
func Mutants(p *dist.Plan) []Mutant {
	m := &mutants{plan: p}
	for _, s := range p.Stages {
		for _, e := range s.Outputs {
			if e.To != nil && (e.From.Tasks > 1 || e.To.Tasks > 1) {
				m.edge(e)
			}
		}
		m.siblings(s)
		if s.Tasks > 1 {
			m.scans(s)
		}
		m.completions(s)
		m.order(s)
	}
	return m.out
}

type mutants struct {
	plan *dist.Plan
	out  []Mutant
}

func (m *mutants) add(kind string, e *dist.Edge, what string, mutate func() func()) {
	m.out = append(m.out, Mutant{Kind: kind, What: what, Edge: e, mutate: mutate})
}

// change adds a mutant in which an edge has another kind and other keys.
func (m *mutants) change(e *dist.Edge, name string, kind dist.ExchangeKind, keys []plan.Expr) {
	what := fmt.Sprintf("edge %d, %s to stage %d: %s", e.ID, e.Kind, e.To.ID, name)
	if keys != nil {
		what += fmt.Sprintf(" by columns %v", plan.RefsOf(keys...))
	}
	m.add(name, e, what, func() func() {
		oldKind, oldKeys := e.Kind, e.Keys
		e.Kind, e.Keys = kind, keys
		return func() { e.Kind, e.Keys = oldKind, oldKeys }
	})
}

// edge adds the mutants of one exchange.
func (m *mutants) edge(e *dist.Edge) {
	if e.Kind != dist.Forward {
		m.removed(e)
	}
	if e.To.Tasks == 1 {
		return // however the rows are sent to it, one task gets them all
	}
	if e.Kind == dist.Hash {
		m.keys(e)
	} else {
		for i := range min(len(e.Types), 3) {
			m.change(e, e.Kind.String()+" becomes hash", dist.Hash, []plan.Expr{column(e, i)})
		}
	}
	if e.Kind != dist.Broadcast {
		m.change(e, e.Kind.String()+" becomes broadcast", dist.Broadcast, nil)
	}
	if e.Kind != dist.Pin {
		m.change(e, e.Kind.String()+" becomes pin", dist.Pin, nil)
	}
}

// removed lets the rows of an edge stay where they are.
func (m *mutants) removed(e *dist.Edge) {
	m.add(Removed, e, fmt.Sprintf("edge %d, %s: removed", e.ID, e.Kind), func() func() {
		kind, from, to := e.Kind, e.From.Tasks, e.To.Tasks
		switch {
		case e.Kind == dist.Gather: // the reader runs in all tasks
			e.To.Tasks, e.Kind = m.plan.Partitions, dist.Forward
		case e.From.Tasks > 1:
			e.Kind = dist.Forward
		case e.Kind == dist.Pin: // the writer runs in all tasks
			e.From.Tasks, e.Kind = m.plan.Partitions, dist.Forward
		default: // one task's rows stay at one task of the reader
			e.Kind = dist.Pin
		}
		return func() { e.Kind, e.From.Tasks, e.To.Tasks = kind, from, to }
	})
}

// keys adds the mutants of a hash exchange that hash by something else.
func (m *mutants) keys(e *dist.Edge) {
	for i := range e.Keys {
		if len(e.Keys) > 1 {
			m.change(e, "hash without a key", dist.Hash, append(append([]plan.Expr{}, e.Keys[:i]...), e.Keys[i+1:]...))
			j := (i + 1) % len(e.Keys)
			swapped := append([]plan.Expr{}, e.Keys...)
			swapped[i], swapped[j] = swapped[j], swapped[i]
			m.change(e, "hash by keys in another order", dist.Hash, swapped)
		}
		others := 0
		for c := range e.Types {
			if r, ok := e.Keys[i].(*plan.Ref); ok && r.Index == c || others == 3 {
				continue
			}
			others++
			keys := append([]plan.Expr{}, e.Keys...)
			keys[i] = column(e, c)
			m.change(e, "hash by another column", dist.Hash, keys)
		}
	}
}

// siblings adds mutants in which two inputs of a stage change places: each moves its rows as the other should.
func (m *mutants) siblings(s *dist.Stage) {
	if s.Tasks == 1 {
		return
	}
	for i, a := range s.Inputs {
		for _, b := range s.Inputs[i+1:] {
			if a.Kind == b.Kind {
				continue
			}
			m.add("kinds of two inputs exchanged", a, fmt.Sprintf("edges %d and %d exchange their kinds, %s and %s", a.ID, b.ID, a.Kind, b.Kind), func() func() {
				ak, bk, aKeys, bKeys := a.Kind, b.Kind, a.Keys, b.Keys
				a.Kind, b.Kind, a.Keys, b.Keys = bk, ak, nil, nil
				for _, e := range []*dist.Edge{a, b} {
					if e.Kind == dist.Hash {
						e.Keys = []plan.Expr{column(e, 0)}
					}
				}
				return func() { a.Kind, b.Kind, a.Keys, b.Keys = ak, bk, aKeys, bKeys }
			})
		}
	}
}

// order adds mutants in which sorted ranges do not stay in order.
func (m *mutants) order(s *dist.Stage) {
	for i, e := range s.Outputs {
		if e.Kind == dist.Range {
			m.add(outOfOrder, e, fmt.Sprintf("edge %d: ranges of the other order", e.ID), func() func() {
				old := e.Order
				e.Order = append([]plan.Order{}, old...)
				e.Order[0].Desc = !e.Order[0].Desc
				return func() { e.Order = old }
			})
		}
		if e.Source > 0 && e.Source < len(s.Outputs) {
			next := s.Outputs[i+1]
			m.add(outOfOrder, e, fmt.Sprintf("edges %d and %d have each other's rows", e.ID, next.ID), func() func() {
				e.Source, next.Source = next.Source, e.Source
				return func() { e.Source, next.Source = next.Source, e.Source }
			})
		}
	}
}

// scans adds mutants in which a scan is whole in every task though it was shared out, or shared out though it was whole.
func (m *mutants) scans(s *dist.Stage) {
	plan.Walk(s.Root, func(n plan.Node) bool {
		if scan, ok := n.(*dist.Scan); ok {
			kind := "whole scan shared out"
			if scan.Split {
				kind = wholeEachScans
			}
			m.add(kind, nil, fmt.Sprintf("stage %d: %s", s.ID, kind), func() func() {
				scan.Split = !scan.Split
				return func() { scan.Split = !scan.Split }
			})
		}
		return true
	})
}

// completions adds mutants in which a partial result is not completed as it should be.
func (m *mutants) completions(s *dist.Stage) {
	part, ok := s.Root.(*dist.Partial)
	if !ok {
		return
	}
	for _, e := range s.Outputs {
		plan.Walk(e.To.Root, func(n plan.Node) bool {
			children := n.Children()
			if in, ok := first(children).(*dist.Input); !ok || in.Edge != e {
				return true
			}
			for name, other := range wrong(n, part.Op) {
				m.add(wronglyDone, e, fmt.Sprintf("edge %d: %s", e.ID, name), func() func() {
					root := e.To.Root
					e.To.Root = replace(root, n, other)
					return func() { e.To.Root = root }
				})
			}
			return false
		})
	}
	m.add(takenForWhole, nil, fmt.Sprintf("stage %d: its partial result is taken for a whole one", s.ID), func() func() {
		s.Root = part.Op
		return func() { s.Root = part }
	})
}

// wrong gives operators that do not complete what op began, in the place of n, which does.
func wrong(n, op plan.Node) map[string]plan.Node {
	child := n.Children()[0]
	out := map[string]plan.Node{}
	switch n := n.(type) {
	case *plan.Aggregate:
		for i, a := range n.Aggs {
			with := func(what string, change func(*plan.Agg)) {
				agg := *a
				change(&agg)
				final := *n
				final.Aggs = append(append(append([]*plan.Agg{}, n.Aggs[:i]...), &agg), n.Aggs[i+1:]...)
				out[fmt.Sprintf("%s of aggregate %d, %s", what, i, a.Name)] = &final
			}
			with("another function", func(a *plan.Agg) {
				if a.Name == "min" {
					a.Name = "max"
				} else {
					a.Name = "min"
				}
			})
			with("DISTINCT", func(a *plan.Agg) { a.Distinct = true })
			if width := len(child.Types()); width > 1 {
				with("another column", func(a *plan.Agg) {
					r := *a.Params[0].(*plan.Ref)
					r.Index = (r.Index + 1) % width
					a.Params = []plan.Expr{&r}
				})
			}
		}
		if len(n.Groups) > 1 {
			final := *n
			final.Groups = n.Groups[1:]
			final.Sets = [][]int{plan.Range(len(final.Groups))}
			out["a group is missing"] = &final
		}
	case *plan.TopN:
		other := *n
		other.Limit = n.Limit + op.(*plan.TopN).Limit + 1
		out["more rows than the parts have"] = &other
		if len(n.Keys) > 0 {
			other := *n
			other.Keys = append([]plan.Order{}, n.Keys...)
			other.Keys[0].Desc = !other.Keys[0].Desc
			out["the other order"] = &other
		}
	case *plan.Limit:
		other := *n
		other.Limit.Rows += op.(*plan.Limit).Limit.Rows + 1
		out["more rows than the parts have"] = &other
	case *plan.Distinct:
		other := *n
		other.On = []plan.Expr{&plan.Ref{Index: 0, T: child.Types()[0]}}
		if len(child.Types()) > 1 {
			out["fewer columns"] = &other
		}
		out["rows as they are"] = &plan.Project{Child: child, Exprs: columns(child.Types())}
	}
	return out
}

func first(nodes []plan.Node) plan.Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[0]
}

// replace is the tree below root with another node in the place of one.
func replace(root, one, other plan.Node) plan.Node {
	return plan.Rewrite(root, func(n plan.Node) plan.Node {
		if n == one {
			return other
		}
		return n
	})
}

func column(e *dist.Edge, i int) plan.Expr { return &plan.Ref{Index: i, T: e.Types[i]} }

func columns(types []plan.Type) []plan.Expr {
	out := make([]plan.Expr, len(types))
	for i, t := range types {
		out[i] = &plan.Ref{Index: i, T: t}
	}
	return out
}
