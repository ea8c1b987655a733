package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"manta/bench/tpch"
)

func genCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "gen",
		Short: "Make benchmark data",
		Args:  noArgs,
		RunE:  func(*cobra.Command, []string) error { return usagef("say which data to make: tpch") },
	}
	var sf float64
	var out string
	var files int
	tpchData := &cobra.Command{
		Use:   "tpch",
		Short: "Make the TPC-H tables as Parquet files",
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
			if err := tpch.Generate(c.Context(), out, sf, files); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "TPC-H scale factor %v in %s\n", sf, out)
			return err
		},
	}
	tpchData.Flags().Float64Var(&sf, "sf", 1, "scale factor")
	tpchData.Flags().StringVar(&out, "out", "", "folder for the files")
	tpchData.Flags().IntVar(&files, "files", 1, "files of each large table")
	c.AddCommand(tpchData)
	return c
}
