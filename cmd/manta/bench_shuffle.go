package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"manta/actors"
	exchanges "manta/bench/shuffle"
)

// benchShuffle measures the exchanges without SQL.
func benchShuffle() *cobra.Command {
	var o exchanges.Options
	var modes []string
	var output reportFlag
	bytes, memory, store := sizeFlag(1<<30), sizeFlag(256<<20), sizeFlag(1<<30)
	c := &cobra.Command{
		Use:   "shuffle",
		Short: "Move generated batches through every exchange mode, beside the machine's limits",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if o.Modes, err = parseModes(modes); err != nil {
				return err
			}
			if err := output.check(); err != nil {
				return err
			}
			o.Bytes, o.Memory, o.StoreMemory = int64(bytes), int64(memory), int64(store)
			self, err := os.Executable()
			if err != nil {
				return err
			}
			o.Spawn = func(s exchanges.ServeConfig) *exec.Cmd {
				node := exec.Command(self, "bench", "shuffle", "node", "--head", s.Head, "--dir", s.Dir,
					"--memory", fmt.Sprint(s.Memory), "--store-memory", fmt.Sprint(s.StoreMemory))
				node.Args[0] = os.Args[0]
				node.Env = append(os.Environ(), actors.EnvToken+"="+s.Token)
				node.Stderr = os.Stderr
				return node
			}
			if err := o.Validate(); err != nil {
				return &usageError{err}
			}
			o.Progress = progressLine()
			report, err := exchanges.Run(c.Context(), o)
			o.Progress("")
			if err != nil {
				return err
			}
			return output.write(c, report)
		},
	}
	flags := c.Flags()
	flags.Var(&bytes, "bytes", "what to move, of values")
	flags.IntVar(&o.RowsPerBatch, "rows-per-batch", 2048, "rows of the batches that producers write")
	flags.IntVar(&o.Columns, "columns", 8, "BIGINT columns")
	flags.IntVar(&o.Partitions, "partitions", 16, "partitions, with a reader each")
	flags.IntVar(&o.Producers, "producers", 2, "producers")
	flags.Float64Var(&o.Skew, "skew", 0, "partition k gets a share in proportion to 1/(k+1)^skew")
	flags.StringSliceVar(&modes, "modes", nil, "exchange modes (default all)")
	flags.IntVar(&o.Processes, "processes", 1, "1: one node; 2: producers here, readers in another process; 3: tasks in all")
	flags.BoolVar(&o.TLS, "tls", false, "encrypt what goes between processes, as a cluster with a token does")
	flags.IntVar(&o.Runs, "runs", 3, "measurements of each mode, interleaved")
	flags.IntVar(&o.Slow, "slow", 0, "the reader of partition 0 is so many times slower than the others")
	flags.Var(&memory, "memory", "memory for exchanges, each node")
	flags.Var(&store, "store-memory", "memory of the object store, each node")
	flags.StringVar(&o.Dir, "data-dir", "", "where nodes keep files (default: the folder for temporary files)")
	output.add(flags)
	c.AddCommand(benchShuffleNode())
	return c
}

// benchShuffleNode is a further process of the benchmark; it ends with its standard input.
func benchShuffleNode() *cobra.Command {
	var config exchanges.ServeConfig
	c := &cobra.Command{
		Use:    "node",
		Hidden: true,
		Args:   noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config.Token = os.Getenv(actors.EnvToken)
			return exchanges.Serve(c.Context(), config, c.InOrStdin())
		},
	}
	flags := c.Flags()
	flags.StringVar(&config.Head, "head", "", "address of the first process")
	flags.StringVar(&config.Dir, "dir", "", "folder for files")
	flags.Int64Var(&config.Memory, "memory", 0, "bytes for exchanges")
	flags.Int64Var(&config.StoreMemory, "store-memory", 0, "bytes of the object store")
	return c
}
