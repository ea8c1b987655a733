package plan_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/planner/plan"
)

type corpusCase struct{ id, setup, query string }

func readCorpus(t testing.TB, file, data string) []corpusCase {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []corpusCase
	for _, block := range strings.Split(strings.ReplaceAll(string(text), "$DATA", data), "\n;;\n") {
		head, body, ok := strings.Cut(strings.TrimSpace(block), "\n")
		if !ok {
			continue
		}
		c := corpusCase{id: strings.TrimPrefix(head, "-- "), query: body}
		if setup, query, ok := strings.Cut(body, "\n::\n"); ok {
			c.setup, c.query = setup, query
		}
		out = append(out, c)
	}
	return out
}

// expectations are the cases that do not round trip: id, what happens instead, why.
func readExpectations(t testing.TB, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		require.GreaterOrEqual(t, len(fields), 3, line)
		out[fields[0]] = fields[1]
	}
	return out
}

// roundTrip gives "pass", or the word for what happened and a text about it.
func roundTrip(in instances, query string) (outcome, about string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // a lost condition is a cross product
	defer cancel()
	want, failed := run(ctx, in.original, query)
	text, err := in.planning.Plan(ctx, query)
	if err != nil {
		if failed != nil {
			return "pass", ""
		}
		return "unplanned", err.Error()
	}
	root, err := plan.Decode(text)
	if err != nil {
		return "undecoded", err.Error()
	}
	sql, err := plan.PrintFragment(root, nil, nil)
	if err != nil {
		return "unprinted", err.Error()
	}
	got, err := run(ctx, in.executing, sql)
	if failed != nil {
		if err == nil {
			return "differs", "the original fails: " + failed.Error()
		}
		return "pass", ""
	}
	if err != nil {
		return "fails", err.Error() + "\n" + sql
	}
	_, sorted := root.(*plan.OrderBy)
	if d := difference(want, got, sorted); d != "" {
		return "differs", d + "\n" + sql
	}
	return "pass", ""
}

// shapes are optimizers to switch off in addition, for other shapes of plans.
var shapes = []string{
	"", ",deliminator,unnest_rewriter,top_n,limit_pushdown", ",join_order,common_subplan,cte_inlining,cte_filter_pusher",
}

// TestCorpus plans each statement, prints the plan and compares what the text gives with what the statement gives, by
// type and value.
func TestCorpus(t *testing.T) {
	for _, off := range shapes {
		t.Run("without"+off, func(t *testing.T) { corpus(t, off) })
	}
}

func corpus(t *testing.T, off string) {
	in := open(t, off)
	in.setup(t, `CREATE SCHEMA h;
		CREATE TABLE h.customer AS SELECT i AS c_custkey FROM range(200) r(i);
		CREATE TABLE h.orders AS SELECT i AS o_orderkey, i % 211 AS o_custkey FROM range(600) r(i);
		CREATE TABLE h.lineitem AS SELECT i % 607 AS l_orderkey, (i * 7.31)::DECIMAL(15,2) AS l_extendedprice,
			(i % 11 / 100)::DECIMAL(15,2) AS l_discount, (i % 9 / 100)::DECIMAL(15,2) AS l_tax FROM range(3000) r(i)`)
	expected := readExpectations(t, "testdata/corpus.expect")
	cases := append(readCorpus(t, "testdata/corpus-a.txt", t.TempDir()), readCorpus(t, "testdata/corpus-b.txt", t.TempDir())...)
	for _, c := range cases {
		if c.setup != "" {
			in.setup(t, c.setup)
		}
		outcome, about := roundTrip(in, c.query)
		want := "pass"
		if w, ok := expected[c.id]; ok {
			want = w
			delete(expected, c.id)
		}
		if outcome != want {
			t.Errorf("%s: want %s, is %s: %s\n%s", c.id, want, outcome, about, c.query)
		}
	}
	require.Empty(t, expected, "expectations without a case")
}
