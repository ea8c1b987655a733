package planner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"manta/actors"
)

// Embedded is a cluster inside this process. Its nodes share the process and
// nothing else: each has its own store, DuckDB and slots, and rows between them
// cross the real data plane over loopback. Only control messages take the short
// way through memory.
type Embedded struct {
	Nodes []*Node // the head first
}

// StartEmbedded starts c.Nodes nodes.
func StartEmbedded(ctx context.Context, c Config) (*Embedded, error) {
	nodes := max(c.Nodes, 1)
	cpus := c.CPUs
	if cpus == 0 {
		cpus = max(runtime.NumCPU()/nodes, 1)
	}
	e := &Embedded{}
	hub := actors.NewHub()
	for i := range nodes {
		config := NodeConfig{CPUs: cpus, Memory: c.Memory, MaxSpill: c.MaxSpill, Hub: hub, Token: c.Token, Logger: c.Logger, batchRows: c.BatchRows}
		if c.DataDir != "" {
			config.DataDir = filepath.Join(c.DataDir, fmt.Sprintf("node-%d", i))
		}
		if i > 0 {
			config.Head = e.Nodes[0].Address()
		}
		n, err := StartNode(ctx, config)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.Nodes = append(e.Nodes, n)
	}
	return e, nil
}

// Close ends the nodes, the head last.
func (e *Embedded) Close() error {
	var errs []error
	for i := len(e.Nodes) - 1; i >= 0; i-- {
		errs = append(errs, e.Nodes[i].Close())
	}
	e.Nodes = nil
	return errors.Join(errs...)
}
