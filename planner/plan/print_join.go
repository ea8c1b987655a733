package plan

import (
	"slices"
	"strconv"
	"strings"
)

var joinWords = map[JoinType]string{
	Inner: "INNER JOIN", Left: "LEFT JOIN", Right: "RIGHT JOIN", Full: "FULL JOIN", Semi: "SEMI JOIN", Anti: "ANTI JOIN",
	RightSemi: "SEMI JOIN", RightAnti: "ANTI JOIN",
}

// join gives the SELECT over two sources. fed says that the right side has only rows that some left row asks for.
func (p *Printer) join(n *Join, left, right source, fed bool) block {
	left, right = solid(left), solid(right)
	switch n.Type {
	case Mark:
		return p.mark(n, left, right)
	case Single:
		return p.single(n, left, right, fed)
	case RightSemi, RightAnti:
		return p.rightSemi(n, left, right, fed)
	}
	b := block{cols: choose(left.cols, n.LeftKeep)}
	if n.Type != Semi && n.Type != Anti {
		b.cols = append(b.cols, choose(right.cols, n.RightKeep)...)
	}
	word := joinWords[n.Type]
	if n.AsOf {
		word = "ASOF " + word
	}
	b.from = left.sql + " " + word + " " + right.sql + " ON " + p.conds(n, left, right)
	return b
}

// rightSemi spells the joins that give rows of the right side, over which DuckDB builds because it is the smaller. SQL has
// only the mirrored word, which would build over the large left side; so that is first reduced to what the right side
// asks for, unless it is so already.
func (p *Printer) rightSemi(n *Join, left, right source, fed bool) block {
	word := " " + joinWords[n.Type] + " "
	if fed || Volatile(n) || !slices.ContainsFunc(n.Conds, func(c JoinCond) bool { return c.Op == Eq || c.Op == NotDistinctFrom }) {
		return block{cols: choose(right.cols, n.RightKeep), from: right.sql + word + left.sql + " ON " + p.conds(n, left, right)}
	}
	name := "r_" + p.Alias()
	with := name + " AS MATERIALIZED (" + block{from: right.sql, cols: right.cols}.String() + ")"
	asking := named(name, p.Alias(), len(right.cols))
	asked := block{from: left.sql + " SEMI JOIN " + asking.sql + " ON " + p.conds(n, left, asking), cols: left.cols}
	left = named("("+asked.String()+")", p.Alias(), len(left.cols))
	right = named(name, p.Alias(), len(right.cols))
	return block{
		with: []string{with}, cols: choose(right.cols, n.RightKeep),
		from: right.sql + word + left.sql + " ON " + p.conds(n, left, right),
	}
}

// solid gives a row without columns something to select from.
func solid(s source) source {
	if s.sql == "" {
		s.sql = "(SELECT 1)"
	}
	return s
}

func (p *Printer) conds(n *Join, left, right source) string {
	var parts []string
	for _, c := range n.Conds {
		parts = append(parts, compareText(c.Op, p.expr(c.Left, left.cols), p.expr(c.Right, right.cols)))
	}
	if n.On != nil {
		parts = append(parts, p.expr(n.On, slices.Concat(left.cols, right.cols)))
	}
	if len(parts) == 0 {
		return "TRUE"
	}
	return strings.Join(parts, " AND ")
}

// delimJoin computes the source once, the distinct values of its columns from that, and then joins.
func (p *Printer) delimJoin(n *DelimJoin) block {
	used := false
	Walk(n.Other(), func(m Node) bool {
		g, ok := m.(*DelimGet)
		used = used || ok && g.ID == n.ID
		return !used
	})
	if !used {
		return p.join(n.Join, p.input(n.Join.Left), p.input(n.Join.Right), false)
	}
	name := "s_" + strconv.Itoa(n.ID)
	src := named(name, p.Alias(), len(n.Source().Types()))
	feed := named(name, p.Alias(), len(n.Source().Types()))
	distinct := block{distinct: "DISTINCT", from: feed.sql, cols: p.exprs(n.Columns, feed.cols)}
	with := []string{
		name + " AS MATERIALIZED (" + p.query(n.Source()) + ")",
		delimName(n.ID) + " AS MATERIALIZED (" + distinct.String() + ")",
	}
	other := p.input(n.Other())
	left, right := src, other
	if n.Flipped {
		left, right = other, src
	}
	b := p.join(n.Join, left, right, true)
	b.with = append(with, b.with...)
	return b
}

