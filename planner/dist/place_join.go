package dist

import (
	"slices"

	"manta/planner/plan"
)

// moveCost is the cost of a byte that is hashed, sent and received, in terms of
// the cost of a byte that one more task puts into its hash table.
const moveCost = 1.0

// join places a join.
func (p *placer) join(n *plan.Join) (placed, error) {
	l, err := p.place(n.Left)
	if err != nil {
		return placed{}, err
	}
	r, err := p.place(n.Right)
	if err != nil {
		return placed{}, err
	}
	return p.joinOf(n, l, r), nil
}

// joinOf places a join over inputs that have been placed.
func (p *placer) joinOf(n *plan.Join, l, r placed) placed {
	if plan.Volatile(n) {
		l, r = p.gather(l), p.gather(r)
	}
	if l.dist.Kind != Partitioned && r.dist.Kind != Partitioned {
		d := Distribution{Kind: Single}
		// A join that every task computes over all rows gives every task all rows.
		if l.dist.Kind == Replicated && r.dist.Kind == Replicated {
			d.Kind = Replicated
		}
		return p.joined(n, l, r, d)
	}
	pairs := equalities(n)
	rightAll := l.dist.Kind == Partitioned && replicableRight(n.Type)
	leftAll := r.dist.Kind == Partitioned && replicableLeft(n.Type) && !n.AsOf // the nearest of all right rows counts

	best, cost := 0, -1.0
	try := func(which int, c float64) {
		if cost < 0 || c < cost {
			best, cost = which, c
		}
	}
	const byHash, byRight, byLeft = 1, 2, 3
	if len(pairs) > 0 {
		left, right := coKeys(l, r, pairs)
		c := 0.0
		if !l.dist.by(left) {
			c += l.bytes() * moveCost
		}
		if !r.dist.by(right) {
			c += r.bytes() * moveCost
		}
		try(byHash, c)
	}
	limit := func(x placed) bool {
		return x.dist.Kind == Replicated || len(pairs) == 0 || x.bytes() <= float64(p.o.BroadcastBytes)
	}
	if rightAll && limit(r) {
		try(byRight, p.replicaCost(r))
	}
	if leftAll && limit(l) {
		try(byLeft, p.replicaCost(l))
	}
	switch best {
	case byHash:
		left, right := coKeys(l, r, pairs)
		l, r = p.hash(l, left), p.hash(r, right)
		return p.joined(n, l, r, p.coJoined(n, l, r))
	case byRight:
		r = p.replicate(r)
		return p.joined(n, l, r, p.probed(n, l, r))
	case byLeft:
		l = p.replicate(l)
		return p.joined(n, l, r, p.probed(n, l, r))
	}
	p.note("a join without equality that keeps unmatched rows of both sides runs in one task")
	return p.joined(n, p.gather(l), p.gather(r), Distribution{Kind: Single})
}

// replicaCost is the cost of giving every task all rows of x.
func (p *placer) replicaCost(x placed) float64 {
	if x.dist.Kind == Replicated {
		return 0
	}
	return x.bytes() * float64(p.o.Partitions)
}

func (p *placer) joined(n *plan.Join, l, r placed, d Distribution) placed {
	return placed{n.WithChildren([]plan.Node{l.node, r.node}), d, p.rows(n, max(l.rows, r.rows))}
}

// replicableRight reports whether a task that has all rows of the right side and
// some of the left gives exactly the rows that belong to its left rows: the
// right side's unmatched rows are not output, and its rows only beside a left one.
func replicableRight(t plan.JoinType) bool {
	return slices.Contains([]plan.JoinType{plan.Inner, plan.Left, plan.Semi, plan.Anti, plan.Mark, plan.Single}, t)
}

// replicableLeft is the same with the sides changed.
func replicableLeft(t plan.JoinType) bool {
	return slices.Contains([]plan.JoinType{plan.Inner, plan.Right, plan.RightSemi, plan.RightAnti}, t)
}

// pair is an equality between the sides of a join.
type pair struct{ left, right plan.Expr }

// equalities are the conditions of a join by which both sides can be hashed:
// rows that match are equal in all of them. A MARK is NULL, not FALSE, as soon as
// there is a NULL among the right rows that agree in the null-safe conditions, so
// only by those its sides can be hashed.
func equalities(n *plan.Join) []pair {
	var out []pair
	for _, c := range n.Conds {
		switch {
		case n.Type == plan.Mark && c.Op != plan.NotDistinctFrom:
			continue
		case c.Op != plan.Eq && c.Op != plan.NotDistinctFrom:
			continue
		case !c.Left.Type().Equal(c.Right.Type()):
			continue // equal values of two types hash differently
		case plan.IsVolatile(c.Left) || plan.IsVolatile(c.Right):
			continue
		}
		out = append(out, pair{c.Left, c.Right})
	}
	return out
}

// coKeys chooses by what the sides of a join are hashed: by the keys that one of
// them is hashed by already, if each stands in an equality, or else by all equalities.
func coKeys(l, r placed, pairs []pair) (left, right []plan.Expr) {
	if left, right := meeting(l.dist, r.dist, pairs); left != nil {
		return left, right
	}
	if right := follow(l.dist, pairs, func(e pair) (own, other plan.Expr) { return e.left, e.right }); right != nil {
		return ownKeys(l.dist, pairs, func(e pair) plan.Expr { return e.left }), right
	}
	if left := follow(r.dist, pairs, func(e pair) (own, other plan.Expr) { return e.right, e.left }); left != nil {
		return left, ownKeys(r.dist, pairs, func(e pair) plan.Expr { return e.right })
	}
	for _, e := range pairs {
		left, right = append(left, e.left), append(right, e.right)
	}
	return left, right
}

