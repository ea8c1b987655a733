package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"manta/actors"
	"manta/bench/tpc"
	"manta/planner"
	"manta/planner/kernel"
)

// AllModes are the exchange modes that are compared.
var AllModes = []string{"concat", "disk", "object-store", "streaming", "auto"}

// SuiteOptions say what RunSuite measures.
type SuiteOptions struct {
	Suite   *tpc.Suite // which benchmark
	SF      float64    // scale factor; the data is made when it is not there
	Data    string     // folder of the data; empty: the one of the scale factor in the user's cache folder
	Modes   []string   // default AllModes
	Queries []int      // from 1; default all
	Runs    int        // measurements of each query and mode; default 1
	// Distribute is a query's, by default always: it is exchanges that are compared.
	Distribute string
	Cluster    planner.Config // where it runs; embedded when it has no head
	// Memory of the DuckDB that is the baseline; 0: its own default.
	DuckDBMemory int64
	Progress     func(format string, args ...any) // told what is going on; may be nil
}

// SuiteReport is what RunSuite measured. Its JSON form is stable.
type SuiteReport struct {
	Benchmark string                 `json:"benchmark"` // tpch or tpcds
	SF        float64                `json:"sf"`        // 0 when unknown
	Nodes     int                    `json:"nodes"`
	Slots     int                    `json:"slots"`
	Machine   Machine                `json:"machine"`
	Versions  map[string]string      `json:"versions"`
	Runs      int                    `json:"runs"`
	Results   []SuiteResult          `json:"results"`
	DuckDB    []SuiteBaseline        `json:"duckdb"`
	Totals    map[string]SuiteTotals `json:"totals"` // by mode
	// DuckDBSeconds is the baseline's total, with as many threads as the cluster has slots.
	DuckDBSeconds float64  `json:"duckdb_seconds"`
	Modes         []string `json:"modes"`
	// Official says whether the answers were also compared with the official ones.
	Official bool `json:"official_answers"`
	Wrong    int  `json:"wrong"` // results that are not verified

	title string
}

// SuiteResult is one query in one mode. Counters are those of its last run.
type SuiteResult struct {
	Query       int       `json:"query"`
	Mode        string    `json:"mode"`
	Seconds     []float64 `json:"seconds"`
	MedianS     float64   `json:"median_s"`
	Rows        int64     `json:"rows"`
	Verified    bool      `json:"verified"`
	Difference  string    `json:"difference,omitempty"` // why it is not
	Distributed bool      `json:"distributed"`
	Fallback    string    `json:"fallback,omitempty"` // why it is not distributed
	// ParallelScan is the share of the bytes of all scanned files that are read by several tasks, each its part.
	ParallelScan    float64 `json:"parallel_scan_share"`
	Stages          int     `json:"stages"`
	Tasks           int     `json:"tasks"`
	BytesExchanged  int64   `json:"bytes_exchanged"`
	Batches         int64   `json:"batches"`
	Objects         int64   `json:"objects"`
	References      int64   `json:"references"`
	ControlMessages int64   `json:"control_messages"`
	BytesSpilled    int64   `json:"bytes_spilled"`
	Restarts        int     `json:"restarts"` // after a lost node
	Watchdog        int64   `json:"watchdog"` // times that the exchanges stood still, in any run
	// Regret is what auto's median is to the best one of the other modes; 0 where there is none.
	Regret          float64 `json:"regret,omitempty"`
	PeakExchangeMiB float64 `json:"peak_exchange_mib"` // highest on any node since it last had no query
	PeakRSSMiB      float64 `json:"peak_rss_mib"`
}

// SuiteBaseline is one query in DuckDB in one process.
type SuiteBaseline struct {
	Query   int       `json:"query"`
	Seconds []float64 `json:"seconds"`
	MedianS float64   `json:"median_s"`
}

// SuiteTotals sums a mode's medians. A query that failed is in neither sum.
type SuiteTotals struct {
	Seconds       float64 `json:"seconds"`
	RatioToDuckDB float64 `json:"ratio_to_duckdb"`
	// Regret is what auto's total is to that of the best other mode of each query.
	Regret float64 `json:"regret,omitempty"`
	Failed int     `json:"failed,omitempty"` // queries
}

// suiteRun is a benchmark on its way.
type suiteRun struct {
	o       SuiteOptions
	client  *planner.Client
	duck    *tpc.DuckDB
	tables  map[string]string
	texts   []string
	answers []string // official ones, or nil
	report  *SuiteReport
	results map[string]*SuiteResult // by query and mode
	rules   map[int]tpc.Rule
}

