package plan_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/plan"
)

// arguments are, for the names that duckdb_functions() gives to parameter types, an expression over the table ty.
var arguments = map[string]string{
	"BIGINT": "i", "INTEGER": "2", "TINYINT": "ti", "SMALLINT": "si", "HUGEINT": "hi", "UTINYINT": "uti", "USMALLINT": "usi",
	"UINTEGER": "ui", "UBIGINT": "ubi", "UHUGEINT": "uhi", "FLOAT": "f", "DOUBLE": "d", "DECIMAL": "d9", "VARCHAR": "s", "DATE": "dt",
	"TIME": "tm", "TIMESTAMP": "ts", "TIMESTAMP_S": "tss", "TIMESTAMP_MS": "tsm", "TIMESTAMP_NS": "tsn", "TIMESTAMP WITH TIME ZONE": "tz",
	"INTERVAL": "iv", "UUID": "u", "BLOB": "b", "BIT": "bt", "BOOLEAN": "bo", "JSON": "js", "ANY": "s", "T": "i", "ANY[]": "li", "T[]": "li",
	"STRUCT": "st", "MAP": "mp", "MAP(K, V)": "mp", "K": "'k'", "V": "i", "UNION": "un", "BIGINT[]": "li", "VARCHAR[]": "[s, 'x']",
	"DOUBLE[]": "[d, 0.5]", "FLOAT[]": "[f, 0.5]", "FLOAT[ANY]": "ar::FLOAT[3]", "DOUBLE[ANY]": "ar::DOUBLE[3]", "ANY[ANY]": "ar",
	"TIME WITH TIME ZONE": "tm::TIMETZ", "DECIMAL[]": "[d9]", "LAMBDA": "lambda x: x", "TIME_NS": "tm::TIME_NS",
}

// unlike are functions whose value is another one in each statement.
var unlike = []string{
	"current_localtime", "current_localtimestamp", "get_current_time", "get_current_timestamp", "now", "transaction_timestamp", "txid_current",
	"random", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed", "sleep_ms", "error", "write_log", "nextval", "currval",
}

// ofSession are functions that speak of the statement or the session.
var ofSession = []string{"current_query", "current_query_id", "current_transaction_id", "current_connection_id", "stats"}

// exotic functions give types that are no data to exchange.
var exotic = []string{"get_type", "st_geomfromwkb"}

// TestFunctions calls every scalar and aggregate function that DuckDB has, in every overload for which there is an argument:
// what a new version keeps in a function's bind data shows here.
func TestFunctions(t *testing.T) {
	in := open(t, "")
	in.setup(t, readCorpus(t, "testdata/corpus-a.txt", t.TempDir())[0].setup)
	functions, err := run(context.Background(), in.original, `
		SELECT DISTINCT function_type, function_name, array_to_string(parameter_types, ';'), coalesce(varargs, '')
		FROM duckdb_functions() WHERE function_type IN ('scalar', 'aggregate') AND function_name NOT LIKE '!_!_%' ESCAPE '!'
			AND (function_name NOT LIKE 'icu_collate_%' OR function_name IN ('icu_collate_de', 'icu_collate_noaccent'))
		ORDER BY ALL`)
	require.NoError(t, err)
	var scalars, aggregates, windows []string
	for _, f := range functions.rows {
		parts := strings.Split(f, " | ")
		name, types := parts[1], strings.FieldsFunc(parts[2]+";"+parts[3], func(r rune) bool { return r == ';' })
		args := make([]string, len(types))
		for i, typ := range types {
			args[i] = arguments[typ]
		}
		call := fmt.Sprintf("%q(%s)", name, strings.Join(args, ", "))
		if slices.Contains(unlike, name) || slices.Contains(args, "") {
			continue
		}
		if _, err := in.original.Describe(context.Background(), "SELECT "+call+" FROM ty"); err != nil {
			continue // these arguments don't go together
		}
		switch {
		case slices.Contains(ofSession, name) || slices.Contains(exotic, name):
			outcome, about := roundTrip(in, "SELECT "+call+" FROM ty")
			require.Equal(t, "undecoded", outcome, call+about)
		case parts[0] == "aggregate":
			aggregates, windows = append(aggregates, call), append(windows, call+" OVER (PARTITION BY i % 4 ORDER BY i)")
		default:
			scalars = append(scalars, call)
		}
	}
	require.Greater(t, len(scalars), 500)
	functionBatches(t, in, "SELECT i, %s FROM ty ORDER BY i", scalars)
	functionBatches(t, in, "SELECT i %% 4, %s FROM ty GROUP BY 1 ORDER BY 1", aggregates)
	functionBatches(t, in, "SELECT i, %s FROM ty ORDER BY i", windows)
}

// functionBatches tries many calls in one statement, and halves those that fail because one of them does.
func functionBatches(t *testing.T, in instances, form string, calls []string) {
	for chunk := range slices.Chunk(calls, 16) {
		functionBatch(t, in, form, chunk)
	}
}

func functionBatch(t *testing.T, in instances, form string, calls []string) {
	query := fmt.Sprintf(form, strings.Join(calls, ", "))
	if _, err := run(context.Background(), in.original, query); err != nil && len(calls) > 1 {
		functionBatch(t, in, form, calls[:len(calls)/2])
		functionBatch(t, in, form, calls[len(calls)/2:])
		return
	}
	if outcome, about := roundTrip(in, query); outcome != "pass" {
		t.Errorf("%s: %s: %s", query, outcome, about)
	}
}

// TestVolatile holds the list of volatile functions against DuckDB's.
func TestVolatile(t *testing.T) {
	in := open(t, "")
	names, err := run(context.Background(), in.original,
		"SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'scalar' AND stability = 'VOLATILE'")
	require.NoError(t, err)
	for _, name := range names.rows {
		call := &plan.Func{Name: name, T: plan.Integer}
		// error() is volatile for DuckDB so that it isn't folded away; it may be evaluated anywhere.
		known := slices.Contains(ofSession, name) || name == "error"
		require.Equal(t, !known, plan.IsVolatile(&plan.Cast{Child: call, T: plan.Double}), name)
	}
	inner := &plan.Func{Name: "list_transform", Lambda: &plan.Lambda{Params: 1, Body: &plan.Func{Name: "random", T: plan.Double}}}
	require.True(t, plan.IsVolatile(inner))
	require.True(t, plan.Volatile(&plan.Project{Child: &plan.DummyScan{}, Exprs: []plan.Expr{inner}}))
	require.True(t, plan.IsVolatile(&plan.Raw{SQL: "random()", Volatile: true}))
}

// TestVolatileMark has a value that must not be computed twice in a join that prints as several.
func TestVolatileMark(t *testing.T) {
	in := open(t, "")
	in.setup(t, "CREATE TABLE t AS SELECT i, i % 3 AS k FROM range(9) r(i)")
	outcome, about := roundTrip(in, "SELECT i, (random() * 0)::BIGINT IN (SELECT k FROM t b WHERE b.i = a.k) FROM t a")
	require.Equal(t, "unprinted", outcome)
	require.Contains(t, about, "volatile")
	outcome, about = roundTrip(in, "SELECT i FROM t a WHERE (random() * 0)::BIGINT + 1 IN (SELECT k FROM t b)")
	require.Equal(t, "pass", outcome, about)
}
