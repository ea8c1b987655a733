package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"manta/actors"
	"manta/bench/tpch"
	"manta/planner"
	"manta/planner/kernel"
)

// AllModes are the exchange modes that are compared.
var AllModes = []string{"concat", "disk", "object-store", "streaming", "auto"}

// TPCHOptions say what RunTPCH measures.
type TPCHOptions struct {
	SF      float64        // scale factor; the data is made when it is not there
	Data    string         // folder of the data; empty: the one of the scale factor in the user's cache folder
	Modes   []string       // default AllModes
	Queries []int          // from 1; default all
	Runs    int            // measurements of each query and mode; default 1
	Cluster planner.Config // where it runs; embedded when it has no head
	// Memory of the DuckDB that is the baseline; 0: its own default.
	DuckDBMemory int64
	Progress     func(format string, args ...any) // told what is going on; may be nil
}

// TPCHReport is what RunTPCH measured. Its JSON form is stable.
type TPCHReport struct {
	Benchmark string                `json:"benchmark"` // "tpch"
	SF        float64               `json:"sf"`        // 0 when unknown
	Nodes     int                   `json:"nodes"`
	Slots     int                   `json:"slots"`
	Machine   Machine               `json:"machine"`
	Versions  map[string]string     `json:"versions"`
	Runs      int                   `json:"runs"`
	Results   []TPCHResult          `json:"results"`
	DuckDB    []TPCHBaseline        `json:"duckdb"`
	Totals    map[string]TPCHTotals `json:"totals"` // by mode
	// DuckDBSeconds is the baseline's total, with as many threads as the cluster has slots.
	DuckDBSeconds float64  `json:"duckdb_seconds"`
	Modes         []string `json:"modes"`
	// Official says whether the answers were also compared with the official ones.
	Official bool `json:"official_answers"`
	Wrong    int  `json:"wrong"` // results that are not verified
}

// TPCHResult is one query in one mode. Counters are those of its last run.
type TPCHResult struct {
	Query           int       `json:"query"`
	Mode            string    `json:"mode"`
	Seconds         []float64 `json:"seconds"`
	MedianS         float64   `json:"median_s"`
	Rows            int64     `json:"rows"`
	Verified        bool      `json:"verified"`
	Difference      string    `json:"difference,omitempty"` // why it is not
	Distributed     bool      `json:"distributed"`
	Stages          int       `json:"stages"`
	Tasks           int       `json:"tasks"`
	BytesExchanged  int64     `json:"bytes_exchanged"`
	Batches         int64     `json:"batches"`
	Objects         int64     `json:"objects"`
	References      int64     `json:"references"`
	ControlMessages int64     `json:"control_messages"`
	BytesSpilled    int64     `json:"bytes_spilled"`
	PeakExchangeMiB float64   `json:"peak_exchange_mib"` // highest on any node since it started
	PeakRSSMiB      float64   `json:"peak_rss_mib"`
}

// TPCHBaseline is one query in DuckDB in one process.
type TPCHBaseline struct {
	Query   int       `json:"query"`
	Seconds []float64 `json:"seconds"`
	MedianS float64   `json:"median_s"`
}

// TPCHTotals sums a mode's medians.
type TPCHTotals struct {
	Seconds       float64 `json:"seconds"`
	RatioToDuckDB float64 `json:"ratio_to_duckdb"`
}

// tpchRun is a benchmark on its way.
type tpchRun struct {
	o       TPCHOptions
	client  *planner.Client
	duck    *tpch.DuckDB
	tables  map[string]string
	texts   []string
	answers []string // official ones, or nil
	report  *TPCHReport
	results map[string]*TPCHResult // by query and mode
}

