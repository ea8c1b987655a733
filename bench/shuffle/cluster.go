package shuffle

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"manta/actors"
	"manta/objectstore"
	exchange "manta/shuffle"
)

// ServeConfig describes a node of the benchmark in a process of its own.
type ServeConfig struct {
	Head        string // address
	Dir         string
	Memory      int64
	StoreMemory int64
	Token       string // "": plain connections
}

// startNode starts a node with the benchmark's tasks; Head "" makes it the head.
func startNode(ctx context.Context, c ServeConfig, hub *actors.Hub) (*actors.Node, *worker, error) {
	s := exchange.NewService(exchange.Config{MemoryLimit: c.Memory, Dir: filepath.Join(c.Dir, "exchange")})
	w := &worker{exchange: s, inputs: map[string]*input{}}
	n, err := actors.Start(ctx, actors.Config{
		Head: c.Head, Token: c.Token, DataDir: c.Dir, InProcess: hub,
		Services: []actors.Service{s}, Tasks: w.tasks(),
		Store: objectstore.Config{Dir: filepath.Join(c.Dir, "store"), MemoryLimit: c.StoreMemory},
		// A benchmark takes every core; a heartbeat may come late.
		Heartbeat: time.Second, Lease: 20 * time.Second, JoinTimeout: 20 * time.Second,
	})
	return n, w, err
}

// Serve runs a node until stdin ends, ctx ends or the head is gone.
func Serve(ctx context.Context, c ServeConfig, stdin io.Reader) error {
	n, w, err := startNode(ctx, c, nil)
	if err != nil {
		return err
	}
	defer w.release()
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-n.Done():
	}
	return n.Close()
}

// cluster is the nodes of a benchmark: the first in this process, the others in their own.
type cluster struct {
	head     *actors.Node
	worker   *worker
	nodes    []actors.NodeID
	children []*child
	dir      string
}

type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// startCluster starts o.Processes nodes.
func startCluster(ctx context.Context, o *Options) (c *cluster, err error) {
	c = &cluster{}
	defer func() {
		if err != nil {
			_ = c.close()
			c = nil
		}
	}()
	if c.dir, err = os.MkdirTemp(o.Dir, "manta-bench-shuffle-"); err != nil {
		return c, err
	}
	config := ServeConfig{Dir: filepath.Join(c.dir, "0"), Memory: o.Memory, StoreMemory: o.StoreMemory}
	if o.TLS {
		config.Token = rand.Text()
	}
	var hub *actors.Hub // in one process, control messages need no network
	if o.Processes == 1 {
		hub = actors.NewHub()
	}
	if c.head, c.worker, err = startNode(ctx, config, hub); err != nil {
		return c, err
	}
	config.Head = c.head.Address()
	for i := 1; i < o.Processes; i++ {
		config.Dir = filepath.Join(c.dir, fmt.Sprint(i))
		cmd := o.Spawn(config)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return c, err
		}
		if err := cmd.Start(); err != nil {
			return c, err
		}
		c.children = append(c.children, &child{cmd, stdin})
	}
	return c, c.wait(ctx, o.Processes)
}

// wait returns once all nodes have joined.
func (c *cluster) wait(ctx context.Context, n int) error {
	late := time.After(30 * time.Second)
	for {
		c.nodes = []actors.NodeID{c.head.ID()}
		for _, info := range c.head.Nodes() {
			if info.ID != c.head.ID() && info.State == actors.NodeAlive {
				c.nodes = append(c.nodes, info.ID)
			}
		}
		if len(c.nodes) == n {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-late:
			return fmt.Errorf("bench: %d of %d processes joined", len(c.nodes), n)
		}
	}
}

// close ends all nodes and removes their files.
func (c *cluster) close() error {
	var errs []error
	for _, child := range c.children {
		_ = child.stdin.Close()
	}
	for _, child := range c.children {
		late := time.AfterFunc(20*time.Second, func() { _ = child.cmd.Process.Kill() })
		errs = append(errs, child.cmd.Wait())
		late.Stop()
	}
	if c.head != nil {
		errs = append(errs, c.head.Close())
		c.worker.release()
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// edge places an exchange: see the package's description.
func (c *cluster) edge(o *Options, job actors.JobID, mode exchange.Mode) *exchange.Edge {
	e := &exchange.Edge{Job: job, ID: 1, Mode: mode}
	for i := range o.Producers {
		at := i % len(c.nodes)
		if len(c.nodes) == 2 {
			at = 0
		}
		e.Producers = append(e.Producers, c.nodes[at])
	}
	for p := range o.Partitions {
		at := p % len(c.nodes)
		if len(c.nodes) == 2 {
			at = 1
		}
		e.Consumers = append(e.Consumers, c.nodes[at])
	}
	return e
}
