package actors

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors/internal/trust"
	"manta/actors/internal/wire"
)

func trustOf(t *testing.T, token string) *trust.Trust {
	t.Helper()
	of, err := trust.Of(token)
	require.NoError(t, err)
	return of
}

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

func (w *wiretap) passed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen.Len()
}

// tap puts a proxy before an address.
func tap(t *testing.T, to string) *wiretap {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wiretap{address: lis.Addr().String()}
	var running sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = lis.Close()
		running.Wait()
	})
	pass := func(from, into net.Conn) {
		_, _ = io.Copy(io.MultiWriter(into, w), from)
		_ = into.(*net.TCPConn).CloseWrite()
	}
	running.Go(func() {
		for {
			in, err := lis.Accept()
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

// Neither the token nor what is said can be read on the way: a byte stream, a call, a worker that joins. Without a token all of
// it can, so the proxy would see it.
func TestNothingReadable(t *testing.T) {
	const marker = "a value that nobody should read"
	for _, token := range []string{"", "the token of the test"} {
		n, err := Start(t.Context(), Config{DataDir: t.TempDir(), CPUs: 1, Token: token, InProcess: NewHub(), JoinTimeout: patience})
		require.NoError(t, err)
		defer n.Close()
		n.Streams().Handle("echo", func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
		readable := token == ""

		stream := tap(t, n.Address())
		conn, err := dialBulk(t.Context(), stream.address, "echo", n.trust)
		require.NoError(t, err)
		_, err = conn.Write([]byte(marker))
		require.NoError(t, err)
		echoed := make([]byte, len(marker))
		_, err = io.ReadFull(conn, echoed)
		require.NoError(t, err)
		require.Equal(t, marker, string(echoed))
		require.NoError(t, conn.Close())

		calls := tap(t, n.Address())
		client, err := Dial(t.Context(), calls.address, token)
		require.NoError(t, err)
		require.ErrorContains(t, StopJob(t.Context(), client, marker, ""), marker)
		require.NoError(t, client.Close())

		joins := tap(t, n.Address())
		worker, err := Start(t.Context(), Config{
			DataDir: t.TempDir(), CPUs: 1, Token: token, InProcess: NewHub(), Head: joins.address, Labels: map[string]string{"place": marker},
		})
		require.NoError(t, err)
		require.NoError(t, worker.Close())

		for _, w := range []*wiretap{stream, calls, joins} {
			require.Greater(t, w.passed(), len(marker))
			require.Equal(t, readable, w.saw(marker))
			require.False(t, token != "" && w.saw(token))
		}
	}
}

// impostor takes connections like a head of a cluster with that token would, and keeps what it can read of them.
func impostor(t *testing.T, token string) (address string, heard *wiretap) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	heard = &wiretap{}
	of := trustOf(t, token)
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = lis.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				if secret, err := of.Server(conn, nil); err == nil {
					_, _ = io.Copy(heard, secret)
				}
			})
		}
	})
	return lis.Addr().String(), heard
}

// Who has another token learns nothing, at whichever end of a connection he is.
func TestImpostors(t *testing.T) {
	address, heard := impostor(t, "the impostor's")
	_, err := Dial(testContext(t), address, "secret")
	require.ErrorIs(t, err, ErrToken)
	_, err = Start(testContext(t), Config{DataDir: t.TempDir(), CPUs: 1, Token: "secret", InProcess: NewHub(), Head: address, JoinTimeout: patience})
	require.ErrorIs(t, err, ErrToken)
	_, err = dialBulk(testContext(t), address, "echo", trustOf(t, "secret"))
	require.ErrorIs(t, err, trust.ErrOther)
	require.Zero(t, heard.passed())

	// One that the same clients would have talked to.
	address, heard = impostor(t, "secret")
	ctx, cancel := context.WithCancel(testContext(t))
	dialed := make(chan error)
	go func() {
		_, err := Dial(ctx, address, "secret")
		dialed <- err
	}()
	eventually(t, func() bool { return heard.passed() > 0 })
	cancel()
	require.Error(t, <-dialed)
}

