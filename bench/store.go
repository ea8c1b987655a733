package bench

import (
	"context"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"manta/bench/store"
)

// StoreOptions say what RunStore measures.
type StoreOptions = store.Options

// StoreReport is what RunStore measured. Its JSON form is stable.
type StoreReport struct {
	Benchmark string            `json:"benchmark"` // "store"
	Machine   Machine           `json:"machine"`
	Versions  map[string]string `json:"versions"`
	Rounds    int               `json:"rounds"` // of which figures are the median
	Results   []store.Result    `json:"results"`
	Many      *store.Many       `json:"many,omitempty"`
	Through   *store.Through    `json:"through,omitempty"`
}

// RunStore measures the object store beside copying memory and plain files.
func RunStore(ctx context.Context, o StoreOptions) (*StoreReport, error) {
	r, err := store.Run(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	results := r.Results
	if results == nil {
		results = []store.Result{}
	}
	return &StoreReport{
		Benchmark: "store", Machine: ThisMachine(), Versions: Versions(), Rounds: o.Rounds,
		Results: results, Many: r.Many, Through: r.Through,
	}, nil
}

// WriteTable prints the report for people: each rate with its limit behind it.
func (r *StoreReport) WriteTable(w io.Writer) {
	fmt.Fprintln(w, r.Machine)
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = 0
	t.SetStyle(style)
	t.AppendHeader(table.Row{"value", "callers", "put GB/s", "of memcpy", "fresh", "of memcpy", "get GB/s", "of read", "spill", "of write", "restore", "of read",
		"put/s", "fresh", "get/s", "p99 µs", "index B", "RSS MiB"})
	count := func(v float64) string {
		if v == 0 {
			return ""
		}
		return humanize.Comma(int64(v))
	}
	for _, x := range r.Results {
		t.AppendRow(table.Row{humanize.IBytes(uint64(x.ValueBytes)), x.Callers,
			rate(x.PutGBps), rate(x.MemcpyGBps), perhaps(x.PutFreshGBps), perhaps(x.MemcpyFreshGBps), rate(x.GetGBps), rate(x.ReadGBps),
			rate(x.SpillGBps), rate(x.DiskWriteGBps), rate(x.RestoreGBps), rate(x.DiskReadGBps),
			count(x.SmallPutPerS), count(x.SmallPutFreshPerS), count(x.SmallGetPerS), fmt.Sprintf("%.1f", x.PutP99us), count(x.IndexBytes), count(x.RSSMiB)})
	}
	if len(r.Results) > 0 {
		t.Render()
	}
	if m := r.Many; m != nil {
		fmt.Fprintf(w, "%s values of %d B in %s: %.0f B of resident memory each (%.0f B without pages of files, %.0f B of index), "+
			"%s puts/s, %s hot and %s cold gets/s; %.1f s to release\n",
			humanize.Comma(m.Objects), m.ValueBytes, humanize.IBytes(uint64(m.MemoryLimit)), m.RSSBytes, m.RSSAnonBytes, m.IndexBytes,
			humanize.Comma(int64(m.PutPerS)), humanize.Comma(int64(m.HotGetPerS)), humanize.Comma(int64(m.ColdGetPerS)), m.ReleaseSeconds)
	}
	if x := r.Through; x != nil {
		fmt.Fprintf(w, "%s through %s: written at %s GB/s (disk %s), read back at %s GB/s (disk %s), peak %.0f MiB resident\n",
			humanize.IBytes(uint64(x.Bytes)), humanize.IBytes(uint64(x.MemoryLimit)), rate(x.WriteGBps), rate(x.DiskWrite),
			rate(x.ReadGBps), rate(x.DiskRead), x.PeakRSSMiB)
	}
}

func perhaps(gbps float64) string {
	if gbps == 0 {
		return ""
	}
	return rate(gbps)
}

func rate(gbps float64) string { return fmt.Sprintf("%.3g", gbps) }
