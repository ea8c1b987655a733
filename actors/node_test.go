package actors

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quick makes deaths known soon, but not those of nodes that only wait for a busy machine.
func quick(c *Config) { c.Heartbeat, c.Lease = 100*time.Millisecond, 4*time.Second }

func TestStartRefused(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	const nobody = "127.0.0.1:1" // no port that is given to anybody
	for _, test := range []struct {
		name string
		edit func(*Config)
		is   error
		text string
	}{
		{"version", func(c *Config) { c.Version = "9.9" }, ErrVersion, "this node is 9.9"},
		{"token", func(c *Config) { c.Token = "guess" }, ErrToken, "not the cluster's"},
		{"no token", func(c *Config) { c.Token = "" }, ErrToken, "wants a token"},
		{"nobody", func(c *Config) { c.Head = nobody; c.JoinTimeout = 50 * time.Millisecond }, ErrUnreachable, nobody},
		{"not the head", func(cfg *Config) { cfg.Head = c.nodes[1].Address() }, ErrNotHead, c.head.Address()},
		{"port in use", func(cfg *Config) { cfg.Listen = c.head.Address() }, ErrListen, "the port is in use"},
		{"open to all", func(c *Config) { c.Listen = "0.0.0.0:0"; c.Token = "" }, nil, "set the head's token"},
		{"open to all who guess", func(c *Config) { c.Listen = "0.0.0.0:0" }, nil, "a token of 6 characters can be guessed"},
		{"elsewhere", func(c *Config) { c.Head = "192.0.2.1:7070"; c.Token = "" }, ErrToken, "192.0.2.1:7070 is not 127.0.0.1:7070, and without a token"},
		{"bad address", func(c *Config) { c.Listen = "7070" }, nil, "is not host:port"},
		{"bad port", func(c *Config) { c.Listen = "127.0.0.1:70707" }, nil, "no valid port"},
		{"bad head", func(c *Config) { c.Head = "somewhere" }, nil, "is not host:port"},
		{"bad lease", func(c *Config) { c.Lease = time.Second; c.Heartbeat = time.Second }, nil, "at least twice"},
		{"data directory in use", func(cfg *Config) { cfg.DataDir = c.head.Config().DataDir }, nil, c.head.Config().DataDir},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := c.config(c.head.Address())
			test.edit(&cfg)
			n, err := Start(testContext(t), cfg)
			if err == nil {
				_ = n.Close()
			}
			require.ErrorContains(t, err, test.text)
			require.NotContains(t, err.Error(), "\n")
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
		})
	}
	require.Len(t, c.head.Nodes(), 2)
}

func TestDialRefused(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	ctx := testContext(t)
	conn, err := Dial(ctx, c.head.Address(), "secret")
	require.NoError(t, err)
	nodes, err := ListNodes(ctx, conn)
	require.NoError(t, err)
	require.Len(t, nodes, 2)
	require.NoError(t, conn.Close())

	_, err = Dial(ctx, c.head.Address(), "guess")
	require.ErrorIs(t, err, ErrToken)
	_, err = Dial(ctx, c.nodes[1].Address(), "secret")
	require.ErrorIs(t, err, ErrNotHead)
	_, err = Dial(ctx, "127.0.0.1:1", "secret")
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "127.0.0.1:1")

	other := newCluster(t, 0, nil, func(c *Config) { c.Version = "9.9" })
	_, err = Dial(ctx, other.head.Address(), "secret")
	require.ErrorIs(t, err, ErrVersion)
}

func TestNodesKnowEachOther(t *testing.T) {
	c := newCluster(t, 2, nil, func(c *Config) { c.Labels = map[string]string{"zone": "a"} })
	for _, n := range c.nodes {
		eventually(t, func() bool { return len(n.Nodes()) == 3 })
		for _, info := range n.Nodes() {
			require.Equal(t, NodeAlive, info.State)
			require.Equal(t, info.ID == c.head.ID(), info.Head)
			require.Equal(t, 2, info.CPUs)
			require.Equal(t, "a", info.Labels["zone"])
			conn, err := n.Conn(info.ID)
			require.NoError(t, err)
			again, err := n.Conn(info.ID)
			require.NoError(t, err)
			require.Same(t, conn, again)
		}
		_, err := n.Conn("node-nowhere")
		require.ErrorIs(t, err, ErrNodeDead)
	}
}

