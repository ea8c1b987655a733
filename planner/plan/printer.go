package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Printer writes one SQL text. It hands out the aliases, which are unique within the text: DuckDB lets a subquery in FROM
// see its left neighbours, so a name used twice could bind to the wrong one without an error.
type Printer struct {
	aliases int
}

// Alias is a new name.
func (p *Printer) Alias() string {
	p.aliases++
	return "t" + strconv.Itoa(p.aliases)
}

// Print gives the tree as a SELECT with outputs c0, c1, ...
func Print(n Node) (string, error) { return new(Printer).Select(n) }

// Select gives a complete SELECT of the node, with outputs c0, c1, ...
func (p *Printer) Select(n Node) (sql string, err error) {
	defer catch(&err)
	return p.query(n), nil
}

// Expr gives the text of an expression whose input columns have these texts.
func (p *Printer) Expr(e Expr, columns []string) (sql string, err error) {
	defer catch(&err)
	return p.expr(e, columns), nil
}

// PrintFragment gives the tree as the text of a fragment: output i is cast to the node's type and named names[i] (or ci
// when names is nil), and each extra expression over the node's output follows. A tree that sorts gives its rows in order.
func PrintFragment(n Node, names []string, extra []Expr) (sql string, err error) {
	defer catch(&err)
	types := n.Types()
	if names != nil && len(names) != len(types) {
		return "", fmt.Errorf("plan: %d names for %d columns", len(names), len(types))
	}
	p := new(Printer)
	b, ok := p.ordered(n)
	if !ok {
		from := p.from(n)
		b = block{from: from.sql, cols: from.cols}
	}
	cols := make([]string, 0, len(types)+len(extra))
	for i, t := range types {
		name := column(i)
		if names != nil {
			name = Ident(names[i])
		}
		cols = append(cols, castText(b.cols[i], t)+" AS "+name)
	}
	for i, e := range extra {
		cols = append(cols, p.expr(e, b.cols)+" AS "+column(len(types)+i))
	}
	b.named = cols
	return b.String(), nil
}

// ordered gives the block of a root whose rows come in an order, with the ORDER BY at its own level.
func (p *Printer) ordered(n Node) (block, bool) {
	switch n := n.(type) {
	case *OrderBy, *TopN:
		return p.block(n), true
	case *Limit:
		if _, ok := n.Child.(*OrderBy); ok {
			return p.block(n), true
		}
	case *Project:
		b, ok := p.ordered(n.Child)
		if !ok || !hoistable(n) {
			return block{}, false
		}
		cols := make([]string, len(n.Exprs))
		for i, e := range n.Exprs {
			cols[i] = p.expr(e, b.cols)
		}
		b.cols = cols
		return b, true
	}
	return block{}, false
}

// hoistable reports whether a projection may be computed before the sort below it. Where only some rows survive the
// sort, computing it for all of them could cost more or fail; a plain choice of columns cannot.
func hoistable(n *Project) bool {
	_, whole := n.Child.(*OrderBy)
	for _, e := range n.Exprs {
		if _, ok := e.(*Ref); !ok && (!whole || IsVolatile(e)) {
			return false
		}
	}
	return true
}

// catch turns a failure back into an error.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case failure:
		*err = r.error
	default:
		panic(r)
	}
}

// block is one SELECT.
type block struct {
	with     []string
	distinct string // "DISTINCT" or "DISTINCT ON (...)"
	cols     []string
	named    []string // when set, the SELECT list as it is; else cols named c0, c1, ...
	from     string
	where    []string
	group    string
	order    string
	tail     string // LIMIT, USING SAMPLE
}

func (b block) String() string {
	var s strings.Builder
	if len(b.with) > 0 {
		s.WriteString("WITH " + strings.Join(b.with, ", ") + " ")
	}
	s.WriteString("SELECT ")
	if b.distinct != "" {
		s.WriteString(b.distinct + " ")
	}
	list := b.named
	if list == nil {
		for i, c := range b.cols {
			list = append(list, c+" AS "+column(i))
		}
	}
	if len(list) == 0 {
		list = []string{"NULL AS c0"} // no columns, but rows
	}
	s.WriteString(strings.Join(list, ", "))
	if b.from != "" {
		s.WriteString(" FROM " + b.from)
	}
	if len(b.where) > 0 {
		s.WriteString(" WHERE " + strings.Join(b.where, " AND "))
	}
	for _, part := range []string{b.group, b.order, b.tail} {
		if part != "" {
			s.WriteString(" " + part)
		}
	}
	return s.String()
}

func column(i int) string { return "c" + strconv.Itoa(i) }

// source is something to select from: its text with alias, and the texts of its columns.
type source struct {
	sql  string
	cols []string
}

func named(text, alias string, columns int) source {
	s := source{sql: text + " AS " + alias, cols: make([]string, columns)}
	for i := range s.cols {
		s.cols[i] = alias + "." + column(i)
	}
	return s
}

// from gives a node as a subquery.
func (p *Printer) from(n Node) source {
	return named("("+p.query(n)+")", p.Alias(), len(n.Types()))
}

func (p *Printer) query(n Node) string {
	if leaf, ok := n.(Leaf); ok {
		sql, err := leaf.PrintSQL(p)
		if err != nil {
			fail(err)
		}
		return sql
	}
	return p.block(n).String()
}

func choose(cols []string, keep []int) []string {
	out := make([]string, len(keep))
	for i, k := range keep {
		out[i] = cols[k]
	}
	return out
}
