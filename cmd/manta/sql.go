package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"manta/planner"
)

func sqlCommand() *cobra.Command {
	var cluster clusterFlags
	var query queryFlags
	var output string
	var timing bool
	c := &cobra.Command{
		Use:   "sql [flags] [QUERY]",
		Short: "Run a query over files; without one, a shell",
		Example: "  manta sql \"SELECT count(*) FROM 'data/*.parquet'\"\n" +
			"  manta sql -t lineitem='data/lineitem/*.parquet' -o csv -f query.sql",
		Args: oneQuery,
		RunE: func(c *cobra.Command, args []string) error {
			interactive := len(args) == 0 && query.file == "" && isTerminal(c.InOrStdin())
			text := ""
			if !interactive {
				var err error
				if text, err = query.text(args, c.InOrStdin()); err != nil {
					return err
				}
			}
			write, err := newRowWriter(output, c.OutOrStdout())
			if err != nil {
				return err
			}
			options, err := query.options()
			if err != nil {
				return err
			}
			client, err := connect(c.Context(), &cluster)
			if err != nil {
				return err
			}
			defer client.Close()
			if interactive {
				return (&shell{client: client, options: options, output: output, out: c.OutOrStdout()}).run()
			}
			start := time.Now()
			if err := runQuery(c.Context(), client, text, options, write); err != nil {
				return err
			}
			if timing {
				fmt.Fprintf(os.Stderr, "%.3f s\n", time.Since(start).Seconds())
			}
			return nil
		},
	}
	cluster.addEmbedded(c.Flags(), 1)
	query.add(c.Flags())
	c.Flags().StringVarP(&output, "output", "o", "table", "format: table, csv, json, jsonl, arrow or parquet")
	c.Flags().BoolVar(&timing, "timing", false, "print the seconds the query took")
	return c
}

func explainCommand() *cobra.Command {
	var cluster clusterFlags
	var query queryFlags
	var analyze bool
	c := &cobra.Command{
		Use:   "explain [flags] [QUERY]",
		Short: "Show how a query is distributed",
		Args:  oneQuery,
		RunE: func(c *cobra.Command, args []string) error {
			text, err := query.text(args, c.InOrStdin())
			if err != nil {
				return err
			}
			options, err := query.options()
			if err != nil {
				return err
			}
			client, err := connect(c.Context(), &cluster)
			if err != nil {
				return err
			}
			defer client.Close()
			explain := client.Explain
			if analyze {
				explain = client.ExplainAnalyze
			}
			plan, err := explain(c.Context(), text, options)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), plan)
			return err
		},
	}
	cluster.addEmbedded(c.Flags(), 1)
	query.add(c.Flags())
	c.Flags().BoolVar(&analyze, "analyze", false, "run the query, and show what each task did")
	return c
}

func oneQuery(_ *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usagef("%d queries given; quote the query as one argument", len(args))
	}
	return nil
}

// text is the query: the argument, the file's content, or what is piped in.
func (f *queryFlags) text(args []string, in io.Reader) (string, error) {
	text, from := "", "the query"
	switch {
	case f.file != "" && len(args) > 0:
		return "", usagef("give a query or a file with one, not both")
	case f.file != "":
		b, err := os.ReadFile(f.file)
		if err != nil {
			return "", err
		}
		text, from = string(b), "the query in "+f.file
	case len(args) > 0:
		text = args[0]
	default:
		if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			return "", usagef("give a query, a file with -f, or a query on standard input")
		}
		b, err := io.ReadAll(in)
		if err != nil {
			return "", err
		}
		text, from = string(b), "the query on standard input"
	}
	if strings.TrimSpace(text) == "" {
		return "", usagef("%s is empty", from)
	}
	return text, nil
}

func isTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func connect(ctx context.Context, f *clusterFlags) (*planner.Client, error) {
	config, err := f.config()
	if err != nil {
		return nil, err
	}
	return planner.Connect(ctx, config)
}

// runQuery runs a query and writes its rows as they come.
func runQuery(ctx context.Context, client *planner.Client, text string, o planner.Options, w rowWriter) error {
	result, err := client.Query(ctx, text, o)
	if err != nil {
		return err
	}
	defer result.Release()
	stop := showProgress(result)
	defer stop()
	if err := w.begin(result.Schema()); err != nil {
		return err
	}
	for result.Next() {
		stop()
		if err := w.rows(result.RecordBatch()); err != nil {
			return fmt.Errorf("writing the rows: %w", err)
		}
	}
	stop()
	if err := result.Err(); err != nil {
		return err
	}
	return w.end()
}
