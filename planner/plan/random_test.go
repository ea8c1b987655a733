package plan_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// writer draws random SELECTs over tables of the columns x, y (INTEGER), s (VARCHAR) and d (DECIMAL), all with NULLs and
// duplicates. What it draws always parses and nearly always binds.
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
	switch rapid.IntRange(0, 12).Draw(w.t, "table") {
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
	if w.chance(4) {
		return "SELECT " + w.column("s") + " g, count(*), sum(" + w.number(1) + "), max(" + w.column("d") + ") FROM " + from + w.where(2) + " GROUP BY g"
	}
	return "SELECT " + w.number(2) + ", " + w.column("s") + ", " + w.predicate(2) + " FROM " + from + w.where(2)
}

// TestRandom compares random statements with their printed plans, whole and in two parts.
func TestRandom(t *testing.T) {
	for _, off := range shapes {
		t.Run("without"+off, func(t *testing.T) { random(t, off) })
	}
}

func random(t *testing.T, off string) {
	in := open(t, off)
	in.setup(t, `
		CREATE TABLE a AS SELECT nullif(i % 5, 4)::INTEGER x, nullif(i % 3, 1)::INTEGER y, CASE WHEN i % 4 > 0 THEN 's' || i % 3 END s, (i * 0.5)::DECIMAL(8,2) d FROM range(9) r(i);
		CREATE TABLE b AS SELECT i::INTEGER x, (i % 2)::INTEGER y, 's' || i s, nullif(i, 2)::DECIMAL(8,2) d FROM range(4) r(i);
		CREATE TABLE e AS SELECT * FROM a WHERE FALSE;
		CREATE TABLE big AS SELECT (i % 40)::INTEGER x, (i % 7)::INTEGER y, 's' || i % 5 s, (i % 9)::DECIMAL(8,2) d FROM range(100) r(i)`)
	counts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		query := (&writer{t: t}).statement()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		want, err := run(ctx, in.original, query)
		if e, ok := errors.AsType[*kernel.Error](err); ok && (e.Type == "Binder" || e.Type == "Catalog" || e.Type == "Not implemented") {
			counts[e.Type]++
			t.Skip(e.Message)
		}
		text, planErr := in.planning.Plan(ctx, query)
		if planErr != nil {
			counts["unplanned"]++
			t.Skip(planErr)
		}
		root, decodeErr := plan.Decode(text)
		require.NoError(t, decodeErr, query)
		sql, printErr := plan.PrintFragment(root, nil, nil)
		if u, ok := errors.AsType[*plan.UnsupportedError](printErr); ok {
			counts[u.What]++
			t.Skip(u.What)
		}
		require.NoError(t, printErr, query)
		got, gotErr := run(ctx, in.executing, sql)
		if err != nil || ctx.Err() != nil { // an error of the data, which another plan need not meet
			counts["failed"]++
			t.Skip(err)
		}
		require.NoError(t, gotErr, query+"\n"+sql)
		counts["compared"]++
		require.Empty(t, difference(want, got, false), query+"\n"+strings.ReplaceAll(sql, "SELECT", "\nSELECT"))
		require.Empty(t, difference(want, cut(t, in, root), false), query)
	})
	t.Log(counts)
	require.Greater(t, counts["compared"], 10)
}
