package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"manta/bench"
	"manta/bench/tpc"
	"manta/planner"
)

func benchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure, verify and compare",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to measure: tpch, tpcds, shuffle, sort, store or micro")
		},
	}
	c.AddCommand(benchSuite(tpc.H), benchSuite(tpc.DS), benchShuffle(), benchSort(), benchStore(), benchMicro())
	return c
}

// benchSuite is the benchmark of a suite of queries.
func benchSuite(suite *tpc.Suite) *cobra.Command {
	var cluster clusterFlags
	o := bench.SuiteOptions{Suite: suite}
	var output, versus string
	c := &cobra.Command{
		Use:   suite.Name,
		Short: fmt.Sprintf("Run the %d %s queries in every exchange mode, verify and compare them", suite.NumQueries, suite.Title),
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, m := range o.Modes {
				if err := checkMode(m); err != nil {
					return err
				}
			}
			if err := planner.CheckDistribute(o.Distribute); err != nil {
				return &usageError{err}
			}
			switch {
			case output != "table" && output != "json":
				return usagef("unknown output format %q; use table or json", output)
			case versus != "duckdb":
				return usagef("--vs %q: the only peer is duckdb", versus)
			case o.Runs < 1:
				return usagef("--runs %d: give at least 1", o.Runs)
			case o.Data == "" && !(o.SF > 0):
				return usagef("--sf %v: give a positive scale factor", o.SF)
			case o.Data != "" && c.Flags().Changed("sf"):
				return usagef("give --sf or --data, not both")
			}
			if o.Data != "" {
				o.SF, o.Data = 0, absolute(o.Data)
			}
			config, err := cluster.config()
			if err != nil {
				return err
			}
			o.Cluster = config
			o.Progress = progressLine()
			report, err := bench.RunSuite(c.Context(), o)
			o.Progress("")
			if err != nil {
				return err
			}
			if output == "json" {
				err = writeJSON(c.OutOrStdout(), report)
			} else {
				report.WriteTable(c.OutOrStdout())
			}
			if err == nil && report.Wrong > 0 {
				err = fmt.Errorf("%d of %d results are wrong", report.Wrong, len(report.Results))
			}
			return err
		},
	}
	flags := c.Flags()
	cluster.addEmbedded(flags, 2)
	flags.Float64Var(&o.SF, "sf", 0.1, "scale factor; the data is made when it is not there, and kept in the user's cache folder")
	flags.StringVar(&o.Data, "data", "", "folder with the data, in place of --sf")
	flags.StringSliceVar(&o.Modes, "modes", bench.AllModes, "exchange modes to compare")
	flags.IntSliceVar(&o.Queries, "queries", nil, "queries to run (default all)")
	flags.IntVar(&o.Runs, "runs", 1, "measurements of each query in each mode")
	flags.StringVar(&o.Distribute, "distribute", "always", "always: exchanges are compared; auto: a query may run in one task on one node")
	flags.StringVar(&versus, "vs", "duckdb", "what to compare with")
	flags.StringVarP(&output, "output", "o", "table", "format: table or json")
	return c
}

// progressLine shows what is going on in one line of a terminal, and nothing elsewhere.
func progressLine() func(format string, args ...any) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func(string, ...any) {}
	}
	return func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		if r := []rune(line); len(r) > 79 {
			line = string(slices.Clip(r[:79]))
		}
		fmt.Fprint(os.Stderr, "\r\x1b[K"+strings.TrimSpace(line))
	}
}
