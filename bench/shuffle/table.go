package shuffle

import (
	"fmt"
	"io"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/jedib0t/go-pretty/v6/table"

	"manta/bench/report"
)

// WriteTable writes the report for a reader: a row a mode.
func (r *Report) WriteTable(w io.Writer) {
	if len(r.Results) == 0 {
		return
	}
	first := r.Results[0]
	fmt.Fprintf(w, "%s, %d producers, %d partitions, batches of %d rows x %d columns\n",
		english.Plural(first.Processes, "process", "processes"), first.Producers, first.Partitions, first.RowsPerBatch, first.Columns)
	fmt.Fprintf(w, "%s; %s, arrow-go %s\n", r.Machine, r.Versions["go"], r.Versions["arrow-go"])
	l := first.Limits
	fmt.Fprintf(w, "limits, GB/s: memcpy %.1f, kernel %.1f (%.1f per core), TCP %.1f (%.1f per core), disk write %.1f, read %.1f, both %.1f\n\n",
		l.Memcpy, l.Partition, l.PartitionPerCore, l.TCP, l.TCPPerCore, l.DiskWrite, l.DiskRead, l.Disk)
	t := report.NewTable(w, "mode", "bytes", "seconds", "min-max", "GB/s", "per core", "of limit", "of limit per core", "exchange MiB", "resident MiB",
		"largest partition", "references", "control", "credit wait s", "spilled", "spin before, after")
	var failed []string
	for _, x := range r.Results {
		if x.Error != "" {
			t.AppendRow(table.Row{x.Mode, "failed"})
			failed = append(failed, fmt.Sprintf("%s: %s", x.Mode, x.Error))
			continue
		}
		t.AppendRow(table.Row{
			x.Mode, humanize.IBytes(uint64(x.Bytes)), fmt.Sprintf("%.3f", x.Seconds), fmt.Sprintf("%.3f-%.3f", x.SecondsMin, x.SecondsMax),
			fmt.Sprintf("%.2f", x.GBps), fmt.Sprintf("%.2f", x.GBpsPerCore), percent(x.OfLimit), percent(x.OfLimitPerCore),
			fmt.Sprintf("%.0f of %.0f", x.ExchangePeakMiB, x.ExchangeMiB), fmt.Sprintf("%.0f", x.PeakRSSMiB), fmt.Sprintf("%.2f x", x.PartitionSkew), x.References, x.ControlMessages,
			fmt.Sprintf("%.2f", x.CreditWait), humanize.IBytes(uint64(x.BytesSpilled)), fmt.Sprintf("%.2f, %.2f", x.SpinBefore, x.SpinAfter),
		})
	}
	t.Render()
	if first.Slow > 0 {
		fmt.Fprintf(w, "\nThe reader of partition 0 was %d times slower than the others. These had everything after:\n", first.Slow)
		for _, x := range r.Results {
			if x.Error == "" {
				fmt.Fprintf(w, "  %s: %.3f s, at %.0f %% of their speed without a slow one\n", x.Mode, x.OthersSeconds, 100*x.OthersSpeed)
			}
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(failed, "\n"))
	}
}

// percent is a share for a reader; nothing where there is none.
func percent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}
