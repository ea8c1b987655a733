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

// A query may name files itself, FROM 'x.csv' or FROM read_csv('x.csv'). DuckDB
// can't write down a plan that reads text. If it is planned again with a view of
// the file's name, over a stand-in, the plan is the same and can be written down.

// planText gives DuckDB's plan and estimates of a query.
func planText(ctx context.Context, conn *kernel.Conn, sql, estimates string) (string, string, error) {
	text, err := conn.Plan(ctx, sql)
	if !errors.Is(err, kernel.ErrNotSerializable) {
		return text, estimates, err
	}
	named, sources := directFiles(sql)
	if len(sources) == 0 {
		return "", "", err
	}
	for _, path := range sources {
		src, why := textSource(ctx, conn, path)
		if why != nil || src == nil {
			return "", "", err
		}
		if conn.Exec(ctx, "CREATE TEMP VIEW "+plan.Ident(path)+" AS SELECT * FROM "+src.SQL()) != nil {
			return "", "", err
		}
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

// textReaders are the readers whose call with nothing but a path means what the path alone does.
var textReaders = map[string]string{
	"read_csv": readCSV, "read_csv_auto": readCSV, "read_json": readJSON, "read_json_auto": readJSON,
}

// directFiles lists the files of text that a query names, and gives the query
// with their names in the place of the readers' calls, everything at its place.
func directFiles(sql string) (named string, paths []string) {
	tokens := sqltext.Tokens(sql)
	out := []byte(sql)
	at := func(i int) sqltext.Token {
		if i < 0 || i >= len(tokens) {
			return sqltext.Token{}
		}
		return tokens[i]
	}
	for i, t := range tokens {
		path, ok := textOf(t.Text)
		if !ok || readerOf(path) == readParquet {
			continue
		}
		before := at(i - 1)
		switch {
		case before.Is("("):
			call := at(i - 2)
			quoted := plan.Ident(path)
			if textReaders[strings.ToLower(call.Text)] != readerOf(path) || !at(i+1).Is(")") || len(quoted) > at(i+1).To-call.From {
				continue
			}
			blank := out[call.From:at(i+1).To]
			for k := range blank {
				blank[k] = ' '
			}
			copy(blank, quoted)
		case before.Is("FROM"), before.Is("JOIN"), before.Is(","):
		default:
			continue
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return string(out), paths
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