// RunSuite runs the queries in every mode, verifies every answer, and measures.
// Wrong answers are in the report; the error says why there is no report.
func RunSuite(ctx context.Context, o SuiteOptions) (*SuiteReport, error) {
	if o.Runs == 0 {
		o.Runs = 1
	}
	if len(o.Modes) == 0 {
		o.Modes = AllModes
	}
	if o.Distribute == "" {
		o.Distribute = "always"
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if err := o.data(ctx); err != nil {
		return nil, err
	}
	r, err := newSuiteRun(ctx, o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.measure(ctx); err != nil {
		return nil, err
	}
	return r.sumUp(), nil
}

// data makes the data if it is not there.
func (o *SuiteOptions) data(ctx context.Context) error {
	if o.Data != "" {
		if sf, ok := o.Suite.ScaleFactor(o.Data); ok {
			o.SF = sf
		}
		return nil
	}
	if o.SF == 0 {
		return errors.New("bench: give a scale factor or a folder with data")
	}
	dir, err := o.Suite.DefaultDir(o.SF)
	if err != nil {
		return err
	}
	o.Data = dir
	o.Progress("data of scale factor %v in %s", o.SF, dir)
	return o.Suite.Generate(ctx, dir, o.SF, 1)
}

func newSuiteRun(ctx context.Context, o SuiteOptions) (r *suiteRun, err error) {
	r = &suiteRun{o: o, results: map[string]*SuiteResult{}, rules: map[int]tpc.Rule{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.tables, err = o.Suite.TablesIn(o.Data); err != nil {
		return r, err
	}
	if r.texts, err = o.Suite.Queries(); err != nil {
		return r, err
	}
	if len(r.o.Queries) == 0 {
		for i := range r.texts {
			r.o.Queries = append(r.o.Queries, i+1)
		}
	}
	for i, q := range r.o.Queries {
		if q < 1 || q > len(r.texts) {
			return r, fmt.Errorf("bench: %s has no query %d", o.Suite.Title, q)
		}
		if slices.Contains(r.o.Queries[:i], q) {
			return r, fmt.Errorf("bench: query %d is given twice", q)
		}
	}
	for i, m := range r.o.Modes {
		if slices.Contains(r.o.Modes[:i], m) {
			return r, fmt.Errorf("bench: mode %s is given twice", m)
		}
	}
	if r.answers, err = o.Suite.Answers(o.SF); err != nil && !errors.Is(err, tpc.ErrNoAnswers) {
		return r, err
	}
	if r.client, err = planner.Connect(ctx, o.Cluster); err != nil {
		return r, err
	}
	nodes, err := r.client.Nodes(ctx)
	if err != nil {
		return r, err
	}
	r.report = &SuiteReport{
		Benchmark: o.Suite.Name, title: o.Suite.Title, SF: o.SF, Machine: ThisMachine(), Versions: Versions(), Runs: o.Runs, Modes: o.Modes, Official: r.answers != nil,
	}
	for _, n := range nodes {
		if n.State == actors.NodeAlive && n.CPUs > 0 {
			r.report.Nodes++
			r.report.Slots += n.CPUs
		}
	}
	r.duck, err = o.Suite.OpenDuckDB(ctx, o.Data, max(r.report.Slots, 1), kernel.Config{
		MemoryLimit: o.DuckDBMemory, Settings: map[string]string{"parquet_metadata_cache": "true"},
	})
	return r, err
}

func (r *suiteRun) close() {
	if r.duck != nil {
		_ = r.duck.Close()
	}
	if r.client != nil {
		_ = r.client.Close()
	}
}

// measure runs everything: the baseline and the modes take turns, so that
// whatever slows the machine for a while slows all of them.
func (r *suiteRun) measure(ctx context.Context) error {
	for _, q := range r.o.Queries {
		base := SuiteBaseline{Query: q}
		text := r.texts[q-1]
		// A first run whose time does not count warms the caches of all of them alike, and is the oracle.
		want, err := r.duck.Run(ctx, text)
		if err != nil {
			return fmt.Errorf("bench: query %d in DuckDB: %w", q, err)
		}
		for run := range r.o.Runs {
			start := time.Now()
			again, err := r.duck.Run(ctx, text)
			if err != nil {
				want.Release()
				return fmt.Errorf("bench: query %d in DuckDB: %w", q, err)
			}
			base.Seconds = append(base.Seconds, time.Since(start).Seconds())
			again.Release()
			for _, mode := range r.o.Modes {
				if err := r.measureOne(ctx, q, mode, want, run); err != nil {
					want.Release()
					return err
				}
			}
		}
		want.Release()
		base.MedianS = median(base.Seconds)
		r.report.DuckDB = append(r.report.DuckDB, base)
	}
	return nil
}

// measureOne runs a query once in a mode. A failure of the query is a wrong
// answer; the error is the end of the benchmark.
func (r *suiteRun) measureOne(ctx context.Context, q int, mode string, want *tpc.Result, run int) error {
	r.o.Progress("query %d, %s, run %d of %d", q, mode, run+1, r.o.Runs)
	key := fmt.Sprint(q, mode)
	res := r.results[key]
	if res == nil {
		res = &SuiteResult{Query: q, Mode: mode, Verified: true}
		r.results[key] = res
	}
	resetPeakRSS()
	start := time.Now()
	got, stats, err := r.run(ctx, r.texts[q-1], mode)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		res.Verified, res.Difference = false, "failed: "+strings.ReplaceAll(err.Error(), "\n", " ")
		return nil
	}
	defer got.Release()
	res.Seconds = append(res.Seconds, time.Since(start).Seconds())
	res.Rows = got.Rows()
	res.Distributed, res.Fallback, res.Stages, res.Tasks = stats.Distributed, stats.Fallback, stats.Stages, stats.Tasks
	res.ParallelScan = stats.ParallelScan
	x := stats.Exchange
	res.BytesExchanged, res.Batches, res.Objects, res.References = x.Bytes, x.Batches, x.Objects, x.References
	res.ControlMessages, res.BytesSpilled = x.ControlMessages, x.BytesSpilled
	res.Restarts, res.Watchdog = stats.Restarts, res.Watchdog+stats.Stalls
	res.PeakExchangeMiB, res.PeakRSSMiB = mib(stats.PeakExchange), mib(stats.PeakRSS)
	if err := r.verify(ctx, q, want, got); err != nil && res.Verified {
		res.Verified, res.Difference = false, err.Error()
	}
	return nil
}

// run runs a query and keeps its whole result.
func (r *suiteRun) run(ctx context.Context, text, mode string) (*tpc.Result, planner.QueryStats, error) {
	result, err := r.client.Query(ctx, text, planner.Options{Tables: r.tables, Shuffle: mode, Distribute: r.o.Distribute})
	if err != nil {
		return nil, planner.QueryStats{}, err
	}
	defer result.Release()
	got := &tpc.Result{Schema: result.Schema(), Types: result.Types()}
	for result.Next() {
		b := result.RecordBatch()
		b.Retain()
		got.Batches = append(got.Batches, b)
	}
	if err := result.Err(); err != nil {
		got.Release()
		return nil, planner.QueryStats{}, err
	}
	return got, result.Stats(), nil
}

// verify compares an answer with DuckDB's and, where there is one, the official one.
func (r *suiteRun) verify(ctx context.Context, q int, want, got *tpc.Result) error {
	rule, ok := r.rules[q]
	if !ok {
		var err error
		if rule, err = r.duck.Rule(ctx, q, r.texts[q-1]); err != nil {
			return err
		}
		r.rules[q] = rule
	}
	if _, err := tpc.Compare(rule, want, got); err != nil {
		return fmt.Errorf("against DuckDB: %w", err)
	}
	if r.answers != nil {
		if _, err := tpc.CompareAnswer(rule, r.answers[q-1], got); err != nil {
			return fmt.Errorf("against the official answer: %w", err)
		}
	}
	return nil
}

// sumUp fills in what follows from the measurements.
func (r *suiteRun) sumUp() *SuiteReport {
	rep := r.report
	for _, b := range rep.DuckDB {
		rep.DuckDBSeconds += b.MedianS
	}
	rep.Totals = map[string]SuiteTotals{}
	best := r.regret()
	for _, mode := range r.o.Modes {
		var t SuiteTotals
		duckdb := 0.0
		for i, q := range r.o.Queries {
			res := r.results[fmt.Sprint(q, mode)]
			res.MedianS = median(res.Seconds)
			if len(res.Seconds) > 0 {
				t.Seconds += res.MedianS
				duckdb += rep.DuckDB[i].MedianS
			} else {
				t.Failed++
			}
			if !res.Verified {
				rep.Wrong++
			}
			rep.Results = append(rep.Results, *res)
		}
		if duckdb > 0 {
			t.RatioToDuckDB = t.Seconds / duckdb
		}
		if mode == autoMode && best > 0 {
			t.Regret = t.Seconds / best
		}
		rep.Totals[mode] = t
	}
	return rep
}

const autoMode = "auto"

// regret fills in the regret of auto for each query, and returns the total of the best other modes: 0 where auto or the
// others were not measured.
func (r *suiteRun) regret() (total float64) {
	for _, q := range r.o.Queries {
		auto, best := r.results[fmt.Sprint(q, autoMode)], 0.0
		for _, mode := range r.o.Modes {
			if m := median(r.results[fmt.Sprint(q, mode)].Seconds); mode != autoMode && m > 0 && (best == 0 || m < best) {
				best = m
			}
		}
		if auto != nil && best > 0 {
			auto.Regret = median(auto.Seconds) / best
			total += best
		}
	}
	return total
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
