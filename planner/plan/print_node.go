package plan

import (
	"slices"
	"strconv"
	"strings"
)

// block gives the SELECT of one operator over its children as subqueries.
func (p *Printer) block(n Node) block {
	switch n := n.(type) {
	case *DummyScan:
		return block{cols: []string{dummy}}
	case *Empty:
		b := block{where: []string{"FALSE"}}
		for _, t := range n.Out {
			b.cols = append(b.cols, literal(NullOf(t)))
		}
		return b
	case *Values:
		return p.values(n)
	case *Project:
		from := p.input(n.Child)
		return block{from: from.sql, cols: p.exprs(n.Exprs, from.cols)}
	case *Filter:
		from := p.input(n.Child)
		return block{from: from.sql, cols: choose(from.cols, n.Keep), where: p.exprs(n.Conds, from.cols)}
	case *Aggregate:
		return p.aggregate(n)
	case *Distinct:
		from := p.input(n.Child)
		b := block{from: from.sql, cols: from.cols, distinct: "DISTINCT"}
		if n.On != nil {
			b.distinct = "DISTINCT ON (" + strings.Join(p.exprs(n.On, from.cols), ", ") + ")"
		}
		b.order = p.orderBy(n.Order, from.cols)
		return b
	case *Window:
		from := p.input(n.Child)
		b := block{from: from.sql, cols: slices.Clone(from.cols)}
		for _, w := range n.Exprs {
			b.cols = append(b.cols, p.window(w, from.cols))
		}
		return b
	case *Unnest:
		from := p.input(n.Child)
		b := block{from: from.sql, cols: slices.Clone(from.cols)}
		for _, l := range n.Lists {
			b.cols = append(b.cols, "unnest("+p.expr(l, from.cols)+")")
		}
		return b
	case *OrderBy:
		from := p.input(n.Child)
		return block{from: from.sql, cols: choose(from.cols, n.Keep), order: p.orderBy(n.Keys, from.cols)}
	case *TopN:
		from := p.input(n.Child)
		b := block{from: from.sql, cols: from.cols, order: p.orderBy(n.Keys, from.cols)}
		b.tail = "LIMIT " + strconv.FormatUint(n.Limit, 10)
		if n.Offset > 0 {
			b.tail += " OFFSET " + strconv.FormatUint(n.Offset, 10)
		}
		return b
	case *Limit:
		return p.limit(n)
	case *Sample:
		return p.sample(n)
	case *SetOp:
		return p.setOp(n)
	case *Join:
		return p.join(n, p.input(n.Left), p.input(n.Right), false)
	case *Cross:
		left, right := p.from(n.Left), p.from(n.Right)
		return block{from: left.sql + " CROSS JOIN " + right.sql, cols: slices.Concat(left.cols, right.cols)}
	case *Positional:
		left, right := p.from(n.Left), p.from(n.Right)
		return block{from: left.sql + " POSITIONAL JOIN " + right.sql, cols: slices.Concat(left.cols, right.cols)}
	case *DelimJoin:
		return p.delimJoin(n)
	case *DelimGet:
		from := named(delimName(n.ID), p.Alias(), len(n.Out))
		return block{from: from.sql, cols: from.cols}
	case *CTE:
		def := cteName(n.ID) + " AS MATERIALIZED (" + p.query(n.Def) + ")"
		from := p.from(n.Body)
		return block{with: []string{def}, from: from.sql, cols: from.cols}
	case *CTERef:
		name := cteName(n.ID)
		if n.Recurring {
			name = "recurring." + name
		}
		from := named(name, p.Alias(), len(n.Out))
		return block{from: from.sql, cols: from.cols}
	case *RecursiveCTE:
		return p.recursive(n)
	case *Get:
		return p.parquet(n)
	case *TableScan:
		return p.table(n)
	case *TableFunc:
		return p.tableFunc(n)
	}
	fail(unsupported("printing %T", n))
	return block{}
}

// input is the source of an operator with one child; nothing for a DummyScan.
func (p *Printer) input(n Node) source {
	if _, ok := n.(*DummyScan); ok {
		return source{cols: []string{dummy}}
	}
	return p.from(n)
}

const dummy = "CAST(NULL AS INTEGER)"

func (p *Printer) exprs(list []Expr, cols []string) []string {
	out := make([]string, len(list))
	for i, e := range list {
		out[i] = p.expr(e, cols)
	}
	return out
}

func (p *Printer) values(n *Values) block {
	var from source
	if n.Child != nil {
		from = p.from(n.Child)
	}
	rows := make([]string, len(n.Rows))
	for i, row := range n.Rows {
		cells := p.exprs(row, from.cols)
		for c, t := range n.Out {
			if i == 0 && !t.Equal(row[c].Type()) {
				cells[c] = castText(cells[c], t)
			}
		}
		rows[i] = "(" + strings.Join(cells, ", ") + ")"
	}
	if len(rows) == 0 || len(n.Out) == 0 {
		return p.block(&Empty{Out: n.Out})
	}
	alias := p.Alias()
	list := "(VALUES " + strings.Join(rows, ", ") + ") AS " + alias + "(" + strings.Join(columnNames(len(n.Out)), ", ") + ")"
	b := block{from: list}
	if n.Child != nil {
		b.from = from.sql + ", LATERAL " + list
	}
	for i := range n.Out {
		b.cols = append(b.cols, alias+"."+column(i))
	}
	return b
}

