package actors

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"manta/actors/internal/trust"
	"manta/objectstore"
)

// Config says what a node is. The zero value is a head on a free loopback port
// with a temporary data directory.
type Config struct {
	// Listen is the host:port of the gRPC server. Port 0 takes a free one. Default
	// 127.0.0.1:0. An address that is not loopback needs a Token, of at least 32 bytes.
	// For an unspecified one (0.0.0.0) others are told the address of the interface towards Head.
	Listen string
	// Head is the address of the cluster's head. "" makes this node the head.
	Head string
	// Token is the cluster's secret. With it every connection is TLS between holders of the token; without it all are
	// plain, and stay on this machine. A head that needs one and is given none takes that of the file token in DataDir,
	// or makes it: see Node.TokenFile.
	Token string
	// DataDir is for the store and for services. "" takes a temporary one that
	// Close removes.
	DataDir string
	// CPUs is the number of slots. Default: the machine's logical CPUs.
	CPUs int
	// MemoryBytes is the node's memory. Default: half of the machine's.
	MemoryBytes int64
	// NoTasks makes a node without slots.
	NoTasks bool
	// Labels describe the node.
	Labels map[string]string
	// Version must be the same on all nodes. Default: the package's Version.
	Version string

	// Services are attached in this order, and closed in the opposite one.
	Services []Service
	// Tasks are the functions that tasks may run here, by name.
	Tasks map[string]TaskFunc

	// Store is the object store. Default: DataDir/store, 30 % of MemoryBytes.
	Store objectstore.Config

	// MaxJobs is how many jobs run at once; further ones wait. Default 4. (Head.)
	MaxJobs int

	// InProcess carries control messages in memory, between the nodes that share
	// the hub. nil uses remoting between processes, of which a process has one.
	InProcess *Hub

	// Heartbeat is the time between a node's heartbeats. Default 1 s. (Head; the
	// other nodes learn it when they join.)
	Heartbeat time.Duration
	// Lease is the silence after which a node is dead. Default 3 s. (Head.)
	Lease time.Duration
	// JoinTimeout is for how long a node tries to reach the head. Default 3 s.
	JoinTimeout time.Duration

	// Faults, in tests, loses, delays and repeats control messages.
	Faults *Faults

	// Logger gets what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// Validate fills in the defaults and says what is wrong.
func (c *Config) Validate() error {
	c.Token = strings.TrimSpace(c.Token) // it may come from a file
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("actors: listen address %q is not host:port", c.Listen)
	}
	if p, err := strconv.Atoi(port); err != nil || p < 0 || p > 65535 {
		return fmt.Errorf("actors: listen address %q has no valid port", c.Listen)
	}
	if open := !isLoopback(host); open && c.Token != "" && len(c.Token) < trust.MinToken {
		return fmt.Errorf("actors: listen address %s can be reached from other machines: a token of %d characters can be guessed there; "+
			"take one of %d or more, best that which manta head makes when it has none", c.Listen, len(c.Token), trust.MinToken)
	} else if open && c.Token == "" && c.Head != "" {
		return fmt.Errorf("actors: listen address %s can be reached from other machines: set the head's token, or listen on 127.0.0.1", c.Listen)
	}
	if c.Head != "" {
		if _, _, err := net.SplitHostPort(c.Head); err != nil {
			return fmt.Errorf("actors: head address %q is not host:port", c.Head)
		}
	}
	switch {
	case c.CPUs < 0:
		return fmt.Errorf("actors: %d CPUs", c.CPUs)
	case c.MemoryBytes < 0:
		return fmt.Errorf("actors: %d bytes of memory", c.MemoryBytes)
	case c.MaxJobs < 0:
		return fmt.Errorf("actors: at most %d jobs", c.MaxJobs)
	}
	if c.CPUs == 0 {
		c.CPUs = runtime.NumCPU()
	}
	if c.NoTasks {
		c.CPUs = 0
	}
	if c.MemoryBytes == 0 {
		c.MemoryBytes = machineMemory() / 2
	}
	if c.MaxJobs == 0 {
		c.MaxJobs = 4
	}
	if c.Version == "" {
		c.Version = Version
	}
	if c.Heartbeat == 0 {
		c.Heartbeat = time.Second
	}
	if c.Lease == 0 {
		c.Lease = 3 * time.Second
	}
	if c.Heartbeat < time.Millisecond || c.Lease < 2*c.Heartbeat {
		return fmt.Errorf("actors: lease %v must be at least twice the heartbeat %v", c.Lease, c.Heartbeat)
	}
	if c.JoinTimeout == 0 {
		c.JoinTimeout = 3 * time.Second
	}
	for name, f := range c.Tasks {
		if name == "" || f == nil {
			return errors.New("actors: a task function without a name or a body")
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return nil
}

// String is one line for logs. It leaves out the token.
func (c *Config) String() string {
	role := "head"
	if c.Head != "" {
		role = "worker of " + c.Head
	}
	return fmt.Sprintf("%s listen=%s cpus=%d memory=%d data=%s", role, c.Listen, c.CPUs, c.MemoryBytes, c.DataDir)
}

// storeConfig derives what Store leaves open.
func (c *Config) storeConfig() objectstore.Config {
	s := c.Store
	if s.Dir == "" {
		s.Dir = filepath.Join(c.DataDir, "store")
	}
	if s.MemoryLimit == 0 {
		s.MemoryLimit = max(c.MemoryBytes*3/10, 1<<20)
	}
	return s
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// machineMemory is the machine's memory in bytes, or 8 GiB where it is not known.
func machineMemory() int64 {
	const unknown = 8 << 30
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return unknown
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil && kib > 0 {
				return kib << 10
			}
		}
	}
	return unknown
}