// Each combination of tokens has its words, for clients and for workers.
func TestTokenErrors(t *testing.T) {
	start := func(token string) *Node {
		n, err := Start(t.Context(), Config{DataDir: t.TempDir(), CPUs: 1, Token: token, InProcess: NewHub()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = n.Close() })
		return n
	}
	plain, secret := start(""), start("secret")
	foreign, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer foreign.Close()
	go func() {
		for {
			conn, err := foreign.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
			_ = conn.(*net.TCPConn).CloseWrite()
			_ = conn.SetDeadline(time.Now().Add(time.Second))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	for _, test := range []struct {
		name, address, token string
		is                   error
		text                 string
	}{
		{"another token", secret.Address(), "guess", ErrToken, "wrong token for " + secret.Address() + ": the token is not the cluster's"},
		{"no token", secret.Address(), "", ErrToken, "wrong token for " + secret.Address() + ": the cluster wants a token"},
		{"a token too many", plain.Address(), "guess", ErrToken, "wrong token for " + plain.Address() + ": the cluster has no token"},
		{"no token for another machine", "192.0.2.1:7070", "", ErrToken, "wrong token: 192.0.2.1:7070 is not 127.0.0.1:7070, and without a token no other is reached"},
		{"something else", foreign.Addr().String(), "guess", ErrNotHead, "something else than Manta is at " + foreign.Addr().String()},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Dial(testContext(t), test.address, test.token)
			require.ErrorIs(t, err, test.is)
			require.ErrorContains(t, err, test.text)
			n, err := Start(testContext(t), Config{
				DataDir: t.TempDir(), CPUs: 1, Token: test.token, InProcess: NewHub(), Head: test.address, JoinTimeout: patience,
			})
			if err == nil {
				_ = n.Close()
			}
			require.ErrorIs(t, err, test.is)
			require.ErrorContains(t, err, "join the cluster: ")
			require.ErrorContains(t, err, test.text)
		})
	}
}

// A head that strangers reach, and that is given no token, makes one and keeps it.
func TestHeadMakesToken(t *testing.T) {
	dir := t.TempDir()
	head := func() (*Node, error) {
		return Start(testContext(t), Config{DataDir: dir, CPUs: 1, Listen: "0.0.0.0:0", InProcess: NewHub()})
	}
	n, err := head()
	require.NoError(t, err)
	file := filepath.Join(dir, "token")
	require.Equal(t, file, n.TokenFile())
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	token := strings.TrimSpace(string(text))
	require.Equal(t, token, n.Config().Token)
	require.NotContains(t, n.cfg.String(), token)
	_, port, err := net.SplitHostPort(n.Address())
	require.NoError(t, err)
	_, err = Dial(testContext(t), net.JoinHostPort("127.0.0.1", port), "")
	require.ErrorIs(t, err, ErrToken)
	conn, err := Dial(testContext(t), n.Address(), " "+token+"\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.NoError(t, n.Close())

	n, err = head()
	require.NoError(t, err)
	require.Equal(t, token, n.Config().Token)
	require.NoError(t, n.Close())

	require.NoError(t, os.Chmod(file, 0o640))
	_, err = head()
	require.ErrorContains(t, err, "others may read "+file)
	require.NoError(t, os.Chmod(file, 0o600))

	require.NoError(t, os.WriteFile(file, []byte("short\n"), 0o600))
	_, err = head()
	require.ErrorContains(t, err, "remove the file")

	// What somebody has prepared for the token to be written to is not written to.
	require.NoError(t, os.Remove(file))
	trap := filepath.Join(t.TempDir(), "trap")
	require.NoError(t, os.WriteFile(trap, nil, 0o666))
	require.NoError(t, os.Symlink(trap, file+".part"))
	n, err = head()
	require.NoError(t, err)
	require.NoError(t, n.Close())
	info, err = os.Lstat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	text, err = os.ReadFile(trap)
	require.NoError(t, err)
	require.Empty(t, text)

	local, err := Start(testContext(t), Config{DataDir: dir, CPUs: 1, InProcess: NewHub()})
	require.NoError(t, err)
	require.Empty(t, local.TokenFile())
	require.Empty(t, local.Config().Token)
	require.NoError(t, local.Close())
}

// What never gets through the handshake is let go, at both ports of a process, and a node that ends does not wait for it.
func TestStrangersGo(t *testing.T) {
	t.Parallel()
	head := startProcess(t, "head")
	control := head.nodes()[head.id].control
	require.NotEmpty(t, control)
	open := map[string]net.Conn{}
	for _, address := range []string{head.address, control} {
		for _, words := range []string{"", "\x16", "\x16\x03\x01\x02\x00\x01\x00", "\x00manta\x00\x01", "GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"} {
			conn, err := net.Dial("tcp", address)
			require.NoError(t, err)
			defer conn.Close()
			_, err = conn.Write([]byte(words))
			require.NoError(t, err)
			open[fmt.Sprintf("%q at %s", words, address)] = conn
		}
		// Plain gRPC gets no answer from any method.
		plain, err := newClient(address, nil)
		require.NoError(t, err)
		_, err = wire.NewHeadClient(plain).Ping(testContext(t), &wire.PingRequest{Version: Version})
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.NoError(t, plain.Close())
	}
	for who, conn := range open {
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
		_, err := io.Copy(io.Discard, conn)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, who)
	}
	head.quit() // it looks for goroutines that are left
}