// keys splits the conditions: equal ones, for which NULL has no partner, and null-safe ones. ok is false if there is any other.
func keys(n *Join) (equal, safe []JoinCond, ok bool) {
	for _, c := range n.Conds {
		switch c.Op {
		case Eq:
			equal = append(equal, c)
		case NotDistinctFrom:
			safe = append(safe, c)
		default:
			return nil, nil, false
		}
	}
	return equal, safe, n.On == nil
}

// mark adds the three-valued answer to "has this row a partner".
func (p *Printer) mark(n *Join, left, right source) block {
	equal, safe, ok := keys(n)
	b := block{from: left.sql, cols: choose(left.cols, n.LeftKeep)}
	if Volatile(n) {
		fail(unsupported("a MARK join over a volatile value")) // which is computed more than once
	}
	switch {
	case !ok:
		p.markAny(&b, n, left, right)
	case len(safe) == 0 && len(equal) > 0:
		var l, r []string
		for _, c := range equal {
			l, r = append(l, p.expr(c.Left, left.cols)), append(r, p.expr(c.Right, right.cols))
		}
		tested := strings.Join(l, ", ")
		if len(l) > 1 {
			tested = "(" + tested + ")"
		}
		b.cols = append(b.cols, "("+tested+" IN (SELECT "+strings.Join(r, ", ")+" FROM "+right.sql+"))")
	default:
		p.markJoins(&b, equal, safe, left, right)
	}
	return b
}

// markJoins spells a MARK join with null-safe conditions as two joins: one finds a partner, the other tells, for each
// group of null-safe keys, whether there was any row and whether one had a NULL. A correlated EXISTS or IN left in the
// text would be decorrelated again, and with the join order pinned that can be slow.
func (p *Printer) markJoins(b *block, equal, safe []JoinCond, left, right source) {
	rows := "r_" + p.Alias()
	all := block{from: right.sql}
	for _, c := range slices.Concat(equal, safe) {
		all.cols = append(all.cols, p.expr(c.Right, right.cols))
	}
	b.with = []string{rows + " AS MATERIALIZED (" + all.String() + ")"}

	n := len(equal) + len(safe)
	partner := named(rows, p.Alias(), n)
	match := block{distinct: "DISTINCT", from: partner.sql, cols: append(slices.Clone(partner.cols), "TRUE")}
	for _, c := range partner.cols[:len(equal)] {
		match.where = append(match.where, c+" IS NOT NULL")
	}
	m := named("("+match.String()+")", p.Alias(), n+1)
	var on []string
	for i, c := range slices.Concat(equal, safe) {
		on = append(on, compareText(c.Op, p.expr(c.Left, left.cols), m.cols[i]))
	}
	if len(on) == 0 {
		on = []string{"TRUE"}
	}
	b.from = left.sql + " LEFT JOIN " + m.sql + " ON " + strings.Join(on, " AND ")
	found := "(" + m.cols[n] + " IS NOT NULL)"
	if len(equal) == 0 { // EXISTS is never NULL
		b.cols = append(b.cols, found)
		return
	}
	group := named(rows, p.Alias(), n)
	var nulls []string
	for _, c := range group.cols[:len(equal)] {
		nulls = append(nulls, c+" IS NULL")
	}
	stats := block{from: group.sql, cols: append(slices.Clone(group.cols[len(equal):]), "count(*)", "bool_or("+strings.Join(nulls, " OR ")+")")}
	if len(safe) > 0 {
		ordinals := make([]string, len(safe))
		for i := range ordinals {
			ordinals[i] = strconv.Itoa(i + 1)
		}
		stats.group = "GROUP BY " + strings.Join(ordinals, ", ")
	}
	g := named("("+stats.String()+")", p.Alias(), len(safe)+2)
	if len(safe) == 0 {
		b.from += " CROSS JOIN " + g.sql
	} else {
		var on []string
		for i, c := range safe {
			on = append(on, compareText(c.Op, p.expr(c.Left, left.cols), g.cols[i]))
		}
		b.from += " LEFT JOIN " + g.sql + " ON " + strings.Join(on, " AND ")
	}
	var unknown []string
	for _, c := range equal {
		unknown = append(unknown, "("+p.expr(c.Left, left.cols)+") IS NULL")
	}
	unknown = append(unknown, g.cols[len(safe)+1])
	b.cols = append(b.cols, "CASE WHEN "+found+" THEN TRUE WHEN coalesce("+g.cols[len(safe)]+", 0) = 0 THEN FALSE WHEN "+
		strings.Join(unknown, " OR ")+" THEN NULL ELSE FALSE END")
}

