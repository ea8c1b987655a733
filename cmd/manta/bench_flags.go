package main

import (
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"manta/shuffle"
)

// reportFlag is how the report of a benchmark is written.
type reportFlag struct{ output string }

func (f *reportFlag) add(flags *pflag.FlagSet) {
	flags.StringVarP(&f.output, "output", "o", "table", "format: table or json")
}

func (f *reportFlag) check() error {
	if f.output != "table" && f.output != "json" {
		return usagef("unknown output format %q; use table or json", f.output)
	}
	return nil
}

func (f *reportFlag) write(c *cobra.Command, report interface{ WriteTable(io.Writer) }) error {
	if f.output == "json" {
		return writeJSON(c.OutOrStdout(), report)
	}
	report.WriteTable(c.OutOrStdout())
	return nil
}

// parseModes reads the names of exchange modes.
func parseModes(names []string) (modes []shuffle.Mode, err error) {
	for _, name := range names {
		mode, err := shuffle.ParseMode(name)
		if err != nil {
			return nil, &usageError{err}
		}
		modes = append(modes, mode)
	}
	return modes, nil
}
