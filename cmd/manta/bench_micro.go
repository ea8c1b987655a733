package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"manta/bench"
)

func benchMicro() *cobra.Command {
	var o bench.MicroOptions
	var output reportFlag
	var one bool
	c := &cobra.Command{
		Use:   "micro",
		Short: "Measure tasks, actors, references and streams like ray microbenchmark, in process and across processes",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := output.check(); err != nil {
				return err
			}
			if o.Runs < 1 {
				return usagef("--runs %d: give at least 1", o.Runs)
			}
			if o.Workers < 0 {
				return usagef("--workers %d: give at least 1", o.Workers)
			}
			if !one {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				o.Command = []string{self, "worker"}
			}
			o.Progress = progressLine()
			report, err := bench.RunMicro(c.Context(), o)
			o.Progress("")
			if report != nil {
				err = errors.Join(output.write(c, report), err)
			}
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Rows, "rows", "", "only rows whose name contains this")
	flags.DurationVar(&o.PerRow, "time", 0, "how long a run of a row takes (default 1s)")
	flags.IntVar(&o.Runs, "runs", 3, "runs of each row; the median counts")
	flags.IntVar(&o.Workers, "workers", 0, "worker processes (default one for each CPU)")
	flags.BoolVar(&o.Envelope, "envelope", true, "measure the scalability envelope too")
	flags.BoolVar(&one, "in-process", false, "leave out what is across processes")
	flags.StringVar(&o.Ray, "ray", "", "a Python that has ray, to run its own benchmark beside")
	output.add(flags)
	return c
}
