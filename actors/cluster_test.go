package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"manta/objectstore"
)

// cluster is a head and workers in this process, on one hub.
type cluster struct {
	t     *testing.T
	head  *Node
	nodes []*Node // the head first
	probe []*probe
	hub   *Hub
	tasks map[string]TaskFunc
	edit  func(*Config)
}

// probe is a service that writes down what it is told.
type probe struct {
	mu     sync.Mutex
	ended  map[JobID]int
	dead   map[NodeID]string
	closed bool
}

func (p *probe) Register(*Node, grpc.ServiceRegistrar) error { return nil }
func (p *probe) JobEnded(job JobID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended[job]++
}
func (p *probe) NodeDead(node NodeID, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[node] = reason
}
func (p *probe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return nil
}
func (p *probe) sawEnd(job JobID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended[job] > 0
}
func (p *probe) sawDeath(node NodeID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.dead[node]
	return ok
}

func newCluster(t *testing.T, workers int, tasks map[string]TaskFunc, edit func(*Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, hub: NewHub(), tasks: tasks, edit: edit}
	c.head = c.start("")
	for range workers {
		c.start(c.head.Address())
	}
	t.Cleanup(func() {
		for i := len(c.nodes) - 1; i >= 0; i-- {
			if err := c.nodes[i].Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	return c
}

func (c *cluster) config(head string) Config {
	cfg := Config{
		Head: head, InProcess: c.hub, DataDir: c.t.TempDir(), CPUs: 2, MemoryBytes: 256 << 20, Token: "secret",
		Tasks: c.tasks, Store: objectstore.Config{MemoryLimit: 16 << 20},
		JoinTimeout: patience,
		Lease:       30 * time.Second, // a machine that is busy elsewhere kills no node; quick is for the tests of deaths
	}
	if c.edit != nil {
		c.edit(&cfg)
	}
	return cfg
}

func (c *cluster) start(head string) *Node {
	c.t.Helper()
	p := &probe{ended: make(map[JobID]int), dead: make(map[NodeID]string)}
	cfg := c.config(head)
	cfg.Services = append(cfg.Services, p)
	n, err := Start(testContext(c.t), cfg)
	require.NoError(c.t, err)
	c.nodes = append(c.nodes, n)
	c.probe = append(c.probe, p)
	return n
}

// patience bounds every wait for something that takes a moment on an idle machine. Only a failure takes that long.
const patience = 2 * time.Minute

// eventually waits until the condition holds. It is called by the test's own goroutine, so that it may use require.
func eventually(t *testing.T, condition func() bool, what ...any) {
	t.Helper()
	for end := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		require.True(t, time.Now().Before(end), what...)
	}
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func (c *cluster) job() *Job {
	c.t.Helper()
	j, err := c.head.NewJob(testContext(c.t), JobSpec{Name: c.t.Name()})
	require.NoError(c.t, err)
	return j
}

// quiet checks that no node holds a slot or a task.
func (c *cluster) quiet() {
	c.t.Helper()
	eventually(c.t, func() bool {
		for _, n := range c.nodes {
			if running, waiting := n.runner.counts(); running+waiting > 0 {
				return false
			}
			n.engine.mu.Lock()
			left := len(n.engine.attempts)
			n.engine.mu.Unlock()
			if left > 0 {
				return false
			}
		}
		return true
	}, "slots or tasks are left")
}

func TestSubmit(t *testing.T) {
	c := newCluster(t, 2, map[string]TaskFunc{
		"hello": func(tc *TaskContext, arg []byte) ([]byte, error) {
			return fmt.Appendf(nil, "%s from %s", arg, tc.Node.ID()), nil
		},
	}, nil)
	job := c.job()
	for _, n := range c.nodes {
		task, err := job.Submit(TaskSpec{Func: "hello", Arg: []byte("hi"), Node: n.ID()})
		require.NoError(t, err)
		got, err := task.Wait(testContext(t))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("hi from %s", n.ID()), string(got))
		require.Equal(t, TaskSucceeded, task.State())
	}
	job.Finish(nil)
	info := job.Info()
	require.Equal(t, JobSucceeded, info.State)
	require.Equal(t, 3, info.Tasks)
	require.Equal(t, 3, info.TasksDone)
	for _, p := range c.probe {
		require.True(t, p.sawEnd(job.ID()))
	}
	c.quiet()
}
