package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/planner"
)

// tables are the -t flags of the tables of TPC-H.
func tables(t *testing.T, names ...string) []string {
	var flags []string
	for _, name := range names {
		flags = append(flags, "-t", name+"="+filepath.Join(data(t), name, "*.parquet"))
	}
	return flags
}

// A query that joins, groups and sorts, and has the same rows in the same order every time.
const question = "SELECT o_orderpriority, l_shipmode, count(*) AS n, sum(l_extendedprice) AS price " +
	"FROM lineitem JOIN orders ON l_orderkey = o_orderkey GROUP BY ALL ORDER BY ALL"

// slow has work for minutes on every node, behind a first exchange.
const slow = "SELECT a.l_suppkey, count(*) AS n FROM lineitem a JOIN lineitem b ON a.l_linenumber = b.l_linenumber " +
	"WHERE a.l_comment || b.l_comment LIKE '%no such comment%' GROUP BY 1"

// slack is above what the cluster promises (a query is cancelled within 1 s, a
// dead node is known within 5 s), for machines that are busy.
const slack = patience

var modes = []string{"concat", "disk", "object-store", "streaming", "auto"}

// TestCluster is a cluster's good day: a head, two workers, many clients.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := startProcesses(t, 2)
	ask := func(args ...string) []string {
		return append(append(tables(t, "lineitem", "orders"), "-o", "csv"), args...)
	}
	want := start(t, t.TempDir(), append([]string{"sql"}, ask(question)...)...).succeeds(t)
	require.Equal(t, 1+5*7, strings.Count(want, "\n"), "priorities and ship modes, below a header:\n%s", want)

	t.Run("same answers", func(t *testing.T) {
		for _, mode := range modes {
			require.Equal(t, want, c.sql(t, ask("--shuffle", mode, question)...).succeeds(t), mode)
			c.waitEmpty(t)
		}
	})

	t.Run("tasks on all nodes", func(t *testing.T) {
		args := append([]string{"explain", "--analyze", "--distribute", "always", "--head", c.head.address}, tables(t, "lineitem", "orders")...)
		text := start(t, t.TempDir(), append(args, question)...).succeeds(t)
		for _, n := range c.nodes() {
			require.Contains(t, text, "on "+string(n.id)+": ")
		}
	})

	t.Run("list nodes", func(t *testing.T) {
		text := start(t, t.TempDir(), "list", "nodes", "-o", "json", "--head", c.head.address).succeeds(t)
		var list []map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.Len(t, list, 3)
		for _, n := range list {
			require.Subset(t, keys(n), []string{"id", "address", "state", "cpus", "memory_bytes", "running_tasks", "waiting_tasks"})
			require.Equal(t, "alive", n["state"])
			require.EqualValues(t, 1, n["cpus"])
			require.EqualValues(t, 512<<20, n["memory_bytes"])
			require.Equal(t, n["id"] == string(c.head.id), n["head"])
		}
		text = start(t, t.TempDir(), "list", "nodes", "--head", c.head.address).succeeds(t)
		for _, n := range c.nodes() {
			require.Contains(t, text, string(n.id))
			require.Contains(t, text, n.address)
		}
	})

	t.Run("memory and objects", func(t *testing.T) {
		text := start(t, t.TempDir(), "memory", "-o", "json", "--head", c.head.address).succeeds(t)
		var list []actors.NodeMemory
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.Len(t, list, 3)
		for _, n := range list {
			require.Empty(t, n.Error)
			require.Positive(t, n.Store.MemoryLimit)
		}
		text = start(t, t.TempDir(), "memory", "--head", c.head.address).succeeds(t)
		for _, n := range c.nodes() {
			require.Equal(t, 2, strings.Count(text, string(n.id)), "what it has, and what came and went")
		}
		text = start(t, t.TempDir(), "list", "objects", "-o", "json", "--head", c.head.address).succeeds(t)
		var objects []nodeObject
		require.NoError(t, json.Unmarshal([]byte(text), &objects))
		require.Empty(t, objects, "no job is left")
		require.Contains(t, start(t, t.TempDir(), "list", "objects", "--head", c.head.address).succeeds(t), "made by")
	})

	t.Run("list jobs", func(t *testing.T) {
		text := start(t, t.TempDir(), "list", "jobs", "-o", "json", "--head", c.head.address).succeeds(t)
		var list []actors.JobInfo
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.NotEmpty(t, list)
		for _, j := range list {
			require.Equal(t, actors.JobSucceeded, j.State)
			require.Equal(t, j.Tasks, j.TasksDone)
			require.True(t, strings.HasPrefix(j.Name, "SELECT o_orderpriority"), j.Name)
		}
		require.Contains(t, start(t, t.TempDir(), "list", "jobs", "--head", c.head.address).succeeds(t), "SUCCEEDED")
		text = start(t, t.TempDir(), "status", "-o", "json", "--head", c.head.address).succeeds(t)
		var status map[string][]any
		require.NoError(t, json.Unmarshal([]byte(text), &status))
		require.Len(t, status["nodes"], 3)
		require.Empty(t, status["jobs"])
	})

	t.Run("list tasks and actors", func(t *testing.T) {
		for what, columns := range map[string]string{"tasks": "waits for", "actors": "class"} {
			require.Equal(t, "[]\n", start(t, t.TempDir(), "list", what, "-o", "json", "--head", c.head.address).succeeds(t))
			require.Contains(t, start(t, t.TempDir(), "list", what, "--limit", "5", "--head", c.head.address).succeeds(t), columns)
		}
	})

	t.Run("bench", func(t *testing.T) {
		args := []string{"bench", "tpch", "--head", c.head.address, "--data", data(t), "--queries", "3,9,18,21", "-o", "json"}
		text := start(t, t.TempDir(), args...).succeeds(t)
		var report struct {
			Nodes, Slots int
			Results      []struct {
				Query                 int
				Mode                  string
				Verified, Distributed bool
				BytesExchanged        int64 `json:"bytes_exchanged"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(text), &report))
		require.Equal(t, 3, report.Nodes)
		require.Equal(t, 3, report.Slots)
		require.Len(t, report.Results, 4*len(modes))
		for _, r := range report.Results {
			require.True(t, r.Verified, "%+v", r)
			require.True(t, r.Distributed, "%+v", r)
			require.Positive(t, r.BytesExchanged, "%+v", r)
		}
		c.waitEmpty(t)
	})

	t.Run("many clients", func(t *testing.T) {
		const clients = 20
		var all []*process
		for i := range clients {
			all = append(all, c.sql(t, ask("--shuffle", modes[i%len(modes)], question)...))
		}
		for _, p := range all {
			require.Equal(t, want, p.succeeds(t))
		}
		c.waitEmpty(t)
		// No slot is lost: each node has one, and one stage for all three still runs.
		require.Equal(t, want, c.sql(t, ask("--shuffle", "streaming", "--partitions", "3", question)...).succeeds(t))
		c.waitEmpty(t)
	})

	t.Run("interrupt", func(t *testing.T) {
		for _, mode := range modes {
			p := c.sql(t, ask("--shuffle", mode, slow)...)
			c.waitBusy(t)
			begin := time.Now()
			p.signal(t, os.Interrupt)
			require.Equal(t, "manta: interrupted", p.fails(t))
			client := time.Since(begin)
			c.requireEnded(t, actors.JobStopped)
			job := time.Since(begin)
			c.waitEmpty(t)
			require.Less(t, job, slack)
			t.Logf("%s: the client ended after %v, the job after %v, the head knew of no task after %v", mode, client, job, time.Since(begin))
		}
		require.Equal(t, want, c.sql(t, ask(question)...).succeeds(t))
		c.waitEmpty(t)
	})

	t.Run("client is killed", func(t *testing.T) {
		p := c.sql(t, ask(slow)...)
		c.waitBusy(t)
		p.signal(t, os.Kill)
		require.Equal(t, -1, p.wait(t))
		c.requireEnded(t, actors.JobStopped)
		c.waitEmpty(t)
	})

	t.Run("job stop", func(t *testing.T) {
		p := c.sql(t, ask(slow)...)
		c.waitBusy(t)
		id := string(c.job(t).ID)
		require.Contains(t, start(t, t.TempDir(), "status", "--head", c.head.address).succeeds(t), id)
		start(t, t.TempDir(), "job", "stop", id, "--head", c.head.address).succeeds(t)
		require.Contains(t, p.fails(t), "stopped by manta job stop")
		c.requireEnded(t, actors.JobStopped)
		c.waitEmpty(t)
		require.Contains(t, start(t, t.TempDir(), "job", "stop", "no-such-job", "--head", c.head.address).fails(t), "no-such-job")
	})

	t.Run("shutdown", func(t *testing.T) {
		c.workers[0].stop(t)
		require.Equal(t, actors.NodeDead, c.infos(t)[c.workers[0].id].State)
		require.Equal(t, want, c.sql(t, ask(question)...).succeeds(t))
		c.head.stop(t)
		// A worker without a head says so and ends.
		require.Contains(t, c.workers[1].fails(t), c.head.address)
	})
}

// requireEnded waits until the latest job has ended, and checks how.
func (c *processes) requireEnded(t *testing.T, state actors.JobState) {
	t.Helper()
	eventually(t, func() string {
		if j := c.job(t); j.Ended.IsZero() {
			return fmt.Sprintf("%s is %s", j.ID, j.State)
		}
		return ""
	})
	require.Equal(t, state, c.job(t).State, "%+v", c.job(t))
}

func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

// TestWorkerKilled kills one worker after the other while a query runs on them: the query starts again on those that are left.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	c := startProcesses(t, 2)
	flags := append(tables(t, "lineitem", "orders"), "-o", "csv")
	want := c.sql(t, append(flags, question)...).succeeds(t)
	for i, mode := range []string{"streaming", "disk"} {
		victim := c.workers[i]
		p := c.sql(t, append(flags, "--shuffle", mode, slow)...)
		eventually(t, func() string { // not the job of the query before, which may be about to end
			if j := c.job(t); j.State != actors.JobRunning || j.Tasks == 0 || !strings.HasPrefix(j.Name, slow[:20]) {
				return fmt.Sprintf("%s is %s", j.ID, j.State)
			}
			return ""
		})
		first := c.job(t).ID
		begin := time.Now()
		victim.signal(t, os.Kill)
		eventually(t, func() string {
			if j := c.job(t); j.ID == first || j.State != actors.JobRunning {
				return fmt.Sprintf("%s is %s", j.ID, j.State)
			}
			return ""
		})
		t.Logf("%s: the query started again after %v", mode, time.Since(begin))
		require.Equal(t, actors.NodeDead, c.infos(t)[victim.id].State)
		require.Less(t, time.Since(begin), slack)
		eventually(t, func() string { // it is there until it has handed over what it keeps
			if j := c.jobNamed(t, first); j.Ended.IsZero() {
				return fmt.Sprintf("%s is %s", j.ID, j.State)
			}
			return ""
		})
		ended := c.jobNamed(t, first)
		require.Equal(t, actors.JobFailed, ended.State)
		require.Contains(t, ended.Error, string(victim.id))
		require.Contains(t, c.job(t).Name, "(restart 1)")
		c.waitBusy(t)
		p.signal(t, os.Interrupt)
		require.Equal(t, "manta: interrupted", p.fails(t))
		c.requireEnded(t, actors.JobStopped)
		c.waitEmpty(t)
		require.Contains(t, start(t, t.TempDir(), "status", "--head", c.head.address).succeeds(t), "dead")

		// The rest goes on, without the node.
		require.Equal(t, want, c.sql(t, append(flags, "--shuffle", mode, question)...).succeeds(t))
		args := append([]string{"explain", "--analyze", "--distribute", "always", "--head", c.head.address}, flags[:4]...)
		text := start(t, t.TempDir(), append(args, question)...).succeeds(t)
		require.NotContains(t, text, string(victim.id))
		for _, n := range append(c.workers[i+1:], c.head) {
			require.Contains(t, text, "on "+string(n.id)+": ")
		}
	}
	// A worker that starts again in a dead one's folder is another node, and sweeps it.
	again := startNode(t, "worker", "--head", c.head.address, "--data-dir", c.workers[1].dir)
	require.NotEqual(t, c.workers[1].id, again.id)
	again.dir = c.workers[1].dir
	c.workers = []*node{again}
	require.Equal(t, want, c.sql(t, append(flags, "--shuffle", "disk", "--partitions", "4", question)...).succeeds(t))
	c.waitEmpty(t)
	again.stop(t)
	c.head.stop(t)
}

// TestHeadKilled: nobody waits for a head that is gone.
func TestHeadKilled(t *testing.T) {
	t.Parallel()
	c := startProcesses(t, 1)
	worker := startNode(t, "worker", "--head", c.head.address, "--data-dir", "")
	c.workers = append(c.workers, worker)
	p := c.sql(t, append(tables(t, "lineitem"), slow)...)
	c.waitBusy(t)
	begin := time.Now()
	c.head.signal(t, os.Kill)
	require.NotEmpty(t, p.fails(t))
	t.Logf("the client ended after %v: %s", time.Since(begin), p.stderr())
	for _, n := range c.workers {
		require.Contains(t, n.fails(t), c.head.address)
		t.Logf("a worker ended after %v: %s", time.Since(begin), n.stderr())
		require.Empty(t, queryFiles(t, n.dir))
		requireEmptyDir(t, n.temp)
	}
}

// TestTemporaryFolders: nodes without a data folder remove what they made, at every order to end.
func TestTemporaryFolders(t *testing.T) {
	t.Parallel()
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) { // below nohup; the nodes ignore it, too
			continue
		}
		head := startNode(t, "head", "--data-dir", "", "--no-tasks")
		worker := startNode(t, "worker", "--data-dir", "", "--head", head.address, "--labels", "zone=a,disk=ssd")
		client, err := planner.Connect(context.Background(), planner.Config{Head: head.address})
		require.NoError(t, err)
		nodes, err := client.Nodes(context.Background())
		require.NoError(t, err)
		require.NoError(t, client.Close())
		for _, n := range nodes {
			if n.ID == worker.id {
				require.Equal(t, map[string]string{"zone": "a", "disk": "ssd"}, n.Labels)
			} else {
				require.Zero(t, n.CPUs, "a head that takes no tasks")
			}
		}
		for _, n := range []*node{worker, head} {
			left, err := os.ReadDir(n.temp)
			require.NoError(t, err)
			require.Len(t, left, 1)
			n.signal(t, s)
			n.succeeds(t)
			requireEmptyDir(t, n.temp)
		}
	}
}

func requireEmptyDir(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestStrangers: a wrong token and another version are refused, in clear words.
func TestStrangers(t *testing.T) {
	t.Parallel()
	head := startNode(t, "head", "--token", "open sesame")
	for _, token := range []string{"", "open barley"} {
		for _, command := range [][]string{{"sql", "SELECT 1"}, {"list", "nodes"}, {"worker", "--listen", "127.0.0.1:0"}} {
			p := start(t, t.TempDir(), append(command, "--head", head.address, "--token", token)...)
			require.Contains(t, p.fails(t), "token")
		}
	}
	worker := startNode(t, "worker", "--head", head.address, "--token", "open sesame")
	p := start(t, t.TempDir(), "sql", "--head", head.address, "--token", "open sesame", "-o", "csv", "SELECT 42 AS x")
	require.Equal(t, "x\n42\n", p.succeeds(t))
	worker.stop(t)

	// A worker of another version, and a head of another version. They are refused before they exchange
	// control messages, so a hub does: to start remoting while this process has connections is a race in gRPC's logger.
	ctx := context.Background()
	other := planner.NodeConfig{Version: "0.0.9", CPUs: 1, Hub: actors.NewHub()}
	stranger := other
	stranger.Head, stranger.Token, stranger.DataDir = head.address, "open sesame", t.TempDir()
	_, err := planner.StartNode(ctx, stranger)
	require.ErrorContains(t, err, "0.0.9")
	require.ErrorContains(t, err, actors.Version)
	head.stop(t)
	other.DataDir = t.TempDir()
	old, err := planner.StartNode(ctx, other)
	require.NoError(t, err)
	for _, command := range [][]string{{"sql", "SELECT 1"}, {"worker", "--listen", "127.0.0.1:0"}} {
		line := start(t, t.TempDir(), append(command, "--head", old.Address())...).fails(t)
		require.Contains(t, line, "0.0.9")
		require.Contains(t, line, actors.Version)
	}
	require.NoError(t, old.Close())
}

// TestReaderLeaves: a reader of the output that has seen enough is no reason for
// words, or for leaving files behind.
func TestReaderLeaves(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	temp := t.TempDir()
	p := startTo(t, out, temp, "sql", "-o", "csv", "SELECT * FROM range(100000000)")
	require.NoError(t, out.Close())
	first := make([]byte, 5)
	_, err = in.Read(first)
	require.NoError(t, err)
	require.Equal(t, "range", string(first))
	require.NoError(t, in.Close())
	require.Equal(t, exitFailure, p.wait(t))
	require.Empty(t, p.stderr())
	requireEmptyDir(t, temp)
}

// Nodes whose addresses are of IPv6 reach each other at both of their ports.
func TestIPv6(t *testing.T) {
	t.Parallel()
	if lis, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip("there is no ::1")
	} else {
		_ = lis.Close()
	}
	head := startNode(t, "head", "--listen", "[::1]:0", "--no-tasks")
	worker := startNode(t, "worker", "--listen", "[::1]:0", "--head", head.address)
	answer := start(t, t.TempDir(), "sql", "--head", head.address, "-o", "csv", "SELECT 40 + 2 AS answer").succeeds(t)
	require.Equal(t, "answer\n42\n", answer)
	worker.stop(t)
	head.stop(t)
}
