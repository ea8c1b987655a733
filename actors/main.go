package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// The environment that Main obeys.
const (
	EnvHead  = "MANTA_HEAD"  // the address of a cluster's head: the program's job runs there
	EnvToken = "MANTA_TOKEN" // the cluster's token
	EnvJoin  = "MANTA_JOIN"  // the address of a head: the program is a node of its cluster, and run is not called
	EnvCPUs  = "MANTA_CPUS"  // how many CPUs this process has for tasks
)

// Main is all that a program's main needs to call. The same program is, by its environment, a driver with a cluster of its
// own in the process, a driver of a job on a cluster, or a node that runs the tasks of such jobs: nodes must be of the same
// program. Main does not return; an error of run is said on standard error, and the exit code is 1.
func Main(run func(ctx context.Context, c *Client) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := mainOf(ctx, run); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func mainOf(ctx context.Context, run func(ctx context.Context, c *Client) error) (err error) {
	cfg := Config{Token: os.Getenv(EnvToken), Head: os.Getenv(EnvHead), NoTasks: true}
	join := os.Getenv(EnvJoin)
	switch {
	case join != "":
		cfg.Head, cfg.NoTasks = join, false
	case cfg.Head == "":
		cfg.InProcess, cfg.NoTasks = NewHub(), false
	}
	if text := os.Getenv(EnvCPUs); text != "" && !cfg.NoTasks {
		if cfg.CPUs, err = strconv.Atoi(text); err != nil || cfg.CPUs < 1 {
			return fmt.Errorf("%s=%q: give a number of CPUs", EnvCPUs, text)
		}
	}
	n, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if join != "" {
		select {
		case <-ctx.Done():
			return nil
		case <-n.Done():
			return n.Err()
		}
	}
	c, err := n.NewClient(ctx, JobSpec{Name: os.Args[0]})
	if err != nil {
		return err
	}
	err = run(c.Context(), c)
	return errors.Join(err, c.Close(err))
}
