package main

import (
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"manta/bench"
)

func benchStore() *cobra.Command {
	var o bench.StoreOptions
	var sizes []string
	var output, spill, through string
	c := &cobra.Command{
		Use:   "store",
		Short: "Measure the object store beside copying memory and plain files",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o.Sizes = nil
			for _, text := range sizes {
				n, err := parseBytes("--sizes", text)
				if err != nil {
					return err
				}
				o.Sizes = append(o.Sizes, n)
			}
			var err error
			if o.Spill, err = parseBytes("--spill", spill); err != nil {
				return err
			}
			if through != "" {
				if o.Through, err = parseBytes("--through", through); err != nil {
					return err
				}
			}
			for _, n := range o.Callers {
				if n < 1 {
					return usagef("--callers %d: give at least 1", n)
				}
			}
			switch {
			case output != "table" && output != "json":
				return usagef("unknown output format %q; use table or json", output)
			case o.Rounds < 1:
				return usagef("--rounds %d: give at least 1", o.Rounds)
			case o.Round <= 0:
				return usagef("--round %v: give a positive time", o.Round)
			case o.Objects < 0:
				return usagef("--objects %d: give 0 or more", o.Objects)
			}
			if o.Dir != "" {
				o.Dir = absolute(o.Dir)
			}
			o.Progress = progressLine()
			report, err := bench.RunStore(c.Context(), o)
			o.Progress("")
			if err != nil {
				return err
			}
			if output == "json" {
				return writeJSON(c.OutOrStdout(), report)
			}
			report.WriteTable(c.OutOrStdout())
			return nil
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&sizes, "sizes", []string{"100", "10KiB", "1MiB", "100MiB", "1GiB"}, "sizes of values")
	flags.IntSliceVar(&o.Callers, "callers", []int{1, 2, 8}, "numbers of callers at once")
	flags.IntVar(&o.Rounds, "rounds", 5, "rounds of each measurement, of which the median is shown")
	flags.DurationVar(&o.Round, "round", 200*time.Millisecond, "length of a round")
	flags.StringVar(&spill, "spill", "1GiB", "bytes to write through a quarter of that in memory")
	flags.Int64Var(&o.Objects, "objects", 0, "also keep that many values of 100 B")
	flags.StringVar(&through, "through", "", "also write that many bytes through a tenth of that in memory, and read them back")
	flags.StringVar(&o.Dir, "dir", "", "folder for stores and files (default the system's for temporary files)")
	flags.StringVarP(&output, "output", "o", "table", "format: table or json")
	return c
}

// parseBytes reads a size such as 10KiB.
func parseBytes(flag, text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<46 {
		return 0, usagef("%s %s: give a size such as 10KiB", flag, text)
	}
	return int64(n), nil
}
