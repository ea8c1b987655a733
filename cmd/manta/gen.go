package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"manta/bench/tpc"
)

func genCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "gen",
		Short: "Make benchmark data",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return usagef("say which data to make: tpch or tpcds") },
	}
	c.AddCommand(genSuite(tpc.H), genSuite(tpc.DS))
	return c
}

func genSuite(suite *tpc.Suite) *cobra.Command {
	var sf float64
	var out string
	var files int
	c := &cobra.Command{
		Use:   suite.Name,
		Short: "Make the " + suite.Title + " tables as Parquet files",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return usagef("say where to put the files with --out")
			}
			if !(sf > 0) {
				return usagef("--sf %v: give a positive scale factor", sf)
			}
			if files < 1 {
				return usagef("--files %d: give at least 1", files)
			}
			if err := suite.Generate(c.Context(), out, sf, files); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "%s scale factor %v in %s\n", suite.Title, sf, out)
			return err
		},
	}
	c.Flags().Float64Var(&sf, "sf", 1, "scale factor")
	c.Flags().StringVar(&out, "out", "", "folder for the files")
	c.Flags().IntVar(&files, "files", 1, "files of each large table")
	return c
}
