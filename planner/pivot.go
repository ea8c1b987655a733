package planner

import (
	"context"
	"errors"
	"slices"
	"strings"

	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/sqltext"
)

// expand gives the text that a query stands for: its own, but for a PIVOT without
// IN, whose columns are the values that its input has. Those are read now, and
// written into the text, so that every task means the same columns. The text may
// name noValues.
func (s *Service) expand(ctx context.Context, sql string, setup []string) (string, error) {
	tokens := sqltext.Tokens(sql)
	if !slices.ContainsFunc(tokens, func(t sqltext.Token) bool { return t.Is("PIVOT") || t.Is("PIVOT_WIDER") }) || statements(tokens) != 1 {
		return sql, nil
	}
	conn, err := s.exec.Connect()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := makeTables(ctx, conn, append(slices.Clip(setup), makeNoValues)); err != nil {
		return "", err
	}
	x, err := conn.Expand(ctx, sql)
	switch {
	case errors.Is(err, kernel.ErrNoExpansion):
		return sql, nil
	case err != nil:
		return "", err
	}
	asked := asked(sql, tokens)
	if len(asked) != len(x.Values) {
		return "", errPivot
	}
	var b strings.Builder
	at := 0
	for i, a := range asked {
		b.WriteString(sql[at:a.from])
		b.WriteString("((" + sql[a.from:a.to] + ")) IN " + among(x.Values[i]))
		at = a.end
	}
	b.WriteString(sql[at:])
	columns, err := conn.Describe(ctx, b.String())
	if err != nil || !slices.Equal(columns, x.Columns) {
		return "", errPivot
	}
	return b.String(), nil
}

// noValues is an ENUM without a value, and makeNoValues its statement: the grammar
// has no empty list for a PIVOT whose input has no value, or none but NULL.
const (
	noValues     = `"manta no values"`
	makeNoValues = "CREATE TEMP TYPE " + noValues + " AS ENUM ()"
)

// among is what an IN of a PIVOT is followed by.
func among(values []string) string {
	if len(values) == 0 {
		return noValues
	}
	literals := make([]string, len(values))
	for i, v := range values {
		literals[i] = plan.Literal(v)
	}
	return "(" + strings.Join(literals, ", ") + ")"
}

// pivotByFilters makes DuckDB plan a PIVOT of up to so many columns as aggregates
// with filters, which can be distributed; of more, by an operator that can't.
const pivotByFilters = "SET pivot_filter_threshold = 500"

var errPivot = errors.New("planner: a PIVOT whose values cannot be written into the query; name them with IN (…)")

// statements is the number of statements in a text.
func statements(tokens []sqltext.Token) int {
	n, begun := 0, false
	for _, t := range tokens {
		if t.Is(";") {
			begun = false
		} else if !begun {
			n, begun = n+1, true
		}
	}
	return n
}

// question is an expression of a PIVOT's ON whose values the text does not name:
// from its beginning to its end, and to the end of the IN that asks for them.
type question struct{ from, to, end int }

// asked are the questions of a text, in its order.
func asked(sql string, tokens []sqltext.Token) []question {
	var out []question
	for i, t := range tokens {
		// FROM t PIVOT (…) is another form, which names its values.
		if !t.Is("PIVOT") && !t.Is("PIVOT_WIDER") || i+1 == len(tokens) || i > 0 && !tokens[i-1].Is("(") && !tokens[i-1].Is(")") {
			continue
		}
		on := lastOn(tokens[i:], t.Depth)
		if on < 0 {
			continue
		}
		out = append(out, headers(tokens[i+on+1:], t.Depth)...)
	}
	slices.SortFunc(out, func(a, b question) int { return a.end - b.end })
	return out
}

// afterOn are the words that may follow the columns of a PIVOT.
var afterOn = []string{"USING", "GROUP", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", ";"}

func ends(t sqltext.Token, depth int) bool {
	return t.Depth < depth || t.Depth == depth && slices.ContainsFunc(afterOn, t.Is)
}

// lastOn finds the ON of a PIVOT: the last one, for its input may be a join.
func lastOn(tokens []sqltext.Token, depth int) int {
	on := -1
	for i, t := range tokens {
		switch {
		case t.Depth < depth, on >= 0 && ends(t, depth):
			return on
		case t.Depth == depth && t.Is("ON"):
			on = i
		}
	}
	return on
}

// headers are the questions among the expressions behind an ON.
func headers(tokens []sqltext.Token, depth int) (out []question) {
	first, in := 0, -1
	for i := 0; i <= len(tokens); i++ {
		if i < len(tokens) && !ends(tokens[i], depth) {
			t := tokens[i]
			if t.Depth == depth && t.Is("IN") {
				in = i
			}
			if t.Depth > depth || !t.Is(",") {
				continue
			}
		}
		switch {
		case i == first:
		case in < 0:
			out = append(out, question{tokens[first].From, tokens[i-1].To, tokens[i-1].To})
		case in > first && i > in+2 && tokens[in+1].Is("(") && tokens[in+2].Is("SELECT"):
			out = append(out, question{tokens[first].From, tokens[in-1].To, tokens[i-1].To})
		}
		if i == len(tokens) || ends(tokens[i], depth) {
			return out
		}
		first, in = i+1, -1
	}
	return out
}