// meeting gives the keys of two sides that are hashed already so that equal rows meet, or nil.
func meeting(l, r Distribution, pairs []pair) (left, right []plan.Expr) {
	if len(l.Keys) != len(r.Keys) {
		return nil, nil
	}
	for i := range l.Keys {
		at := slices.IndexFunc(pairs, func(e pair) bool { return l.Keys[i].has(e.left) && r.Keys[i].has(e.right) })
		if at < 0 {
			return nil, nil
		}
		left, right = append(left, pairs[at].left), append(right, pairs[at].right)
	}
	return left, right
}

// follow gives the keys by which the other side must be hashed to meet a side
// hashed as d, or nil when d's keys are not all in equalities.
func follow(d Distribution, pairs []pair, sides func(pair) (own, other plan.Expr)) []plan.Expr {
	var keys []plan.Expr
	for _, k := range d.Keys {
		at := slices.IndexFunc(pairs, func(e pair) bool { own, _ := sides(e); return k.has(own) })
		if at < 0 {
			return nil
		}
		_, other := sides(pairs[at])
		keys = append(keys, other)
	}
	return keys
}

// ownKeys are d's keys as the equalities spell them.
func ownKeys(d Distribution, pairs []pair, side func(pair) plan.Expr) []plan.Expr {
	var keys []plan.Expr
	for _, k := range d.Keys {
		at := slices.IndexFunc(pairs, func(e pair) bool { return k.has(side(e)) })
		keys = append(keys, side(pairs[at]))
	}
	return keys
}

// outputs tells where the sides of a join stand in its output; nil: not output.
func outputs(n *plan.Join) (left, right func(plan.Expr) plan.Expr) {
	left, right = keeper(n.LeftKeep, 0), keeper(n.RightKeep, len(n.LeftKeep))
	switch n.Type {
	case plan.Semi, plan.Anti, plan.Mark:
		right = nil
	case plan.RightSemi, plan.RightAnti:
		left, right = nil, keeper(n.RightKeep, 0)
	}
	return left, right
}

// coJoined is the distribution of a join whose sides are hashed alike. A side
// that is padded with NULLs no longer tells where a row is.
func (p *placer) coJoined(n *plan.Join, l, r placed) Distribution {
	left, right := outputs(n)
	switch n.Type {
	case plan.Full:
		return Distribution{Kind: Partitioned}
	case plan.Left, plan.Single:
		right = nil
	case plan.Right:
		left = nil
	}
	out := Distribution{Kind: Partitioned}
	for i := range l.dist.Keys {
		var k Key
		if left != nil {
			k = mapKey(k, l.dist.Keys[i], left)
		}
		if right != nil {
			k = mapKey(k, r.dist.Keys[i], right)
		}
		if k == nil {
			return Distribution{Kind: Partitioned}
		}
		out.Keys = append(out.Keys, k)
	}
	return out
}

// probed is the distribution of a join of which one side is replicated: rows
// stay where the other side's are. In an inner join a key equals its partner on
// the replicated side.
func (p *placer) probed(n *plan.Join, l, r placed) Distribution {
	left, right := outputs(n)
	d, own, other := l.dist, left, right
	if l.dist.Kind == Replicated {
		d, own, other = r.dist, right, left
	}
	if d.Keys == nil || own == nil {
		return Distribution{Kind: Partitioned}
	}
	pairs := equalities(n)
	out := Distribution{Kind: Partitioned}
	for _, key := range d.Keys {
		k := mapKey(nil, key, own)
		if n.Type == plan.Inner && other != nil {
			for _, e := range pairs {
				mine, theirs := e.left, e.right
				if l.dist.Kind == Replicated {
					mine, theirs = theirs, mine
				}
				if key.has(mine) {
					k = mapKey(k, Key{theirs}, other)
				}
			}
		}
		if k == nil {
			return Distribution{Kind: Partitioned}
		}
		out.Keys = append(out.Keys, k)
	}
	return out
}

// mapKey adds to k what becomes of the expressions of from.
func mapKey(k, from Key, to func(plan.Expr) plan.Expr) Key {
	for _, e := range from {
		if m := to(e); m != nil {
			k = k.add(m)
		}
	}
	return k
}

// cross places a cross product: one side is replicated, the other stays where it is.
func (p *placer) cross(n *plan.Cross) (placed, error) {
	l, err := p.place(n.Left)
	if err != nil {
		return placed{}, err
	}
	r, err := p.place(n.Right)
	if err != nil {
		return placed{}, err
	}
	rows := p.rows(n, l.rows*r.rows)
	make := func(d Distribution) (placed, error) {
		return placed{n.WithChildren([]plan.Node{l.node, r.node}), d, rows}, nil
	}
	width := len(n.Left.Types())
	switch {
	case l.dist.Kind != Partitioned && r.dist.Kind != Partitioned:
		if l.dist.Kind == Replicated && r.dist.Kind == Replicated {
			return make(Distribution{Kind: Replicated})
		}
		return make(Distribution{Kind: Single})
	case l.dist.Kind == Partitioned && (r.dist.Kind != Partitioned || r.bytes() <= l.bytes()):
		r = p.replicate(r)
		return make(l.dist)
	default:
		l = p.replicate(l)
		return make(r.dist.rewrite(func(e plan.Expr) plan.Expr { return plan.ShiftRefs(e, width) }))
	}
}
