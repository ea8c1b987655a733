package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/bench/tpc"
	"manta/planner"
)

func options(t *testing.T) SuiteOptions {
	return SuiteOptions{Suite: tpc.H, Data: data(t), Cluster: planner.Config{Nodes: 2, CPUs: 1, Memory: 512 << 20, DataDir: t.TempDir()}}
}

// Every query gives the right answer in every mode, distributed.
func TestRunSuite(t *testing.T) {
	o := options(t)
	var told []string
	o.Progress = func(format string, args ...any) { told = append(told, fmt.Sprintf(format, args...)) }
	report, err := RunSuite(context.Background(), o)
	require.NoError(t, err)
	require.Equal(t, "tpch", report.Benchmark)
	require.InDelta(t, sf, report.SF, 0)
	require.Equal(t, 2, report.Nodes)
	require.Equal(t, 2, report.Slots)
	require.Equal(t, 1, report.Runs)
	require.True(t, report.Official)
	require.Zero(t, report.Wrong)
	require.Len(t, report.Results, 22*len(AllModes))
	require.Len(t, report.DuckDB, 22)
	require.Len(t, told, 22*len(AllModes))
	for i, r := range report.Results {
		require.Equal(t, AllModes[i/22], r.Mode)
		require.Equal(t, i%22+1, r.Query)
		require.True(t, r.Verified, "query %d in mode %s: %s", r.Query, r.Mode, r.Difference)
		require.True(t, r.Distributed, "query %d in mode %s: %s", r.Query, r.Mode, r.Fallback)
		require.Len(t, r.Seconds, 1)
		require.Equal(t, r.Seconds[0], r.MedianS)
		require.Positive(t, r.Rows)
		require.Positive(t, r.Stages)
		require.GreaterOrEqual(t, r.Tasks, r.Stages)
		require.Positive(t, r.BytesExchanged)
		require.Positive(t, r.Batches)
		require.LessOrEqual(t, r.References, r.ControlMessages, "a reference is sent by a control message")
		require.Positive(t, r.PeakRSSMiB)
		require.Equal(t, report.Results[i%22].Rows, r.Rows)
		require.Zero(t, r.Watchdog, "query %d in mode %s", r.Query, r.Mode)
		require.Zero(t, r.Restarts)
	}
	best := 0.0
	for q := range 22 {
		least := math.Inf(1)
		for m := range len(AllModes) - 1 { // auto is the last
			least = min(least, report.Results[m*22+q].MedianS)
			require.Zero(t, report.Results[m*22+q].Regret)
		}
		auto := report.Results[(len(AllModes)-1)*22+q]
		require.InEpsilon(t, auto.MedianS/least, auto.Regret, 1e-9)
		best += least
	}
	require.InEpsilon(t, report.Totals["auto"].Seconds/best, report.Totals["auto"].Regret, 1e-9)
	for _, mode := range AllModes {
		total := report.Totals[mode]
		require.Positive(t, total.Seconds)
		require.InEpsilon(t, total.Seconds/report.DuckDBSeconds, total.RatioToDuckDB, 1e-9)
	}
	checkTable(t, report)
}

// checkTable checks that the table has a row for each query and a column for each mode.
func checkTable(t *testing.T, r *SuiteReport) {
	t.Helper()
	var out bytes.Buffer
	r.WriteTable(&out)
	rows := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if fields := strings.Fields(line); len(fields) > 0 && rows[fields[0]] == nil {
			rows[fields[0]] = fields
		}
	}
	require.Equal(t, append([]string{"query", "rows", "duckdb"}, append(slices.Clone(r.Modes), "notes")...), rows["query"])
	for _, base := range r.DuckDB {
		row := rows[fmt.Sprintf("q%d", base.Query)]
		require.GreaterOrEqual(t, len(row), 3+len(r.Modes), "%v", row)
		require.Equal(t, seconds(base.MedianS), row[2])
		for i, mode := range r.Modes {
			at := slices.IndexFunc(r.Results, func(s SuiteResult) bool { return s.Query == base.Query && s.Mode == mode })
			want := seconds(r.Results[at].MedianS)
			if !r.Results[at].Verified {
				want = "WRONG"
			}
			require.Equal(t, want, row[3+i])
		}
	}
	require.Len(t, rows["total"], 2+len(r.Modes))
	require.Len(t, rows["ratio"], 2+len(r.Modes))
	for _, mode := range r.Modes {
		require.NotEmpty(t, rows[mode], "counters of mode %s", mode)
	}
	require.Contains(t, out.String(), fmt.Sprintf("\n%d of %d results verified\n", len(r.Results)-r.Wrong, len(r.Results)))
}

