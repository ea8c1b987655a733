// Package randsql draws random statements, for tests that compare two ways of
// answering them. What fails shrinks to a small statement.
package randsql

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// Statement draws a random SELECT over the tables a, b, e and big, which have the columns x and y (numbers), s
// (VARCHAR) and d (a number). What it draws always parses and nearly always binds; the order of its rows means nothing.
func Statement(t *rapid.T) string { return (&writer{t: t}).statement() }

type writer struct {
	t     *rapid.T
	names int
	scope []string // aliases that may be named, outer queries' included
}

func (w *writer) pick(options ...string) string {
	return rapid.SampledFrom(options).Draw(w.t, "pick")
}

func (w *writer) chance(n int) bool { return rapid.IntRange(1, n).Draw(w.t, "chance") == 1 }

func (w *writer) column(kind string) string {
	return w.pick(w.scope...) + "." + kind
}

func (w *writer) number(depth int) string {
	if depth > 0 {
		switch rapid.IntRange(0, 9).Draw(w.t, "number") {
		case 0:
			return "(" + w.number(depth-1) + " " + w.pick("+", "-", "*") + " " + w.number(depth-1) + ")"
		case 1:
			return "CASE WHEN " + w.predicate(depth-1) + " THEN " + w.number(depth-1) + " ELSE " + w.number(depth-1) + " END"
		case 2:
			return "coalesce(" + w.number(depth-1) + ", 0)"
		case 3:
			return w.subquery(depth-1, w.pick("max", "min", "count", "sum")+"(%s)", false)
		case 4:
			return w.subquery(depth-1, "%s", w.chance(2))
		case 5:
			return "length(" + w.column("s") + ")"
		}
	}
	return w.pick(w.column("x"), w.column("y"), "1", "2", "NULL::INTEGER")
}

// subquery draws a scalar one; limited says that it is cut to one row, which an aggregate need not be.
func (w *writer) subquery(depth int, form string, limited bool) string {
	from, alias := w.table(depth)
	w.scope = append(w.scope, alias)
	defer func() { w.scope = w.scope[:len(w.scope)-1] }()
	sql := "(SELECT " + fmt.Sprintf(form, w.number(0)) + " FROM " + from + w.where(depth)
	if limited {
		sql += " ORDER BY ALL LIMIT 1"
	}
	return sql + ")"
}

func (w *writer) predicate(depth int) string {
	compare := func() string { return w.pick("=", "<>", "<", "<=", ">", "IS DISTINCT FROM", "IS NOT DISTINCT FROM") }
	if depth > 0 {
		switch rapid.IntRange(0, 11).Draw(w.t, "predicate") {
		case 0:
			return "(" + w.predicate(depth-1) + " " + w.pick("AND", "OR") + " " + w.predicate(depth-1) + ")"
		case 1:
			return "(NOT " + w.predicate(depth-1) + ")"
		case 2, 3:
			return w.pick("", "NOT ") + "EXISTS " + w.subquery(depth-1, "%s", false)
		case 4, 5:
			return "(" + w.number(0) + " " + w.pick("IN", "NOT IN") + " " + w.subquery(depth-1, "%s", false) + ")"
		case 6:
			return "(" + w.number(0) + " " + w.pick("=", "<>", "<", ">=") + " " + w.pick("ANY", "ALL") + " " + w.subquery(depth-1, "%s", false) + ")"
		case 7:
			return "((" + w.number(0) + ", " + w.column("s") + ") IN (SELECT q.x, q.s FROM b q))"
		}
	}
	switch rapid.IntRange(0, 4).Draw(w.t, "simple") {
	case 0:
		return "(" + w.column("s") + " " + w.pick("LIKE 's%'", "IS NULL", "= 's1'", "IN ('s0', 's2', NULL)") + ")"
	case 1:
		return "(" + w.column("d") + " " + compare() + " " + w.number(0) + ")"
	case 2:
		return "(" + w.number(0) + " BETWEEN 0 AND " + w.number(0) + ")"
	}
	return "(" + w.number(0) + " " + compare() + " " + w.number(0) + ")"
}