func columnNames(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = column(i)
	}
	return out
}

func (p *Printer) aggregate(n *Aggregate) block {
	from := p.input(n.Child)
	b := block{from: from.sql, cols: p.exprs(n.Groups, from.cols)}
	groups := slices.Clone(b.cols)
	for _, a := range n.Aggs {
		b.cols = append(b.cols, p.agg(a, from.cols))
	}
	for _, g := range n.Groupings {
		b.cols = append(b.cols, "GROUPING("+strings.Join(choose(groups, g), ", ")+")")
	}
	list := n.Sets
	if len(list) == 0 && len(n.Groups) > 0 {
		list = [][]int{Range(len(n.Groups))}
	}
	sets := make([]string, len(list))
	for i, set := range list {
		ordinals := make([]string, len(set))
		for j, g := range set {
			ordinals[j] = strconv.Itoa(g + 1)
		}
		sets[i] = "(" + strings.Join(ordinals, ", ") + ")"
	}
	switch {
	case len(sets) == 0:
	case len(sets) == 1 && len(list[0]) == len(n.Groups) && len(n.Groups) > 0:
		b.group = "GROUP BY " + strings.Trim(sets[0], "()")
	case len(sets) == 1 && len(n.Groups) == 0:
		b.group = "GROUP BY ()"
	default:
		b.group = "GROUP BY GROUPING SETS (" + strings.Join(sets, ", ") + ")"
	}
	return b
}

func (p *Printer) limit(n *Limit) block {
	if n.Limit.Expr == nil && n.Offset.Expr == nil {
		var b block
		if by, ok := n.Child.(*OrderBy); ok {
			b = p.block(by)
		} else {
			from := p.input(n.Child)
			b = block{from: from.sql, cols: from.cols}
		}
		b.tail = limitText("LIMIT", n.Limit, "") + limitText("OFFSET", n.Offset, "")
		return b
	}
	// The bound is a value of the child's first row, so the child is read twice.
	name := "l_" + p.Alias()
	from := named(name, p.Alias(), len(n.Child.Types()))
	b := block{with: []string{name + " AS MATERIALIZED (" + p.query(n.Child) + ")"}, from: from.sql, cols: from.cols}
	bound := func(v LimitValue) string {
		if v.Expr == nil {
			return ""
		}
		row := named(name, p.Alias(), len(from.cols))
		return "(SELECT " + p.expr(v.Expr, row.cols) + " FROM " + row.sql + " LIMIT 1)"
	}
	b.tail = limitText("LIMIT", n.Limit, bound(n.Limit)) + limitText("OFFSET", n.Offset, bound(n.Offset))
	return b
}

func limitText(word string, v LimitValue, expr string) string {
	if !v.Set {
		return ""
	}
	text := expr
	if text == "" {
		if text = v.Share; !v.Percent {
			text = strconv.FormatUint(v.Rows, 10)
		}
	}
	if v.Percent {
		text += " %"
	}
	return " " + word + " " + text
}

func (p *Printer) sample(n *Sample) block {
	from := p.input(n.Child)
	unit := "ROWS"
	if n.Percent {
		unit = "PERCENT"
	}
	b := block{from: from.sql, cols: from.cols, tail: "USING SAMPLE " + strings.ToLower(n.Method) + "(" + n.Size + " " + unit + ")"}
	if n.Seed >= 0 {
		b.tail += " REPEATABLE (" + strconv.FormatInt(n.Seed, 10) + ")"
	}
	return b
}

func (p *Printer) setOp(n *SetOp) block {
	word := [...]string{Union: " UNION ", Except: " EXCEPT ", Intersect: " INTERSECT "}[n.Kind]
	if n.All {
		word += "ALL "
	}
	parts := make([]string, len(n.Inputs))
	for i, in := range n.Inputs {
		parts[i] = "(" + p.query(in) + ")"
	}
	from := named("("+strings.Join(parts, word)+")", p.Alias(), len(n.Out))
	return block{from: from.sql, cols: from.cols}
}

func (p *Printer) recursive(n *RecursiveCTE) block {
	name := cteName(n.ID)
	columns := columnNames(len(n.Out))
	def := "RECURSIVE " + name + "(" + strings.Join(columns, ", ") + ")"
	if len(n.Keys) > 0 {
		def += " USING KEY (" + strings.Join(choose(columns, n.Keys), ", ") + ")"
	}
	union := ") UNION ("
	if n.All {
		union = ") UNION ALL ("
	}
	from := named(name, p.Alias(), len(n.Out))
	return block{
		with: []string{def + " AS ((" + p.query(n.Base) + union + p.query(n.Step) + "))"},
		from: from.sql, cols: from.cols,
	}
}

func cteName(id int) string   { return "cte_" + strconv.Itoa(id) }
func delimName(id int) string { return "d_" + strconv.Itoa(id) }

// orderBy gives the clause, with the place of NULLs always spelled.
func (p *Printer) orderBy(keys []Order, cols []string) string {
	if len(keys) == 0 {
		return ""
	}
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = p.expr(k.Expr, cols)
		if k.Desc {
			parts[i] += " DESC"
		} else {
			parts[i] += " ASC"
		}
		if k.NullsFirst {
			parts[i] += " NULLS FIRST"
		} else {
			parts[i] += " NULLS LAST"
		}
	}
	return "ORDER BY " + strings.Join(parts, ", ")
}
