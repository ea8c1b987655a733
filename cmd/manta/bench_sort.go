package main

import (
	"github.com/spf13/cobra"

	"manta/bench/sort"
)

// benchSort sorts more records than fit into memory.
func benchSort() *cobra.Command {
	var o sort.Options
	var modes []string
	var output reportFlag
	bytes, memory := sizeFlag(1<<30), sizeFlag(1<<30)
	c := &cobra.Command{
		Use:   "sort",
		Short: "Sort files of 100-byte records through the exchange modes, within a memory limit, and validate the output",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Modes, err = parseModes(modes); err != nil {
				return err
			}
			if err := output.check(); err != nil {
				return err
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
			return output.write(c, report)
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
	output.add(flags)
	return c
}
