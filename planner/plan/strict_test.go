package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/plan"
)

// rich holds most kinds of operators, expressions and filters.
const rich = `
	WITH c AS MATERIALIZED (SELECT k, s, sum(i) x, string_agg(s, '|') FROM t GROUP BY ROLLUP (k, s))
	SELECT a.i, a.d * 2 + 1, CASE WHEN a.i BETWEEN 1 AND a.k THEN a.s ELSE 'x' END, coalesce(a.s, 'y'), list_transform([a.i], lambda x: x + a.i),
		row_number() OVER (PARTITION BY a.k ORDER BY a.i DESC), sum(a.i) OVER (ORDER BY a.i ROWS 2 PRECEDING),
		(SELECT max(b.i) FROM t b WHERE b.k = a.k AND b.i < 7), a.i IN (SELECT i FROM t), a.s::INTEGER IS NULL, c.x
	FROM t a LEFT JOIN c ON a.k = c.k AND a.i < c.x, range(2) r, (VALUES (1), (2)) v(w)
	WHERE a.i > 3 AND (a.s IS NULL OR a.s <> 'z') AND v.w < r.range
	ORDER BY 1 LIMIT 10`

func richPlan(t *testing.T) string {
	in := open(t, "")
	in.setup(t, "CREATE TABLE t AS SELECT i, i % 3 AS k, 's' || i AS s, (i / 3)::DECIMAL(8,2) AS d FROM range(20) r(i)")
	text, err := in.planning.Plan(context.Background(), rich)
	require.NoError(t, err)
	_, err = plan.Decode(text)
	require.NoError(t, err)
	return text
}

// skipped are the keys whose contents say nothing that the tree needs.
var skipped = map[string]bool{
	"arguments": true, "original_arguments": true, "input_table_types": true, "input_table_names": true, "types": true,
	"extra_info": true, "mark_types": true, "child_indexes": true, "bound_columns": true,
}

// mutate calls f at each object of the tree that Decode must read.
func mutate(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for k, child := range v {
			if skipped[k] || k == "type" && v["index_type"] != nil || k == "return_type" && v["expression_class"] == "BOUND_UNNEST" ||
				v["lambda_expr"] != nil && k == "return_type" || v["check_overflow"] != nil || k == "function_data" && v["name"] == "struct_pack" {
				continue
			}
			mutate(child, f)
		}
	case []any:
		for _, child := range v {
			mutate(child, f)
		}
	}
}

func requireUnsupported(t *testing.T, tree any, what string) {
	t.Helper()
	text, err := json.Marshal(tree)
	require.NoError(t, err)
	_, err = plan.Decode(string(text))
	var u *plan.UnsupportedError
	require.ErrorAs(t, err, &u, what)
}

// TestUnknownKey adds a key to each object in turn.
func TestUnknownKey(t *testing.T) {
	tree := parse(t, richPlan(t))
	mutate(tree["plans"], func(o map[string]any) {
		if o["check_overflow"] != nil {
			return
		}
		o["surprise"] = 1
		what, _ := json.Marshal(o)
		requireUnsupported(t, tree, string(what))
		delete(o, "surprise")
	})
}

// TestUnknownWord replaces each word of DuckDB's vocabulary in turn.
func TestUnknownWord(t *testing.T) {
	tree := parse(t, richPlan(t))
	seen := map[string]bool{}
	mutate(tree["plans"], func(o map[string]any) {
		for _, key := range []string{
			"type", "expression_class", "comparison_type", "filter_type", "join_type", "comparison", "null_order", "start", "end",
			"exclude_clause", "aggregate_type", "index_type", "id", "distinct_type",
		} {
			word, ok := o[key].(string)
			if !ok || key == "type" && o["expression_class"] != nil && !strings.HasPrefix(word, "COMPARE") {
				continue
			}
			seen[key] = true
			o[key] = "SURPRISE"
			requireUnsupported(t, tree, key+" "+word)
			o[key] = word
		}
	})
	require.Greater(t, len(seen), 10, "the plan is not rich enough")
}

// TestMissingKey removes keys, each kind of each object three times: an error or a tree, never a panic.
func TestMissingKey(t *testing.T) {
	tree := parse(t, richPlan(t))
	times := map[string]int{}
	mutate(tree["plans"], func(o map[string]any) {
		for _, key := range keysOf(o) {
			kind := fmt.Sprint(key, o["type"], o["name"], o["expression_class"], o["filter_type"])
			if times[kind]++; times[kind] > 3 {
				continue
			}
			v := o[key]
			delete(o, key)
			text, err := json.Marshal(tree)
			require.NoError(t, err)
			if root, err := plan.Decode(string(text)); err == nil {
				_, err = plan.Print(root)
				require.NoError(t, err)
			}
			o[key] = v
		}
	})
}

func TestNotAPlan(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "cannot write",
		"{":                                   "malformed",
		"[]":                                  "not an object",
		`{"error":false,"plans":[]}`:          "0 statements",
		`{"error":false,"plans":[{}]}`:        "has no type",
		`{"error":true,"error_message":"no"}`: "no",
		`{"error":false,"plans":[{"type":"LOGICAL_PIVOT","children":[]}]}`: "operator LOGICAL_PIVOT",
	} {
		_, err := plan.Decode(text)
		var u *plan.UnsupportedError
		require.ErrorAs(t, err, &u, text)
		require.ErrorContains(t, err, want)
	}
}

func parse(t *testing.T, text string) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	require.NoError(t, d.Decode(&v))
	return v
}

func keysOf(o map[string]any) []string {
	var out []string
	for k := range o {
		out = append(out, k)
	}
	return out
}
