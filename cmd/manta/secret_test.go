package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner"
)

// wiretap is a proxy that keeps what passes.
type wiretap struct {
	address string

	mu   sync.Mutex
	seen bytes.Buffer // guarded by mu
}

func (w *wiretap) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Write(b)
}

func (w *wiretap) saw(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Contains(w.seen.Bytes(), []byte(text))
}

// tap puts a proxy before an address.
func tap(t *testing.T, to string) *wiretap {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wiretap{address: listener.Addr().String()}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		running.Wait()
	})
	pass := func(from, into net.Conn) {
		_, _ = io.Copy(io.MultiWriter(into, w), from)
		_ = into.(*net.TCPConn).CloseWrite()
	}
	running.Go(func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			context.AfterFunc(ctx, func() { _, _ = in.Close(), out.Close() })
			running.Go(func() { pass(in, out) })
			running.Go(func() { pass(out, in) })
		}
	})
	return w
}

// TestSecretCluster: a cluster that other machines could reach works as any does, with a token that its head makes, and
// on the way between its processes nothing can be read. A plain one shows that the proxies would have seen it.
func TestSecretCluster(t *testing.T) {
	t.Parallel()
	const marker = "a value that nobody should read"
	ask := func(head *wiretap, args ...string) string {
		args = append([]string{"sql", "--head", head.address, "-o", "csv"}, args...)
		return start(t, t.TempDir(), args...).succeeds(t)
	}
	markerQuery := "SELECT '" + strings.ToUpper(marker) + "' AS word, lower(word) AS secret"
	markerAnswer := "word,secret\n" + strings.ToUpper(marker) + "," + marker + "\n"

	plain := startNode(t, "head")
	seen := tap(t, plain.address)
	require.Equal(t, markerAnswer, ask(seen, markerQuery))
	require.True(t, seen.saw(marker))
	plain.stop(t)
	given := startNode(t, "head", "--token", "a token of the user's")
	eventually(t, func() string {
		if !strings.Contains(given.stdout(), "its token is the one in MANTA_TOKEN or --token\n") {
			return given.stdout()
		}
		return ""
	})
	given.stop(t)

	head := startNode(t, "head", "--listen", "0.0.0.0:0")
	file := filepath.Join(head.dir, "token")
	eventually(t, func() string {
		if !strings.Contains(head.stdout(), "its token is in "+file+": workers and clients need it in MANTA_TOKEN\n") {
			return head.stdout()
		}
		return ""
	})
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	token := strings.TrimSpace(string(text))
	toHead := tap(t, head.address)
	c := &processes{head: head}
	for range 2 {
		c.workers = append(c.workers, startNode(t, "worker", "--listen", "0.0.0.0:0", "--head", toHead.address, "--token", token))
	}
	c.client, err = planner.Connect(context.Background(), planner.Config{Head: toHead.address, Token: token})
	require.NoError(t, err)
	defer c.client.Close()

	require.Equal(t, markerAnswer, ask(toHead, "--token", token, markerQuery))
	query := append(append([]string{"--token", token}, tables(t, "lineitem", "orders")...), "--distribute", "always", question)
	want := start(t, t.TempDir(), append(append([]string{"sql", "-o", "csv"}, tables(t, "lineitem", "orders")...), question)...).succeeds(t)
	for _, mode := range modes {
		require.Equal(t, want, ask(toHead, append(query, "--shuffle", mode)...), mode)
		c.waitEmpty(t)
	}
	for _, secret := range []string{marker, strings.ToUpper(marker), token, "1-URGENT", "o_orderpriority"} {
		require.False(t, toHead.saw(secret), secret)
	}
	for _, n := range c.nodes() {
		require.NotContains(t, n.stdout()+n.stderr(), token)
	}

	// Who has no token, or another one, is told so, and is no member.
	for _, wrong := range [][]string{nil, {"--token", strings.Repeat("guess", 8)}} {
		for _, command := range [][]string{{"sql", "SELECT 1"}, {"status"}, {"worker", "--listen", "127.0.0.1:0"}} {
			line := start(t, t.TempDir(), append(append(command, "--head", head.address), wrong...)...).fails(t)
			require.Contains(t, line, "wrong token")
			require.Contains(t, line, head.address)
		}
	}
	require.Len(t, c.infos(t), 3)
	for _, n := range append(c.workers, head) {
		n.stop(t)
	}
}
