package sort

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"

	"manta/bench/report"
)

// WriteTable writes the report for a reader: a row a mode.
func (r *Report) WriteTable(w io.Writer) {
	if len(r.Results) == 0 {
		return
	}
	first := r.Results[0]
	fmt.Fprintf(w, "%d records of %d bytes with keys of %d, in %.0f MiB of memory, on %d cores\n",
		first.Records, recordBytes, keyBytes, first.MemoryMiB, first.Cores)
	fmt.Fprintf(w, "%s; %s, arrow-go %s\n", r.Machine, r.Versions["go"], r.Versions["arrow-go"])
	l := first.Limits
	fmt.Fprintf(w, "limits, GB/s: memcpy %.1f, TCP %.1f, disk written and read %.1f, sort in memory %.2f\n\n", l.Memcpy, l.TCP, l.Disk, l.Sort)
	t := report.NewTable(w, "mode", "bytes", "ranges", "largest", "seconds", "min-max", "MB/s", "MB/s a core", "MB/s a CPU second", "of limit",
		"resident MiB", "exchange MiB", "spilled", "credit wait s", "validated", "spin before, after")
	var failed []string
	for _, x := range r.Results {
		if x.Error != "" {
			t.AppendRow(table.Row{x.Mode, "failed"})
			failed = append(failed, fmt.Sprintf("%s: %s", x.Mode, x.Error))
			continue
		}
		t.AppendRow(table.Row{
			x.Mode, humanize.IBytes(uint64(x.Bytes)), x.Ranges, fmt.Sprintf("%.2f", x.LargestRange), fmt.Sprintf("%.1f", x.Seconds),
			fmt.Sprintf("%.1f-%.1f", x.SecondsMin, x.SecondsMax), fmt.Sprintf("%.0f", x.GBps*1000), fmt.Sprintf("%.0f", x.MBpsPerCPUWall),
			fmt.Sprintf("%.0f", x.GBpsPerCore*1000), fmt.Sprintf("%.0f %%", 100*x.OfLimit), fmt.Sprintf("%.0f", x.PeakRSSMiB),
			fmt.Sprintf("%.0f of %.0f", x.ExchangePeakMiB, x.ExchangeMiB), humanize.IBytes(uint64(x.BytesSpilled)),
			fmt.Sprintf("%.1f", x.CreditWait), x.Validated, fmt.Sprintf("%.2f, %.2f", x.SpinBefore, x.SpinAfter),
		})
	}
	t.Render()
	if len(failed) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(failed, "\n"))
	}
}
