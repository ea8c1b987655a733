package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/planner"
)

// patience bounds every wait for something that takes a moment on an idle
// machine; nothing but a failure takes that long.
const patience = 60 * time.Second

// process is manta as a process of its own.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed once it has ended; code and output are then final
	code  int

	mu       sync.Mutex
	out, err bytes.Buffer // guarded by mu
}

// lockedWriter writes to one of a process's buffers.
type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// start starts manta with its temporary files in the folder temp. It is killed
// at the end of the test if it still runs.
func start(t *testing.T, temp string, args ...string) *process {
	t.Helper()
	return startTo(t, nil, temp, args...)
}

// startTo starts manta with its output going to a file, or kept where there is none.
func startTo(t *testing.T, out *os.File, temp string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command("manta", args...), ended: make(chan struct{})}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MANTA_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	p.cmd.Env = append(p.cmd.Env, "TMPDIR="+temp)
	p.cmd.Stdout, p.cmd.Stderr = lockedWriter{&p.mu, &p.out}, lockedWriter{&p.mu, &p.err}
	if out != nil {
		p.cmd.Stdout = out
	}
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
		p.code = p.cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() && p.stderr() != "" {
			t.Logf("manta %s said: %s", strings.Join(args, " "), p.stderr())
		}
	})
	return p
}

func (p *process) stdout() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err.String()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(s))
}

// wait waits for the end and returns the exit code; -1 is that of a killed process.
func (p *process) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it says what its goroutines do
		select {
		case <-p.ended:
		case <-time.After(patience):
		}
		require.Fail(t, "the process did not end", "manta %s: %s", strings.Join(p.cmd.Args[1:], " "), p.stderr())
	}
	return p.code
}

// words are what it said on standard error beside the log of a node.
func (p *process) words() string {
	var words strings.Builder
	for line := range strings.Lines(p.stderr()) {
		if !strings.HasPrefix(line, "time=") {
			words.WriteString(line)
		}
	}
	return words.String()
}

// succeeds waits for a good end, with nothing on standard error, and returns what was printed.
func (p *process) succeeds(t *testing.T) string {
	t.Helper()
	require.Equal(t, 0, p.wait(t), "%s", p.stderr())
	require.Empty(t, p.words())
	return p.stdout()
}

// fails waits for a bad end and returns the one line that says why.
func (p *process) fails(t *testing.T) string {
	t.Helper()
	require.Equal(t, exitFailure, p.wait(t), "%s", p.stderr())
	require.Empty(t, complaint(p.words(), exitFailure), "%s", p.stderr())
	return strings.TrimSuffix(p.words(), "\n")
}

// eventually waits until problem returns nothing.
func eventually(t *testing.T, problem func() string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for last := problem(); last != ""; last = problem() {
		require.True(t, time.Now().Before(deadline), "still: %s", last)
		time.Sleep(10 * time.Millisecond)
	}
}

// node is a head or a worker.
type node struct {
	*process
	id      actors.NodeID
	address string
	dir     string // data folder
	temp    string // folder of temporary files, empty unless the node has something there
}

// startNode starts a node of one slot and waits until it is ready.
func startNode(t *testing.T, role string, flags ...string) *node {
	t.Helper()
	n := &node{dir: t.TempDir(), temp: t.TempDir()}
	args := append([]string{role, "--listen", "127.0.0.1:0", "--cpus", "1", "--memory", "512MiB", "--data-dir", n.dir}, flags...)
	n.process = start(t, n.temp, args...)
	eventually(t, func() string {
		select {
		case <-n.ended:
			require.Fail(t, "the node ended", "%s", n.stderr())
		default:
		}
		var saidRole, id string
		if _, err := fmt.Sscanf(n.stdout(), "manta %s %s ready at %s\n", &saidRole, &id, &n.address); err != nil {
			return fmt.Sprintf("%s printed %q", role, n.stdout())
		}
		require.Equal(t, role, saidRole)
		n.id = actors.NodeID(id)
		return ""
	})
	return n
}