// start prepares a benchmark of some queries whose steps a test takes itself.
func start(t *testing.T, o SuiteOptions) *suiteRun {
	t.Helper()
	o.Runs, o.Progress = 1, func(string, ...any) {}
	require.NoError(t, o.data(context.Background()))
	r, err := newSuiteRun(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(r.close)
	return r
}

// What is asked for twice would count twice.
func TestAskedTwice(t *testing.T) {
	o := options(t)
	o.Queries = []int{6, 1, 6}
	_, err := RunSuite(context.Background(), o)
	require.ErrorContains(t, err, "query 6 is given twice")
	o = options(t)
	o.Modes = []string{"disk", "disk"}
	_, err = RunSuite(context.Background(), o)
	require.ErrorContains(t, err, "mode disk is given twice")
}

// A query that failed is in neither of the sums that are compared.
func TestFailedQuery(t *testing.T) {
	o := options(t)
	o.Queries, o.Modes = []int{1, 6}, []string{"streaming"}
	r := start(t, o)
	require.NoError(t, r.measure(context.Background()))
	r.results["6streaming"].Seconds = nil
	r.results["6streaming"].Verified = false
	report := r.sumUp()
	total := report.Totals["streaming"]
	require.Equal(t, 1, total.Failed)
	require.InEpsilon(t, report.Results[0].MedianS/report.DuckDB[0].MedianS, total.RatioToDuckDB, 1e-9)
	var out bytes.Buffer
	report.WriteTable(&out)
	require.Contains(t, out.String(), "without 1 that failed")
}

// A wrong answer is seen, told and counted, whatever it is compared with.
func TestWrongAnswer(t *testing.T) {
	ctx := context.Background()
	o := options(t)
	o.Modes, o.Queries = []string{"streaming", "disk"}, []int{1, 6, 13}
	r := start(t, o)
	r.answers = slices.Clone(r.answers)

	// Query 1: DuckDB gets another text, with the same columns. Only one mode is compared with it.
	duck := func(text string) *tpc.Result {
		want, err := r.duck.Run(ctx, text)
		require.NoError(t, err)
		t.Cleanup(want.Release)
		return want
	}
	right := duck(r.texts[0])
	fewer := strings.Replace(r.texts[0], "1998-09-02", "1998-08-02", 1)
	require.NotEqual(t, fewer, r.texts[0])
	require.NoError(t, r.measureOne(ctx, 1, "streaming", duck(fewer), 0))
	require.NoError(t, r.measureOne(ctx, 1, "disk", right, 0))

	// Query 6: the official answer is another one.
	r.answers[5] = strings.Replace(r.answers[5], "1", "2", 1)
	six := duck(r.texts[5])
	require.NoError(t, r.measureOne(ctx, 6, "streaming", six, 0))
	require.NoError(t, r.measureOne(ctx, 6, "disk", six, 0))

	// Query 13: it fails, and a later run does not make up for it.
	thirteen, text := duck(r.texts[12]), r.texts[12]
	r.texts[12] = "SELECT error('it broke')"
	require.NoError(t, r.measureOne(ctx, 13, "streaming", thirteen, 0))
	r.texts[12] = text
	require.NoError(t, r.measureOne(ctx, 13, "streaming", thirteen, 1))
	require.NoError(t, r.measureOne(ctx, 13, "disk", thirteen, 0))

	for _, q := range o.Queries {
		r.report.DuckDB = append(r.report.DuckDB, SuiteBaseline{Query: q, Seconds: []float64{1}, MedianS: 1})
	}
	report := r.sumUp()
	require.Equal(t, 4, report.Wrong)
	verified := map[string]string{}
	for _, res := range report.Results {
		verified[fmt.Sprint(res.Query, " ", res.Mode)] = res.Difference
		require.Equal(t, res.Difference == "", res.Verified)
	}
	require.Contains(t, verified["1 streaming"], "against DuckDB: ")
	require.Empty(t, verified["1 disk"])
	require.Contains(t, verified["6 streaming"], "against the official answer: ")
	require.Contains(t, verified["6 disk"], "against the official answer: ")
	require.Contains(t, verified["13 streaming"], "failed: ")
	require.Contains(t, verified["13 streaming"], "it broke")
	require.Empty(t, verified["13 disk"])

	checkTable(t, report)
	var out bytes.Buffer
	report.WriteTable(&out)
	require.Contains(t, out.String(), "q1 in mode streaming is wrong: against DuckDB: ")
	require.NotContains(t, out.String(), "q1 in mode disk")
}

// The JSON form has the documented names, and comes back as it was.
func TestReportJSON(t *testing.T) {
	o := options(t)
	o.Modes, o.Queries, o.Runs = []string{"object-store"}, []int{3}, 3
	report, err := RunSuite(context.Background(), o)
	require.NoError(t, err)
	text, err := json.Marshal(report)
	require.NoError(t, err)

	var m struct {
		top     map[string]any
		Results []map[string]any
		DuckDB  []map[string]any
		Totals  map[string]map[string]any
	}
	require.NoError(t, json.Unmarshal(text, &m))
	require.NoError(t, json.Unmarshal(text, &m.top))
	has := func(object map[string]any, names string) {
		t.Helper()
		for _, name := range strings.Fields(names) {
			require.Contains(t, object, name)
		}
	}
	has(m.top, "benchmark sf nodes slots machine versions runs results duckdb totals")
	require.Len(t, m.Results, 1)
	has(m.Results[0], "query mode seconds median_s rows verified distributed stages tasks bytes_exchanged batches objects references "+
		"control_messages bytes_spilled peak_rss_mib")
	require.Len(t, m.Results[0]["seconds"], 3)
	require.Len(t, m.DuckDB, 1)
	has(m.DuckDB[0], "query median_s")
	require.Len(t, m.Totals, 1)
	has(m.Totals["object-store"], "seconds ratio_to_duckdb")
	has(m.top["versions"].(map[string]any), "manta duckdb go")
	has(m.top["machine"].(map[string]any), "cpu cores memory_bytes os arch")
	require.Positive(t, report.Machine.Cores)

	var back SuiteReport
	require.NoError(t, json.Unmarshal(text, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.JSONEq(t, string(text), string(again))
}

// What cannot be measured is an error, and leaves nothing running.
func TestRunSuiteRefuses(t *testing.T) {
	ctx := context.Background()
	refused := func(change func(*SuiteOptions)) error {
		o := options(t)
		change(&o)
		report, err := RunSuite(ctx, o)
		require.Nil(t, report)
		return err
	}
	require.ErrorIs(t, refused(func(o *SuiteOptions) { o.Data = t.TempDir() }), tpc.ErrNoData)
	require.ErrorContains(t, refused(func(o *SuiteOptions) { o.Data = "" }), "scale factor")
	require.ErrorContains(t, refused(func(o *SuiteOptions) { o.Queries = []int{23} }), "no query 23")
	require.ErrorContains(t, refused(func(o *SuiteOptions) { o.Queries = []int{1, -1} }), "no query -1")
	require.Error(t, refused(func(o *SuiteOptions) { o.Cluster.Memory = 1 }))
	require.Error(t, refused(func(o *SuiteOptions) { o.Cluster = planner.Config{Head: "127.0.0.1:1"} }))

	// The end of the context is the end of the benchmark, not a wrong answer.
	enough := errors.New("seen enough")
	stopped, stop := context.WithCancelCause(ctx)
	o := options(t)
	o.Progress = func(string, ...any) { stop(enough) }
	report, err := RunSuite(stopped, o)
	require.Nil(t, report)
	require.ErrorIs(t, err, enough)
}

func TestMedian(t *testing.T) {
	require.Zero(t, median(nil))
	require.Equal(t, 2.0, median([]float64{2}))
	require.Equal(t, 2.0, median([]float64{3, 1}))
	require.Equal(t, 3.0, median([]float64{9, 1, 3}))
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 20).Draw(t, "values")
		before := slices.Clone(values)
		m := median(values)
		require.Equal(t, before, values, "the measurements keep their order")
		below, above := 0, 0
		for _, v := range values {
			if v <= m {
				below++
			}
			if v >= m {
				above++
			}
		}
		require.GreaterOrEqual(t, 2*below, len(values))
		require.GreaterOrEqual(t, 2*above, len(values))
	})
}
