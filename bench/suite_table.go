package bench

import (
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"manta/bench/report"
)

// WriteTable writes the report for a reader: a row a query, a column a mode.
func (r *SuiteReport) WriteTable(w io.Writer) {
	fmt.Fprintf(w, "%s scale factor %v, %d nodes, %d slots, median of %d\n", r.title, r.SF, r.Nodes, r.Slots, r.Runs)
	fmt.Fprintf(w, "%s; DuckDB %s with %d threads, %s\n", r.Machine, r.Versions["duckdb"], r.Slots, r.Versions["go"])
	compared := "DuckDB in one process"
	if r.Official {
		compared += " and the official answers"
	}
	fmt.Fprintf(w, "every answer compared with %s; seconds:\n\n", compared)

	t := plainTable(w)
	header := table.Row{"query", "rows", "duckdb"}
	for _, m := range r.Modes {
		header = append(header, m)
	}
	t.AppendHeader(append(header, "notes"))
	byQuery := map[int]map[string]SuiteResult{}
	for _, res := range r.Results {
		if byQuery[res.Query] == nil {
			byQuery[res.Query] = map[string]SuiteResult{}
		}
		byQuery[res.Query][res.Mode] = res
	}
	for _, base := range r.DuckDB {
		modes := byQuery[base.Query]
		row := table.Row{fmt.Sprintf("q%d", base.Query), modes[r.Modes[0]].Rows, seconds(base.MedianS)}
		note := ""
		for _, m := range r.Modes {
			res := modes[m]
			cell := seconds(res.MedianS)
			if !res.Verified {
				cell = "WRONG"
			} else if !res.Distributed {
				note = "not distributed"
			}
			row = append(row, cell)
		}
		t.AppendRow(append(row, note))
	}
	t.AppendSeparator()
	total, ratio := table.Row{"total", "", seconds(r.DuckDBSeconds)}, table.Row{"ratio", "", "1.00"}
	for _, m := range r.Modes {
		cell := seconds(r.Totals[m].Seconds)
		if n := r.Totals[m].Failed; n > 0 {
			cell += fmt.Sprintf(" without %d that failed", n)
		}
		total = append(total, cell)
		ratio = append(ratio, fmt.Sprintf("%.2f", r.Totals[m].RatioToDuckDB))
	}
	t.AppendRows([]table.Row{append(total, ""), append(ratio, "")})
	t.Render()
	if regret := r.Totals[autoMode].Regret; regret > 0 {
		fmt.Fprintf(w, "auto took %.2f times what the best other mode of each query took\n", regret)
	}

	fmt.Fprintln(w)
	r.writeCounters(w)
	for _, res := range r.Results {
		if !res.Verified {
			fmt.Fprintf(w, "\nq%d in mode %s is wrong: %s", res.Query, res.Mode, res.Difference)
		}
	}
	fmt.Fprintf(w, "\n%d of %d results verified\n", len(r.Results)-r.Wrong, len(r.Results))
}

// writeCounters writes what each mode moved for all queries together.
func (r *SuiteReport) writeCounters(w io.Writer) {
	t := plainTable(w)
	t.AppendHeader(table.Row{"all queries", "bytes exchanged", "batches", "objects", "references", "control messages", "spilled", "watchdog", "peak exchange", "peak memory"})
	for _, m := range r.Modes {
		var s SuiteResult
		for _, res := range r.Results {
			if res.Mode != m {
				continue
			}
			s.BytesExchanged += res.BytesExchanged
			s.Batches += res.Batches
			s.Objects += res.Objects
			s.References += res.References
			s.ControlMessages += res.ControlMessages
			s.BytesSpilled += res.BytesSpilled
			s.Watchdog += res.Watchdog
			s.PeakExchangeMiB = max(s.PeakExchangeMiB, res.PeakExchangeMiB)
			s.PeakRSSMiB = max(s.PeakRSSMiB, res.PeakRSSMiB)
		}
		t.AppendRow(table.Row{m, humanize.IBytes(uint64(s.BytesExchanged)), s.Batches, s.Objects, s.References, s.ControlMessages,
			humanize.IBytes(uint64(s.BytesSpilled)), s.Watchdog, fmt.Sprintf("%.0f MiB", s.PeakExchangeMiB), fmt.Sprintf("%.0f MiB", s.PeakRSSMiB)})
	}
	t.Render()
}

func plainTable(w io.Writer) table.Writer {
	t := report.NewTable(w)
	t.SetColumnConfigs(func() (c []table.ColumnConfig) {
		for i := 2; i <= 10; i++ {
			c = append(c, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
		return c
	}())
	return t
}

func seconds(s float64) string { return fmt.Sprintf("%.3f", s) }