// stop ends a node in good order.
func (n *node) stop(t *testing.T) {
	t.Helper()
	n.signal(t, syscall.SIGTERM)
	n.succeeds(t)
}

// processes is a cluster of processes: a head, workers, and a client in this process.
type processes struct {
	head    *node
	workers []*node
	client  *planner.Client
}

func startProcesses(t *testing.T, workers int) *processes {
	t.Helper()
	c := &processes{head: startNode(t, "head")}
	for range workers {
		c.workers = append(c.workers, startNode(t, "worker", "--head", c.head.address))
	}
	var err error
	c.client, err = planner.Connect(context.Background(), planner.Config{Head: c.head.address})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.client.Close() })
	return c
}

func (c *processes) nodes() []*node { return append([]*node{c.head}, c.workers...) }

// sql starts a query from a client process.
func (c *processes) sql(t *testing.T, args ...string) *process {
	t.Helper()
	return start(t, t.TempDir(), append([]string{"sql", "--head", c.head.address}, args...)...)
}

// infos are the nodes as the head knows them.
func (c *processes) infos(t *testing.T) map[actors.NodeID]actors.NodeInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := c.client.Nodes(ctx)
	require.NoError(t, err)
	byID := map[actors.NodeID]actors.NodeInfo{}
	for _, n := range list {
		byID[n.ID] = n
	}
	return byID
}

// job is the latest job.
func (c *processes) job(t *testing.T) actors.JobInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	jobs, err := c.client.Jobs(ctx)
	require.NoError(t, err)
	var latest actors.JobInfo
	for _, j := range jobs {
		if !j.Submitted.Before(latest.Submitted) {
			latest = j
		}
	}
	return latest
}

// jobNamed is the job with an id.
func (c *processes) jobNamed(t *testing.T, id actors.JobID) actors.JobInfo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	jobs, err := c.client.Jobs(ctx)
	require.NoError(t, err)
	i := slices.IndexFunc(jobs, func(j actors.JobInfo) bool { return j.ID == id })
	require.GreaterOrEqual(t, i, 0, "no job %s", id)
	return jobs[i]
}

// waitBusy waits until tasks run. Not on every node: a partition may hold next to nothing.
func (c *processes) waitBusy(t *testing.T) {
	t.Helper()
	eventually(t, func() string {
		for _, n := range c.infos(t) {
			if n.State == actors.NodeAlive && n.RunningTasks > 0 {
				return ""
			}
		}
		return "nothing runs on any node"
	})
}

// waitEmpty waits until no node that is alive has a task, or a file of a query.
func (c *processes) waitEmpty(t *testing.T) {
	t.Helper()
	eventually(t, func() string {
		for id, n := range c.infos(t) {
			if n.State == actors.NodeAlive && n.RunningTasks+n.WaitingTasks > 0 {
				return fmt.Sprintf("%s has %d running and %d waiting tasks", id, n.RunningTasks, n.WaitingTasks)
			}
		}
		for _, n := range c.nodes() {
			select {
			case <-n.ended: // a killed node leaves its files to the next one in its folder
				continue
			default:
			}
			if files := queryFiles(t, n.dir); len(files) > 0 {
				return fmt.Sprintf("%s has files: %v", n.id, files)
			}
		}
		return ""
	})
}

// queryFiles are the files of queries in a data folder: what exchanges, DuckDB
// and the object store have spilled.
func queryFiles(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	for _, folder := range []string{"exchange", "duckdb", filepath.Join("objects", "spill")} {
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, e fs.DirEntry, err error) error {
			switch {
			case os.IsNotExist(err):
			case err != nil:
				return err
			case !e.IsDir():
				files = append(files, path)
			}
			return nil
		})
		require.NoError(t, err)
	}
	return files
}
