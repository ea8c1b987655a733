package main

import (
	"github.com/spf13/cobra"

	"manta/bench/sort"
	"manta/shuffle"
)

// benchSort sorts more records than fit into memory.
func benchSort() *cobra.Command {
	var o sort.Options
	var modes []string
	var output string
	bytes, memory := sizeFlag(1<<30), sizeFlag(1<<30)
	c := &cobra.Command{
		Use:   "sort",
		Short: "Sort files of 100-byte records through the exchange modes, within a memory limit, and validate the output",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, m := range modes {
				mode, err := shuffle.ParseMode(m)
				if err != nil {
					return &usageError{err}
				}
				o.Modes = append(o.Modes, mode)
			}
			if output != "table" && output != "json" {
				return usagef("unknown output format %q; use table or json", output)
			}
			o.Bytes, o.Memory = int64(bytes), int64(memory)
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			o.Progress = progressLine()
			report, err := sort.Run(c.Context(), o)
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
	flags.Var(&bytes, "bytes", "what to sort; twice to three times as much of disk is needed")
	flags.Var(&memory, "memory", "memory of the process")
	flags.StringSliceVar(&modes, "modes", nil, "exchange modes (default disk, object-store, streaming)")
	flags.IntVar(&o.Runs, "runs", 1, "measurements of each mode, interleaved")
	flags.IntVar(&o.Cores, "cores", 0, "tasks at work at once (default: the machine's cores)")
	flags.IntVar(&o.Ranges, "ranges", 0, "ranges, each sorted as a whole (default: by memory)")
	flags.StringVar(&o.Dir, "data-dir", "", "where input, spill and output are kept until the end (default: the folder for temporary files)")
	flags.StringVarP(&output, "output", "o", "table", "format: table or json")
	return c
}
