// Command manta runs a head, workers, SQL and benchmarks. See README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"manta/planner"
)

// Exit codes.
const (
	exitFailure = 1
	exitUsage   = 2
)

func main() { os.Exit(run(os.Args[1:])) }

// run runs one command line and returns the exit code.
func run(args []string) int {
	// The first interrupt ends what runs, the second one this process. A terminal
	// that is closed counts as one unless nohup says otherwise. A reader of the
	// output that goes away is an error of the write: what runs is ended in order.
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop)

	root := newRoot()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if errors.Is(err, syscall.EPIPE) {
		return exitFailure // nobody is there to be told
	}
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, planner.ErrCancelled)) {
		err = errors.New("interrupted")
	}
	fmt.Fprintln(os.Stderr, "manta: "+report(err))
	var usage *usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(os.Stderr, "See '%s --help'.\n", command.CommandPath())
		return exitUsage
	}
	return exitFailure
}

// usageError is a command line that makes no sense: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "manta",
		Short: "Tasks, actors, an object store and distributed SQL over files",
		Long: "Manta runs SQL over Parquet, CSV and JSON files on one machine or on a cluster of a head and workers.\n" +
			"Without --head, sql, explain and bench start an embedded cluster in this process.",
		Version:       planner.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		headCommand(), workerCommand(), sqlCommand(), explainCommand(),
		genCommand(), benchCommand(), statusCommand(), listCommand(), memoryCommand(), jobCommand(),
	)
	return root
}

// noArgs refuses words that no flag takes.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		if c.HasSubCommands() {
			return usagef("unknown command %q", args[0])
		}
		return usagef("unexpected argument %q", args[0])
	}
	return nil
}