// RunTPCH runs the queries in every mode, verifies every answer, and measures.
// Wrong answers are in the report; the error says why there is no report.
func RunTPCH(ctx context.Context, o TPCHOptions) (*TPCHReport, error) {
	if o.Runs == 0 {
		o.Runs = 1
	}
	if len(o.Modes) == 0 {
		o.Modes = AllModes
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if err := o.data(ctx); err != nil {
		return nil, err
	}
	r, err := newTPCHRun(ctx, o)
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
func (o *TPCHOptions) data(ctx context.Context) error {
	if o.Data != "" {
		if sf, ok := tpch.ScaleFactor(o.Data); ok {
			o.SF = sf
		}
		return nil
	}
	if o.SF == 0 {
		return errors.New("bench: give a scale factor or a folder with data")
	}
	dir, err := tpch.DefaultDir(o.SF)
	if err != nil {
		return err
	}
	o.Data = dir
	o.Progress("data of scale factor %v in %s", o.SF, dir)
	return tpch.Generate(ctx, dir, o.SF, 1)
}

func newTPCHRun(ctx context.Context, o TPCHOptions) (r *tpchRun, err error) {
	r = &tpchRun{o: o, results: map[string]*TPCHResult{}}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.tables, err = tpch.Tables(o.Data); err != nil {
		return r, err
	}
	if r.texts, err = tpch.Queries(); err != nil {
		return r, err
	}
	if len(r.o.Queries) == 0 {
		for i := range r.texts {
			r.o.Queries = append(r.o.Queries, i+1)
		}
	}
	for _, q := range r.o.Queries {
		if q < 1 || q > len(r.texts) {
			return r, fmt.Errorf("bench: TPC-H has no query %d", q)
		}
	}
	if r.answers, err = tpch.Answers(o.SF); err != nil && !errors.Is(err, tpch.ErrNoAnswers) {
		return r, err
	}
	if r.client, err = planner.Connect(ctx, o.Cluster); err != nil {
		return r, err
	}
	nodes, err := r.client.Nodes(ctx)
	if err != nil {
		return r, err
	}
	r.report = &TPCHReport{
		Benchmark: "tpch", SF: o.SF, Machine: ThisMachine(), Versions: Versions(), Runs: o.Runs, Modes: o.Modes, Official: r.answers != nil,
	}
	for _, n := range nodes {
		if n.State == actors.NodeAlive && n.CPUs > 0 {
			r.report.Nodes++
			r.report.Slots += n.CPUs
		}
	}
	r.duck, err = tpch.OpenDuckDB(ctx, o.Data, max(r.report.Slots, 1), kernel.Config{
		MemoryLimit: o.DuckDBMemory, Settings: map[string]string{"parquet_metadata_cache": "true"},
	})
	return r, err
}

func (r *tpchRun) close() {
	if r.duck != nil {
		_ = r.duck.Close()
	}
	if r.client != nil {
		_ = r.client.Close()
	}
}

// measure runs everything: the baseline and the modes take turns, so that
// whatever slows the machine for a while slows all of them.
func (r *tpchRun) measure(ctx context.Context) error {
	for _, q := range r.o.Queries {
		base := TPCHBaseline{Query: q}
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
func (r *tpchRun) measureOne(ctx context.Context, q int, mode string, want *tpch.Result, run int) error {
	r.o.Progress("query %d, %s, run %d of %d", q, mode, run+1, r.o.Runs)
	key := fmt.Sprint(q, mode)
	res := r.results[key]
	if res == nil {
		res = &TPCHResult{Query: q, Mode: mode, Verified: true}
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
	res.Distributed, res.Stages, res.Tasks = stats.Distributed, stats.Stages, stats.Tasks
	x := stats.Exchange
	res.BytesExchanged, res.Batches, res.Objects, res.References = x.Bytes, x.Batches, x.Objects, x.References
	res.ControlMessages, res.BytesSpilled = x.ControlMessages, x.BytesSpilled
	res.PeakExchangeMiB, res.PeakRSSMiB = mib(stats.PeakExchange), mib(stats.PeakRSS)
	if err := r.verify(q, want, got); err != nil && res.Verified {
		res.Verified, res.Difference = false, err.Error()
	}
	return nil
}

// run runs a query and keeps its whole result.
func (r *tpchRun) run(ctx context.Context, text, mode string) (*tpch.Result, planner.QueryStats, error) {
	result, err := r.client.Query(ctx, text, planner.Options{Tables: r.tables, Shuffle: mode})
	if err != nil {
		return nil, planner.QueryStats{}, err
	}
	defer result.Release()
	got := &tpch.Result{Schema: result.Schema(), Types: result.Types()}
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
func (r *tpchRun) verify(q int, want, got *tpch.Result) error {
	rule := tpch.Rules[q-1]
	if _, err := tpch.Compare(rule, want, got); err != nil {
		return fmt.Errorf("against DuckDB: %w", err)
	}
	if r.answers != nil {
		if _, err := tpch.CompareAnswer(rule, r.answers[q-1], got); err != nil {
			return fmt.Errorf("against the official answer: %w", err)
		}
	}
	return nil
}

// sumUp fills in what follows from the measurements.
func (r *tpchRun) sumUp() *TPCHReport {
	rep := r.report
	for _, b := range rep.DuckDB {
		rep.DuckDBSeconds += b.MedianS
	}
	rep.Totals = map[string]TPCHTotals{}
	for _, mode := range r.o.Modes {
		var t TPCHTotals
		for _, q := range r.o.Queries {
			res := r.results[fmt.Sprint(q, mode)]
			res.MedianS = median(res.Seconds)
			t.Seconds += res.MedianS
			if !res.Verified {
				rep.Wrong++
			}
			rep.Results = append(rep.Results, *res)
		}
		if rep.DuckDBSeconds > 0 {
			t.RatioToDuckDB = t.Seconds / rep.DuckDBSeconds
		}
		rep.Totals[mode] = t
	}
	return rep
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
