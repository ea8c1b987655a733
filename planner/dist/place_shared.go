package dist

import (
	"fmt"

	"manta/planner/plan"
)

// cte is a common table expression while the plan is placed.
type cte struct {
	shared *Shared
	// inline, when not nil, is placed anew at every reference: every task can
	// compute it by itself from small tables, for less than reading it would cost.
	inline *placed
}

// cte places a materialized common table expression: its definition is computed
// once, as a shared part.
func (p *placer) cte(n *plan.CTE) (placed, error) {
	d, err := p.place(n.Def)
	if err != nil {
		return placed{}, err
	}
	if d.dist.Kind == Replicated {
		p.ctes[n.ID] = &cte{inline: &d}
	} else {
		p.ctes[n.ID] = &cte{shared: p.share("cte "+n.Name, d)}
	}
	return p.place(n.Body)
}

func (p *placer) cteRef(n *plan.CTERef) (placed, error) {
	c := p.ctes[n.ID]
	if c == nil || n.Recurring {
		return placed{}, &plan.UnsupportedError{What: fmt.Sprintf("reference to unknown CTE %d", n.ID)}
	}
	if c.inline != nil {
		return *c.inline, nil
	}
	return read(c.shared), nil
}

// share makes what has been placed a shared part.
func (p *placer) share(name string, d placed) *Shared {
	if d.dist.Kind == Replicated {
		d = p.gather(d)
	}
	s := &Shared{ID: len(p.shared), Name: name, Def: d.node, Dist: d.dist, Rows: d.rows}
	p.shared = append(p.shared, s)
	return s
}

// read reads a shared part where its rows are.
func read(s *Shared) placed { return placed{&SharedRef{Shared: s}, s.Dist, s.Rows} }

// delimJoin places a join whose source also feeds its other side: the source is
// a shared part that is read by the join and by the DISTINCT over its columns,
// whose result the other side reads.
func (p *placer) delimJoin(n *plan.DelimJoin) (placed, error) {
	s, err := p.place(n.Source())
	if err != nil {
		return placed{}, err
	}
	source := s
	if s.dist.Kind != Replicated {
		source = read(p.share(fmt.Sprintf("source of subquery %d", n.ID), s))
	}
	values := p.delimValues(n, source)
	p.delims[n.ID] = p.share(fmt.Sprintf("values of subquery %d", n.ID), values)
	other, err := p.place(n.Other())
	if err != nil {
		return placed{}, err
	}
	l, r := source, other
	if n.Flipped {
		l, r = other, source
	}
	return p.joinOf(n.Join, l, r), nil
}

// delimValues places the distinct values of the source's columns.
func (p *placer) delimValues(n *plan.DelimJoin, source placed) placed {
	c := placed{
		node: &plan.Project{Child: source.node, Exprs: n.Columns},
		dist: source.dist.rewrite(projector(n.Columns)),
		rows: source.rows,
	}
	keys := refs(c.node.Types())
	if c.dist.Kind == Partitioned && !c.dist.within(keys) {
		c = placed{&Partial{Op: &plan.Distinct{Child: c.node}}, c.dist, c.rows}
		c = p.hash(c, keys)
	} else if c.dist.Kind == Replicated {
		c = p.gather(c)
	}
	rows := c.rows
	if r, ok := p.delimRows(n); ok {
		rows = r
	}
	return placed{&plan.Distinct{Child: c.node}, c.dist, rows}
}

// delimRows is DuckDB's estimate for the values of a DelimJoin.
func (p *placer) delimRows(n *plan.DelimJoin) (rows float64, ok bool) {
	plan.Walk(n.Other(), func(x plan.Node) bool {
		if g, is := x.(*plan.DelimGet); is && g.ID == n.ID && !ok {
			rows, ok = p.o.Rows(x)
		}
		return !ok
	})
	return rows, ok
}

func (p *placer) delimGet(n *plan.DelimGet) (placed, error) {
	s := p.delims[n.ID]
	if s == nil {
		return placed{}, &plan.UnsupportedError{What: fmt.Sprintf("values of unknown subquery %d", n.ID)}
	}
	return read(s), nil
}
