package tpc

import (
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func int64Of(t *testing.T, r *Result) int64 {
	t.Helper()
	return r.Batches[0].Column(0).(*array.Int64).Value(0)
}

// rows is a VALUES list as a result with columns k INTEGER, s VARCHAR, m DECIMAL, d DOUBLE, h HUGEINT.
const head = "SELECT k::INTEGER AS k, s::VARCHAR AS s, m::DECIMAL(15,2) AS m, d::DOUBLE AS d, h::HUGEINT AS h FROM (VALUES "
const tail = ") t(k, s, m, d, h)"

var rule = Rule{Order: []int{0}, Divided: []int{3}}

func TestCompareSeesEveryDifference(t *testing.T) {
	d := baseline(t, shared)
	const good = head + "(1, 'a', 1.5, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail
	want := run(t, d, good)
	_, err := Compare(rule, want, run(t, d, good))
	require.NoError(t, err)
	for name, test := range map[string]struct{ sql, message string }{
		"changed text":    {head + "(1, 'a', 1.5, 0.5, 7), (2, 'B', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "values differ, row 2, column s: want b, got B"},
		"changed decimal": {head + "(1, 'a', 1.51, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "values differ, row 1, column m: want 1.5, got 1.51"},
		"changed hugeint": {head + "(1, 'a', 1.5, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -2)" + tail, "values differ, row 4, column h: want -1, got -2"},
		"changed double":  {head + "(1, 'a', 1.5, 0.5000001, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "values differ, row 1, column d: want 0.5, got 0.5000001"},
		"number for NULL": {head + "(1, 'a', 1.5, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, 0, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "values differ, row 3, column d: want NULL, got 0"},
		"text for NULL":   {head + "(1, 'a', 1.5, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, '', 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "values differ, row 3, column s: want NULL, got "},
		"two changes":     {head + "(1, 'x', 1.5, 0.5, 9), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "rows differ, row 1: want 1|a|1.5|0.5|7, got 1|x|1.5|0.5|9"},
		"missing row":     {head + "(1, 'a', 1.5, 0.5, 7), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan'::DOUBLE, -1)" + tail, "3 rows instead of 4, row 2: want 2|b|2.5|1e+100|8, got no such row"},
		"extra row":       {head + "(1, 'a', 1.5, 0.5, 7), (1, 'a', 1.5, 0.5, 7), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9), (3, 'c|d', 0, 'nan', -1)" + tail, "5 rows instead of 4, row 2: want no such row, got 1|a|1.5|0.5|7"},
		"no rows":         {head + "(1, 'a', 1.5, 0.5, 7)" + tail + " WHERE false", "0 rows instead of 4"},
		"wrong order":     {head + "(1, 'a', 1.5, 0.5, 7), (3, 'c|d', 0, 'nan', -1), (2, 'b', 2.5, 1e100, 8), (2, NULL, 2.25, NULL, 9)" + tail, "wrong order, row 2, column k: want 2, got 3"},
		"wrong type":      {"SELECT k, s, m::DECIMAL(16,2) AS m, d, h FROM (" + good + ")", "types differ, column m: want DECIMAL(15,2), got DECIMAL(16,2)"},
		"wrong name":      {"SELECT k, s, m, d, h AS hh FROM (" + good + ")", "column names differ: want k|s|m|d|h, got k|s|m|d|hh"},
		"missing column":  {"SELECT k, s, m, d FROM (" + good + ")", "column names differ"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compare(rule, want, run(t, d, test.sql))
			var difference *Difference
			require.True(t, errors.As(err, &difference), "no difference found")
			require.Contains(t, err.Error(), test.message)
		})
	}
}

func TestCompareAllowsTiesAndLastBits(t *testing.T) {
	d := baseline(t, shared)
	want := run(t, d, head+"(1, 'a', 1.5, 1, 7), (2, 'b', 2.5, 100, 8), (2, NULL, 2.25, NULL, 9)"+tail)
	got := run(t, d, head+"(1, 'a', 1.5, 1.0000000000000002, 7), (2, NULL, 2.25, NULL, 9), (2, 'b', 2.5, 100.00000001, 8)"+tail)
	report, err := Compare(rule, want, got)
	require.NoError(t, err)
	require.Equal(t, Report{Rows: 3, Approximate: 2}, report)
	_, err = Compare(Rule{Order: []int{0}}, want, got) // not for a column that is not divided
	require.ErrorContains(t, err, "column d")
	_, err = Compare(Rule{Order: []int{0, 4}, Divided: []int{3}}, want, got) // no tie with a further key
	require.ErrorContains(t, err, "wrong order")
}

func TestCompareAnswerReadsTheText(t *testing.T) {
	d := baseline(t, shared)
	got := run(t, d, head+"(1, 'a', 1.5, 0.25, 7), (2, '', 100, NULL, 80)"+tail)
	for answer, message := range map[string]string{
		"k|s|m|d|h\n1|a|1.50|0.25|7\n2||100|\n":            "fields",
		"k|s|m|d|h\n1|a|1.5|0.250|7\n":                     "2 rows instead of 1",
		"k|s|m|d|h\n1|a|1.5|0.250|7\n2|x|100.00||80\n":     "column s",
		"k|s|m|d|h\n1|a|1.5|0.26|7\n2|x|100.00||80\n":      "row 1",
		"k|s|m|d\n1|a|1.5|0.26\n":                          "numbers of columns",
		"k|s|m|d|h\n1|a|1.5|zero|7\n":                      "zero",
		"k|s|m|d|h\n1|a|1.5|0.25|70\n2|x|100.00||8\n":      "values differ",
		"k|s|m|d|h\n2|b|100||80\n1|a|1.5|0.25|7\n3|||||\n": "fields",
	} {
		_, err := CompareAnswer(rule, answer, got)
		require.ErrorContains(t, err, message, answer)
	}
	got = run(t, d, head+"(1, 'a', 1.5, 0.25, 70), (2, NULL, 100, NULL, 80)"+tail)
	report, err := CompareAnswer(rule, "k|s|m|d|h\n1|a|1.500|0.250000000001|70\n2||100.00||80\n", got)
	require.NoError(t, err)
	require.Equal(t, Report{Rows: 2, Approximate: 1}, report)
	_, err = CompareAnswer(rule, "k|s|m|d|h\n1|a|1.500|0.25|7\n2||1||80\n", got)
	require.Error(t, err)
}

// Two tables compare as equal if and only if their rows are a permutation of each other that keeps the keys' sequence.
func TestCompareTablesProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cell := rapid.SampledFrom([]string{"a", "b", "|", null})
		rows := rapid.SliceOf(rapid.SliceOfN(cell, 2, 2)).Draw(t, "rows")
		want := &table{names: []string{"x", "y"}, rows: rows}
		got := &table{names: want.names, rows: rapid.Permutation(rows).Draw(t, "permutation")}
		_, err := compareTables(Rule{}, want, got)
		require.NoError(t, err)
		sameKeys := true
		for i := range rows {
			sameKeys = sameKeys && rows[i][0] == got.rows[i][0]
		}
		_, err = compareTables(Rule{Order: []int{0}}, want, got)
		require.Equal(t, sameKeys, err == nil)
		if len(rows) > 0 {
			at := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
			changed := &table{names: want.names, rows: append([][]string{}, got.rows...)}
			changed.rows[at] = []string{got.rows[at][0], got.rows[at][1] + "x"}
			_, err = compareTables(Rule{}, want, changed)
			require.Error(t, err)
			changed.rows = append(changed.rows[:at], changed.rows[at+1:]...)
			_, err = compareTables(Rule{}, want, changed)
			require.Error(t, err)
			_, err = compareTables(Rule{}, changed, want)
			require.Error(t, err)
		}
	})
}