// markAny spells a MARK join with one comparison that is not an equality, x < ANY (...): for each distinct x, with the
// null-safe keys, it tells whether some row compares as TRUE and whether some as NULL.
func (p *Printer) markAny(b *block, n *Join, left, right source) {
	if n.On != nil {
		fail(unsupported("a MARK join with a free condition"))
	}
	name := "l_" + p.Alias()
	b.with = []string{name + " AS MATERIALIZED (" + block{from: left.sql, cols: left.cols}.String() + ")"}
	left = named(name, p.Alias(), len(left.cols))
	asking := named(name, p.Alias(), len(left.cols))
	tested := block{distinct: "DISTINCT", from: asking.sql}
	for _, c := range n.Conds {
		tested.cols = append(tested.cols, p.expr(c.Left, asking.cols))
	}
	t := named("("+tested.String()+")", p.Alias(), len(n.Conds))
	test, on := "", []string{"TRUE"}
	for i, c := range n.Conds {
		text := compareText(c.Op, t.cols[i], p.expr(c.Right, right.cols))
		switch {
		case c.Op == NotDistinctFrom:
			on = append(on, text)
		case test == "":
			test = text
		default:
			fail(unsupported("a MARK join with several comparisons"))
		}
	}
	answer := block{
		from:  t.sql + " INNER JOIN " + right.sql + " ON " + strings.Join(on, " AND "),
		cols:  append(slices.Clone(t.cols), "bool_or("+test+")", "bool_or("+test+" IS NULL)"),
		group: "GROUP BY ALL",
	}
	k := len(n.Conds)
	a := named("("+answer.String()+")", p.Alias(), k+2)
	on = on[:1]
	for i, c := range n.Conds {
		on = append(on, compareText(NotDistinctFrom, p.expr(c.Left, left.cols), a.cols[i]))
	}
	b.from = left.sql + " LEFT JOIN " + a.sql + " ON " + strings.Join(on, " AND ")
	b.cols = append(choose(left.cols, n.LeftKeep), "CASE WHEN "+a.cols[k]+" THEN TRUE WHEN "+a.cols[k+1]+" THEN NULL ELSE FALSE END")
}

// single spells a left join in which a second partner is an error: the right side is reduced to one row for each key.
// Unless the right side is fed by the left one, it is first reduced to the rows that the left side asks for, since only
// for those a duplicate is an error.
func (p *Printer) single(n *Join, left, right source, fed bool) block {
	equal, safe, ok := keys(n)
	if !ok || Volatile(n) {
		fail(unsupported("a SINGLE join with a comparison that is not an equality of data"))
	}
	b := block{cols: choose(left.cols, n.LeftKeep)}
	one := block{from: right.sql}
	if !fed {
		name := "l_" + p.Alias()
		whole := named(name, p.Alias(), len(left.cols))
		b.with = []string{name + " AS MATERIALIZED (" + block{from: left.sql, cols: left.cols}.String() + ")"}
		one.from += " SEMI JOIN " + whole.sql + " ON " + p.conds(n, whole, right)
		left = named(name, p.Alias(), len(left.cols))
		b.cols = choose(left.cols, n.LeftKeep)
	}
	var ordinals []string
	conds := slices.Concat(equal, safe)
	for i, c := range conds {
		key := p.expr(c.Right, right.cols)
		one.cols = append(one.cols, key)
		ordinals = append(ordinals, strconv.Itoa(i+1))
		if c.Op == Eq {
			one.where = append(one.where, "("+key+") IS NOT NULL")
		}
	}
	for _, k := range n.RightKeep {
		one.cols = append(one.cols, "CASE WHEN count(*) > 1 THEN error('"+moreThanOneRow+"') ELSE first("+right.cols[k]+") END")
	}
	if len(ordinals) > 0 {
		one.group = "GROUP BY " + strings.Join(ordinals, ", ")
	}
	s := named("("+one.String()+")", p.Alias(), len(one.cols))
	var on []string
	for i, c := range conds {
		on = append(on, compareText(c.Op, p.expr(c.Left, left.cols), s.cols[i]))
	}
	if len(on) == 0 {
		on = []string{"TRUE"}
	}
	b.from = left.sql + " LEFT JOIN " + s.sql + " ON " + strings.Join(on, " AND ")
	b.cols = append(b.cols, s.cols[len(conds):]...)
	return b
}

const moreThanOneRow = "More than one row returned by a subquery used as an expression - scalar subqueries can only return a single row."
