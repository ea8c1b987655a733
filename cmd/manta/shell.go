package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/reeflective/readline"

	"manta/planner"
)

// shell reads queries from a terminal and runs each when its semicolon comes.
type shell struct {
	client  *planner.Client
	options planner.Options
	output  string
	out     io.Writer
}

const shellHelp = `End a query with a semicolon. Ctrl-C ends a running query, Ctrl-D leaves.
  .table NAME GLOB   make files a table
  .tables            show the tables
  .shuffle MODE      exchange mode: auto, streaming, object-store, disk or concat
  .output FORMAT     table, csv, json or jsonl
  .explain QUERY     show how a query is distributed
  .nodes             show the nodes
  .help  .quit
`

// run reads lines until the end of the input.
func (s *shell) run() error {
	rl := readline.NewShell()
	rl.Prompt.Primary(func() string { return "manta> " })
	rl.Prompt.Secondary(func() string { return "    -> " })
	rl.AcceptMultiline = func(line []rune) bool { return complete(string(line)) }
	if dir, err := os.UserCacheDir(); err == nil && os.MkdirAll(filepath.Join(dir, "manta"), 0o700) == nil {
		rl.History.AddFromFile("manta", filepath.Join(dir, "manta", "history"))
	}
	fmt.Fprintln(s.out, planner.Version()+". Type .help for help.")
	for {
		line, err := rl.Readline()
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if quit := s.do(line); quit {
			return nil
		}
	}
}

// complete reports whether a line can be run as it is.
func complete(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, ".") || strings.HasSuffix(line, ";")
}

// do runs one line, and reports whether it was the last.
func (s *shell) do(line string) (quit bool) {
	line = strings.TrimSuffix(strings.TrimSpace(line), ";")
	if line == "" {
		return false
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if strings.HasPrefix(line, ".") {
		quit, err = s.command(ctx, line)
	} else {
		err = s.query(ctx, line)
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	if err != nil {
		fmt.Fprintln(s.out, report(err))
	}
	return quit
}

func (s *shell) query(ctx context.Context, text string) error {
	w, err := newRowWriter(s.output, s.out)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := runQuery(ctx, s.client, text, s.options, w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.out, "%.3f s\n", time.Since(start).Seconds())
	return err
}

// command runs a line that begins with a dot.
func (s *shell) command(ctx context.Context, line string) (quit bool, err error) {
	name, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case ".quit", ".exit":
		return true, nil
	case ".help":
		_, err = io.WriteString(s.out, shellHelp)
	case ".table":
		table, glob, ok := strings.Cut(rest, " ")
		if !ok {
			return false, errors.New("give a name and a file or glob: .table lineitem data/*.parquet")
		}
		if s.options.Tables == nil {
			s.options.Tables = map[string]string{}
		}
		s.options.Tables[table] = absolute(strings.Trim(strings.TrimSpace(glob), "'\""))
	case ".tables":
		for table, glob := range s.options.Tables {
			fmt.Fprintln(s.out, table, glob)
		}
	case ".shuffle":
		if err := planner.CheckMode(rest); err != nil {
			return false, err
		}
		s.options.Shuffle = rest
	case ".output":
		if _, err := newRowWriter(rest, io.Discard); err != nil {
			return false, err
		}
		s.output = rest
	case ".explain":
		text, err := s.client.Explain(ctx, rest, s.options)
		if err != nil {
			return false, err
		}
		_, err = io.WriteString(s.out, text)
		return false, err
	case ".nodes":
		nodes, err := s.client.Nodes(ctx)
		if err != nil {
			return false, err
		}
		writeNodes(s.out, nodes)
	default:
		err = fmt.Errorf("unknown command %s; .help lists them", name)
	}
	return false, err
}
