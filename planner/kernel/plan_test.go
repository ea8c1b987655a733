package kernel

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func planning(t *testing.T) *Conn {
	return connect(t, open(t, Config{DisabledOptimizers: PlanningDisabled}))
}

func TestPlanIsStrictJSON(t *testing.T) {
	c := planning(t)
	for _, sql := range []string{
		"SELECT k, count(*) FROM (SELECT i % 7 AS k FROM range(100) t(i)) GROUP BY k ORDER BY k",
		"SELECT x, 'NaN \"Infinity\" \\', 'nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::FLOAT FROM range(3) t(x) WHERE x <> 'it''s'::VARCHAR::INT OR x = 'nan'::DOUBLE",
	} {
		text, err := c.Plan(context.Background(), sql)
		require.NoError(t, err)
		var plan struct {
			Error bool              `json:"error"`
			Plans []json.RawMessage `json:"plans"`
		}
		require.NoError(t, json.Unmarshal([]byte(text), &plan), text)
		require.Len(t, plan.Plans, 1)
		estimates, err := c.PlanCardinalities(context.Background(), sql)
		require.NoError(t, err)
		require.Contains(t, estimates, "Estimated Cardinality")
		require.True(t, json.Valid([]byte(estimates)))
	}
}

func TestPlanTellsMistakesFromLimits(t *testing.T) {
	c := planning(t)
	for _, sql := range []string{"SELECT '0101'::BIT", "PIVOT (SELECT 1 AS a, 2 AS b) ON a USING sum(b)", "EXPLAIN SELECT 1", "SELECT ? + 1"} {
		_, err := c.Plan(context.Background(), sql)
		require.ErrorIs(t, err, ErrNotSerializable, sql)
	}
	for sql, want := range map[string]Error{
		"SELECT x FROM":                         {"Parser", "syntax error at end of input", 14},
		"SELECT nope(3)":                        {"Catalog", `Scalar Function with name nope does not exist! Did you mean "now"?`, 8},
		"SELECT * FROM range(3) t(x) WHERE y":   {"Binder", `Referenced column "y" not found in FROM clause! Candidate bindings: "x"`, 35},
		"SELECT * FROM '/no/such/file.parquet'": {"IO", `No files found that match the pattern "/no/such/file.parquet"`, 0},
	} {
		_, err := c.Plan(context.Background(), sql)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.NotErrorIs(t, err, ErrNotSerializable)
		require.Equal(t, want, *e)
		if want.Type == "Parser" {
			_, err = c.PlanCardinalities(context.Background(), sql)
			require.ErrorAs(t, err, &e)
			require.Equal(t, want.Position, e.Position)
		}
	}
}

func TestStatements(t *testing.T) {
	c := planning(t)
	for _, test := range []struct {
		sql, kind string
		n         int
	}{
		{"SELECT 1", "SELECT", 1}, {"-- only a comment", "", 0}, {"", "", 0}, {"SELECT 1; SELECT 2", "SELECT", 2}, {"CREATE TABLE x AS SELECT 1", "CREATE", 1},
		{"COPY (SELECT 1) TO '/tmp/x.csv'", "COPY", 1}, {"SET threads = 2", "SET", 1}, {"EXPLAIN SELECT 1", "EXPLAIN", 1}, {"FROM range(3)", "SELECT", 1},
	} {
		s, err := c.Statements(context.Background(), test.sql)
		require.NoError(t, err, test.sql)
		require.Equal(t, test.kind, s.Kind)
		require.Equal(t, test.n, s.Count)
	}
	_, err := c.Statements(context.Background(), "SELEC 1")
	require.ErrorContains(t, err, "Parser Error")
	const sql = `SELECT 1::DECIMAL(10,2) AS "a b", sum(x) AS a, 3 AS a FROM range(3) t(x)`
	want := []Column{{"a b", "DECIMAL(10,2)"}, {"a", "HUGEINT"}, {"a", "INTEGER"}}
	columns, err := c.Describe(context.Background(), sql)
	require.NoError(t, err)
	require.Equal(t, want, columns)
	s, err := c.Statements(context.Background(), sql)
	require.NoError(t, err)
	require.Equal(t, want, s.Columns)
}

// Quoting the bare words of a JSON text changes nothing else, whatever its strings hold.
func TestStrictJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOf(rapid.StringOf(rapid.SampledFrom([]rune(`aN"\Infinity-NaN ,:{}`)))).Draw(t, "texts")
		loose, strict := "[", "["
		for _, k := range keys {
			text, _ := json.Marshal(k)
			word := rapid.SampledFrom([]string{"NaN", "Infinity", "-Infinity", "-1.5", "null"}).Draw(t, "word")
			loose += string(text) + "," + word + ","
			if word[0] == 'N' || word[len(word)-1] == 'y' {
				word = `"` + word + `"`
			}
			strict += string(text) + "," + word + ","
		}
		require.Equal(t, strict+"0]", strictJSON(loose+"0]"))
		require.True(t, json.Valid([]byte(strictJSON(loose+"0]"))))
	})
}