// A node that fell silent is dead after the lease; one that closes is dead at once.
func TestNodeDeath(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3, nil, quick)
	silent, closed, stays := c.nodes[1], c.nodes[2], c.nodes[3]
	conn, err := stays.Conn(silent.ID())
	require.NoError(t, err)

	silent.fail(errors.New("test"))
	require.NoError(t, closed.Close())
	for _, info := range c.head.Nodes() {
		if info.ID == closed.ID() {
			require.Equal(t, NodeDead, info.State)
		}
	}
	eventually(t, func() bool {
		for _, info := range c.head.Nodes() {
			if info.ID == silent.ID() {
				return info.State == NodeDead && info.Reason == "no heartbeat for 4s"
			}
		}
		return false
	})
	for _, i := range []int{0, 3} {
		for _, gone := range []*Node{silent, closed} {
			eventually(t, func() bool { return c.probe[i].sawDeath(gone.ID()) })
		}
	}
	require.Equal(t, "SHUTDOWN", conn.GetState().String())
	_, err = stays.Conn(silent.ID())
	require.ErrorIs(t, err, ErrNodeDead)
	require.ErrorContains(t, err, string(silent.ID()))
	require.NoError(t, stays.Err())
}

// A node that was declared dead while it lived stops by itself.
func TestDismissed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, map[string]TaskFunc{"block": block}, quick)
	worker := c.nodes[1]
	job := c.job()
	task, err := job.Submit(TaskSpec{Func: "block", Node: worker.ID()})
	require.NoError(t, err)
	c.head.head.leave(worker.ID(), "the operator wanted it")
	select {
	case <-worker.Done():
	case <-time.After(patience):
		t.Fatal("the node goes on")
	}
	require.ErrorIs(t, worker.Err(), ErrHeadLost)
	require.ErrorContains(t, worker.Err(), "the operator wanted it")
	_, err = task.Wait(testContext(t))
	require.ErrorIs(t, err, ErrNodeDead)
	job.Finish(err)
	c.quiet()
}

func TestHeadCloses(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1, map[string]TaskFunc{"block": block}, nil)
	job := c.job()
	task, err := job.Submit(TaskSpec{Func: "block", Node: c.nodes[1].ID()})
	require.NoError(t, err)
	require.NoError(t, c.head.Close())
	_, err = task.Wait(testContext(t))
	require.Error(t, err)
	require.Equal(t, JobStopped, job.Info().State)
	<-c.nodes[1].Done()
	require.ErrorContains(t, c.nodes[1].Err(), "has left")
	require.True(t, c.probe[1].sawEnd(job.ID()))
	_, err = c.head.NewJob(testContext(t), JobSpec{})
	require.ErrorIs(t, err, ErrClosed)
	c.quiet()
}

// A worker started before its head waits for it a little.
func TestJoinWaitsForHead(t *testing.T) {
	address := reservePort(t)
	hub := NewHub()
	type started struct {
		n   *Node
		err error
	}
	ch := make(chan started)
	go func() {
		n, err := Start(context.Background(), Config{Head: address, InProcess: hub, DataDir: t.TempDir(), JoinTimeout: patience})
		ch <- started{n, err}
	}()
	time.Sleep(100 * time.Millisecond)
	head, err := Start(testContext(t), Config{Listen: address, InProcess: hub, DataDir: t.TempDir()})
	require.NoError(t, err)
	worker := <-ch
	require.NoError(t, worker.err)
	require.NoError(t, worker.n.Close())
	require.NoError(t, head.Close())
}

// reservePort gives an address that a node can listen at, and nobody else on this machine uses meanwhile: a connection that had
// it, and is in its last wait, keeps it from being given away.
func reservePort(t *testing.T) string {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	out, err := net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	in, err := lis.Accept()
	require.NoError(t, err)
	require.NoError(t, in.Close()) // first: it waits at this address
	_, err = out.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, out.Close())
	return lis.Addr().String()
}

// A connection that never says a word does not hold up a node's end.
func TestSilentConnection(t *testing.T) {
	n, err := Start(context.Background(), Config{CPUs: 1, DataDir: t.TempDir(), InProcess: NewHub()})
	require.NoError(t, err)
	conn, err := net.Dial("tcp", n.Address())
	require.NoError(t, err)
	defer conn.Close()
	start := time.Now()
	require.NoError(t, n.Close())
	require.Less(t, time.Since(start), 30*time.Second) // it was two minutes
}