func (w *writer) where(depth int) string {
	if w.chance(3) {
		return ""
	}
	return " WHERE " + w.predicate(depth)
}

// table draws something to select from with columns x, y, s and d, and its alias.
func (w *writer) table(depth int) (sql, alias string) {
	w.names++
	alias = fmt.Sprintf("q%d", w.names)
	if depth <= 0 || w.chance(2) {
		return w.pick("a", "b", "e", "big") + " " + alias, alias
	}
	outer := w.scope
	defer func() { w.scope = outer }()
	left, l := w.table(depth - 1)
	right, r := w.table(depth - 1)
	w.scope = nil
	on := func() string {
		w.scope = []string{l, r}
		if w.chance(3) {
			return " ON " + w.predicate(0)
		}
		return fmt.Sprintf(" ON %s.x = %s.y AND %s", l, r, w.predicate(0))
	}
	columns := fmt.Sprintf("%s.x, %s.y, %s.s, %s.d", l, r, l, r)
	switch rapid.IntRange(0, 19).Draw(w.t, "table") {
	case 7:
		w.scope = []string{l}
		inner := w.where(0)
		return "(SELECT " + l + ".x, v.y, v.s, " + l + ".d FROM " + left + ", LATERAL (SELECT k.y, k.s FROM b k WHERE k.x " +
			w.pick("=", "<", "IS NOT DISTINCT FROM") + " " + l + ".y ORDER BY ALL LIMIT 2) v" + inner + ") " + alias, alias
	case 8:
		return "(SELECT x, unnest([y, x, NULL])::INTEGER y, s, d FROM " + left + ") " + alias, alias
	case 9:
		return "(SELECT x, grouping(x, s)::INTEGER y, s, max(d) d FROM " + left + " GROUP BY " +
			w.pick("ROLLUP (x, s)", "CUBE (x, s)", "GROUPING SETS ((x, s), (s), ())") + ") " + alias, alias
	case 10:
		return "(SELECT DISTINCT ON (s, y) x, y, s, d FROM " + left + " ORDER BY s, y, x, d) " + alias, alias
	case 11:
		return "(SELECT x, y, s, d FROM " + left + " ORDER BY x DESC NULLS LAST, y, s NULLS FIRST, d LIMIT " + w.pick("3", "7 OFFSET 1", "50 %") + ") " + alias, alias
	case 12:
		w.names++
		cte := fmt.Sprintf("m%d", w.names)
		return "(WITH " + cte + " AS " + w.pick("", "MATERIALIZED ") + "(SELECT x, y, s, d FROM " + left + ") SELECT u.x, v.y, u.s, v.d FROM " +
			cte + " u " + w.pick("JOIN", "LEFT JOIN", "FULL JOIN") + " " + cte + " v ON u.x = v.y) " + alias, alias
	case 13:
		return "(SELECT x, (sum(y) OVER (PARTITION BY s))::INTEGER y, s, d FROM (SELECT *, count(*) OVER (PARTITION BY y) AS n, row_number() OVER (ORDER BY x, y, s, d) AS r FROM (SELECT x, y, s, d FROM " +
			left + ")) WHERE n > 1 OR r < 5) " + alias, alias
	case 14:
		return "(SELECT x, count(DISTINCT y)::INTEGER y, max(s) s, sum(DISTINCT d)::DECIMAL(18,2) d FROM " + left + " GROUP BY x) " + alias, alias
	case 15:
		// What DuckDB makes of NULL in an inequality depends on how many rows there are.
		return "(SELECT " + columns + " FROM (SELECT x, y, s, d FROM " + left + " WHERE y IS NOT NULL) " + l + " ASOF " + w.pick("JOIN ", "LEFT JOIN ") +
			"(SELECT x, y, max(s) s, max(d) d FROM " + right + " WHERE y IS NOT NULL GROUP BY x, y) " + r +
			fmt.Sprintf(" ON %s.x = %s.x AND %s.y %s %s.y QUALIFY count(*) OVER (PARTITION BY %s.x, %s.y) < 100)", l, r, l, w.pick(">=", ">", "<"), r, l, l) + alias, alias
	case 16:
		if strings.Contains(right, "ASOF") { // DuckDB refuses it in a step, and is in no good state afterwards
			return w.table(depth - 1)
		}
		w.names++
		cte := fmt.Sprintf("m%d", w.names)
		return "(WITH RECURSIVE " + cte + " AS (SELECT x::BIGINT x, 0 y, s, d FROM " + left + " " + w.pick("UNION", "UNION ALL") + " SELECT " + cte + ".x + 1, " + cte + ".y + 1, " + r + ".s, " + cte + ".d FROM " + cte +
			" JOIN (SELECT x, max(s) s FROM " + right + " GROUP BY x) " + r + " ON " + r + ".x = " + cte + ".x WHERE " + cte + ".y < 3) SELECT * FROM " + cte + ") " + alias, alias
	case 17:
		return "(SELECT " + columns + " FROM " + left + " " + w.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "SEMI JOIN") + " " + right + " ON " + l + "." + w.pick("x", "y") + w.pick(" < ", " >= ", " <> ") + r + "." + w.pick("x", "y") + ") " + alias, alias
	case 18:
		return "(SELECT count(DISTINCT x)::INTEGER x, sum(DISTINCT x)::INTEGER y, min(s) s, sum(d)::DECIMAL(18,2) d FROM " + left + ") " + alias, alias
	case 19:
		return "(SELECT x, sum(y)::INTEGER y, s, max(d) d FROM " + left + " GROUP BY " + w.pick("ROLLUP (x, s)", "CUBE (s, x)", "GROUPING SETS ((x), (s), ())", "GROUPING SETS ((x, s), (x), (x))") + ") " + alias, alias
	case 0, 1:
		join := w.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		return "(SELECT " + columns + " FROM " + left + " " + join + " " + right + on() + ") " + alias, alias
	case 2:
		join := w.pick("SEMI JOIN", "ANTI JOIN")
		return "(SELECT " + l + ".* FROM " + left + " " + join + " " + right + on() + ") " + alias, alias
	case 3:
		op := w.pick("UNION", "UNION ALL", "EXCEPT", "INTERSECT", "EXCEPT ALL")
		return "(SELECT x, y, s, d FROM " + left + " " + op + " SELECT x, y, s, d FROM " + right + ") " + alias, alias
	case 4:
		w.scope = []string{l}
		return "(SELECT " + l + ".x, count(*)::INTEGER y, max(s) s, sum(d) FILTER (WHERE " + w.predicate(0) + ")::DECIMAL(8,2) d FROM " + left + w.where(0) + " GROUP BY " + l + ".x) " + alias, alias
	case 5:
		w.scope = []string{l}
		return "(SELECT x, (row_number() OVER (PARTITION BY s ORDER BY x, y, d))::INTEGER y, s, d FROM " + left + w.where(0) + ") " + alias, alias
	}
	return "(SELECT DISTINCT x, y, s, d FROM " + left + ") " + alias, alias
}

func (w *writer) statement() string {
	from, alias := w.table(2)
	w.scope = []string{alias}
	if w.chance(3) {
		other, second := w.table(1)
		from += " " + w.pick("JOIN", "LEFT JOIN") + " " + other + " ON " + alias + ".x = " + second + ".x"
		w.scope = append(w.scope, second)
	}
	if w.chance(6) {
		return "SELECT count(*), count(DISTINCT " + w.column("x") + "), sum(" + w.column("x") + "), max(" + w.column("d") + "), min(" + w.column("s") + ") FROM " + from + w.where(2)
	}
	if w.chance(4) {
		return "SELECT " + w.column("s") + " g, count(*), sum(" + w.number(1) + "), max(" + w.column("d") + ") FROM " + from + w.where(2) + " GROUP BY g"
	}
	return "SELECT " + w.number(2) + ", " + w.column("s") + ", " + w.predicate(2) + " FROM " + from + w.where(2)
}
