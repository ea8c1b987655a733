package planner

import (
	"context"
	"errors"
	"strings"

	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/sqltext"
)

// A query may name files itself, FROM 'x.csv' or FROM read_csv('x.csv'). DuckDB
// can't write down a plan that reads text. If it is planned again with a view of
// the file's name, over a stand-in, the plan is the same and can be written down.

// planText gives DuckDB's plan and estimates of a query.
func planText(ctx context.Context, conn *kernel.Conn, sql, estimates string) (string, string, error) {
	text, err := conn.Plan(ctx, sql)
	if !errors.Is(err, kernel.ErrNotSerializable) {
		return text, estimates, err
	}
	named, ok := standIns(ctx, conn, sql, 1)
	if !ok {
		return "", "", err
	}
	// Whatever is wrong with this text, the query's own is right.
	text, other := conn.Plan(ctx, named)
	if other != nil {
		return "", "", err
	}
	if estimates, other = conn.PlanCardinalities(ctx, named); other != nil {
		return "", "", err
	}
	return text, estimates, nil
}

// manyReaders is the number of calls of readers of text from which a query is planned with stand-ins only: to be bound,
// each takes a buffer of 32 MiB.
const manyReaders = 4

// standIns makes a stand-in for each read of text in a query, and gives the query with their names; not ok when there
// are fewer reads than least, or one of them cannot be shared out.
func standIns(ctx context.Context, conn *kernel.Conn, sql string, least int) (named string, ok bool) {
	named, calls := directFiles(sql)
	if len(calls) < least {
		return "", false
	}
	for name, call := range calls {
		src, err := textSource(ctx, conn, call)
		if err != nil || src == nil {
			return "", false
		}
		if conn.Exec(ctx, "CREATE OR REPLACE TEMP VIEW "+plan.Ident(name)+" AS SELECT * FROM "+src.SQL()) != nil {
			return "", false
		}
	}
	return named, true
}

// directFiles lists the reads of text in a query, by names, and gives the query with
// these names in the place of the readers' calls, everything at its place.
func directFiles(sql string) (named string, calls map[string]textCall) {
	tokens := sqltext.Tokens(sql)
	out := []byte(sql)
	calls = map[string]textCall{}
	for i := 0; i < len(tokens); i++ {
		if call, end, ok := readerCall(sql, tokens, i); ok {
			name := call.viewName(len(calls))
			quoted, from, to := plan.Ident(name), tokens[i].From, tokens[end].To
			if len(quoted) <= to-from {
				copy(out[from:to], quoted+strings.Repeat(" ", to-from-len(quoted)))
				calls[name] = call
			}
			i = end
			continue
		}
		path, ok := textOf(tokens[i].Text)
		if call, text := callOf(path); ok && text && i > 0 {
			if before := tokens[i-1]; before.Is("FROM") || before.Is("JOIN") || before.Is(",") {
				calls[path] = call
			}
		}
	}
	return string(out), calls
}

// textOf is what a quoted name or a plain string holds.
func textOf(token string) (string, bool) {
	if len(token) < 2 {
		return "", false
	}
	quote := token[:1]
	if quote != "'" && quote != `"` || !strings.HasSuffix(token, quote) {
		return "", false
	}
	return strings.ReplaceAll(token[1:len(token)-1], quote+quote, quote), true
}
