package planner

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"time"

	"manta/actors"
	"manta/objectstore"
	"manta/planner/kernel"
	"manta/shuffle"
)

// NodeConfig describes a node that can run SQL. The zero value of a field means its default.
type NodeConfig struct {
	Listen  string // address of the node's server; default 127.0.0.1:0, a free port of the loopback interface
	Head    string // address of the head; empty: this node is the head
	Token   string // shared secret of the cluster, see actors.Config
	DataDir string // objects, spill files and exchange files; default: a temporary folder, removed at Close
	CPUs    int    // slots; default: the machine's
	Memory  int64  // bytes the node may use in all; default 4 GiB
	// MaxSpill bounds, each by itself, the bytes that stage tasks, queries that are
	// not distributed, and the object store write to the data folder when memory is
	// short; 0: the disk's space is the limit.
	MaxSpill int64
	NoTasks  bool // the head takes no tasks
	Labels   map[string]string
	Version  string      // of the program, when not this one's: for tests
	Hub      *actors.Hub // not nil: control messages between nodes of this process go through memory
	Logger   *slog.Logger

	batchRows int // for tests: the most rows of a batch on its way
}

// DefaultMemory is a node's memory when none is set.
const DefaultMemory int64 = 4 << 30

// How a node's memory is shared out, in parts of a hundred. What is left is for
// the Go side: batches in the hands of tasks, Badger, connections.
const (
	duckdbShare   = 50
	storeShare    = 20
	exchangeShare = 15
)

// wholeMemory is what queries that are not distributed may use on a node with so much memory, when it has no others.
func wholeMemory(memory int64) int64 { return most(memory / 100 * duckdbShare) }

// embeddedLease is the silence after which a node that shares the head's process is dead.
const embeddedLease = time.Minute

// minMemory is the least memory with which a node starts.
const minMemory int64 = 128 << 20

// maxCPUs bounds a node's slots: each is a thread of a query that runs whole.
const maxCPUs = 1024

// Version names the program and the DuckDB in it. Nodes of one cluster have the same program, and so the same DuckDB.
func Version() string { return "manta " + actors.Version + ", DuckDB " + kernel.Version() }

// Node is a running node. Close ends it.
type Node struct {
	*actors.Node
	exchanges *shuffle.Service
	sql       *Service
	temp      *objectstore.TempDir // removed at Close; nil when the data are kept
}

// StartNode starts a node with the services that SQL needs.
func StartNode(ctx context.Context, c NodeConfig) (*Node, error) {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.CPUs == 0 {
		c.CPUs = runtime.NumCPU()
	}
	if c.Memory == 0 {
		c.Memory = DefaultMemory
	}
	if c.Memory < minMemory {
		return nil, fmt.Errorf("planner: a node needs at least %d MiB of memory, not %d bytes", minMemory>>20, c.Memory)
	}
	if c.MaxSpill < 0 {
		return nil, fmt.Errorf("planner: a node cannot spill at most %d bytes", c.MaxSpill)
	}
	if c.CPUs < 1 {
		return nil, fmt.Errorf("planner: a node needs at least 1 CPU, not %d", c.CPUs)
	}
	if c.CPUs > maxCPUs {
		return nil, fmt.Errorf("planner: a node has at most %d CPUs, not %d", maxCPUs, c.CPUs)
	}
	n := &Node{}
	if c.DataDir == "" {
		dir, err := objectstore.MakeTempDir()
		if err != nil {
			return nil, fmt.Errorf("planner: data folder: %w", err)
		}
		c.DataDir, n.temp = dir.Path, dir
	}
	share := func(parts int64) int64 { return c.Memory / 100 * parts }
	exchanges := shuffle.NewService(shuffle.Config{
		MemoryLimit: share(exchangeShare),
		Dir:         filepath.Join(c.DataDir, "exchange"),
		BatchBytes:  min(c.batchRows, 1), // 0: the default; 1: a batch as it is written
	})
	sql := newService(exchanges, serviceConfig{
		memory:  share(duckdbShare),
		threads: c.CPUs,
		tempDir: filepath.Join(c.DataDir, "duckdb"),
		tempMax: c.MaxSpill,
		head:    c.Head == "",
		log:     c.Logger,

		batchRows: c.batchRows,
	})
	var lease time.Duration // default
	if c.Hub != nil {
		// Nodes of one process die together: silence says only that it is busy.
		lease = embeddedLease
	}
	node, err := actors.Start(ctx, actors.Config{
		Lease:       lease,
		Listen:      c.Listen,
		Head:        c.Head,
		Token:       c.Token,
		DataDir:     c.DataDir,
		CPUs:        c.CPUs,
		MemoryBytes: c.Memory,
		NoTasks:     c.NoTasks,
		Labels:      c.Labels,
		Version:     c.Version,
		Services:    []actors.Service{exchanges, sql},
		Tasks:       map[string]actors.TaskFunc{stageFunc: sql.runStage},
		Store:       objectstore.Config{Dir: filepath.Join(c.DataDir, "objects"), MemoryLimit: share(storeShare), DiskLimit: c.MaxSpill},
		InProcess:   c.Hub,
		Logger:      c.Logger,
	})
	if err != nil {
		n.removeTemp()
		return nil, err
	}
	n.Node, n.exchanges, n.sql = node, exchanges, sql
	return n, nil
}

// Close leaves the cluster, ends what runs here, and removes a temporary data folder.
func (n *Node) Close() error {
	err := n.Node.Close()
	n.removeTemp()
	return err
}

func (n *Node) removeTemp() {
	if n.temp != nil {
		_ = n.temp.Remove()
	}
}
