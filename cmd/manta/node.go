package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"manta/planner"
)

// nodeFlags are the flags of head and worker.
type nodeFlags struct {
	listen, dataDir, token string
	cpus                   int
	memory, maxSpill       sizeFlag
	labels                 []string
	verbose                bool
}

func (f *nodeFlags) add(c *cobra.Command, listen string) {
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", listen, "address to serve at; one that other machines reach needs a token")
	flags.StringVar(&f.dataDir, "data-dir", "", "folder of objects and spill files (default: a temporary one)")
	flags.IntVar(&f.cpus, "cpus", 0, "slots (default: the machine's CPUs)")
	flags.Var(&f.memory, "memory", "memory the node may use (default 4 GiB)")
	flags.Var(&f.maxSpill, "max-spill", maxSpillUsage)
	addToken(flags, &f.token)
	flags.StringSliceVar(&f.labels, "labels", nil, "labels of the node: k=v,k=v")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "log what the node does")
}

func (f *nodeFlags) config() (planner.NodeConfig, error) {
	labels := map[string]string{}
	for _, l := range f.labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return planner.NodeConfig{}, usagef("--labels %q: give key=value", l)
		}
		labels[k] = v
	}
	if f.cpus < 0 {
		return planner.NodeConfig{}, usagef("--cpus %d: give at least 1", f.cpus)
	}
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelInfo
	}
	return planner.NodeConfig{
		Listen: f.listen, Token: f.token, DataDir: f.dataDir, CPUs: f.cpus, Memory: int64(f.memory), MaxSpill: int64(f.maxSpill), Labels: labels,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}, nil
}

func headCommand() *cobra.Command {
	var f nodeFlags
	var noTasks bool
	c := &cobra.Command{
		Use:   "head",
		Short: "Run the head of a cluster",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := f.config()
			if err != nil {
				return err
			}
			config.NoTasks = noTasks
			return serve(c.Context(), config)
		},
	}
	f.add(c, "127.0.0.1:7070")
	c.Flags().BoolVar(&noTasks, "no-tasks", false, "leave the tasks to the workers")
	return c
}

func workerCommand() *cobra.Command {
	var f nodeFlags
	var head string
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run a worker of a cluster",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if head == "" {
				return usagef("give the head's address with --head or MANTA_HEAD")
			}
			config, err := f.config()
			if err != nil {
				return err
			}
			config.Head = head
			return serve(c.Context(), config)
		},
	}
	f.add(c, "127.0.0.1:0")
	c.Flags().StringVar(&head, "head", os.Getenv("MANTA_HEAD"), "address of the head (or MANTA_HEAD)")
	return c
}

// serve runs a node until it is told to stop, or can't go on.
func serve(ctx context.Context, config planner.NodeConfig) error {
	if config.DataDir != "" {
		config.DataDir = absolute(config.DataDir)
	}
	node, err := planner.StartNode(ctx, config)
	if err != nil {
		return err
	}
	// A relative path in a query begins at its client's folder. Nothing of that name is in this one.
	if err := os.Chdir(node.Config().DataDir); err != nil {
		return errors.Join(err, node.Close())
	}
	role := "worker"
	if config.Head == "" {
		role = "head"
	}
	fmt.Printf("manta %s %s ready at %s\n", role, node.ID(), node.Address())
	switch file := node.TokenFile(); {
	case file != "":
		fmt.Printf("its token is in %s: workers and clients need it in MANTA_TOKEN\n", file)
	case config.Head == "" && config.Token != "":
		fmt.Println("its token is the one in MANTA_TOKEN or --token")
	}
	select {
	case <-ctx.Done():
		return node.Close()
	case <-node.Done():
		err := node.Err()
		if closing := node.Close(); err == nil {
			err = closing
		}
		return err
	}
}
