package actors

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A byte stream reaches its service, beside gRPC on the same address; what is no stream of the cluster is refused in words.
func TestStreams(t *testing.T) {
	for _, token := range []string{"", "secret"} {
		t.Run("token "+token, func(t *testing.T) { testStreams(t, token) })
	}
}

func testStreams(t *testing.T, token string) {
	n, err := Start(t.Context(), Config{DataDir: t.TempDir(), CPUs: 1, Token: token, InProcess: NewHub()})
	require.NoError(t, err)
	defer n.Close()
	ended := make(chan struct{})
	n.Streams().Handle("echo", func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
	n.Streams().Handle("hangs", func(conn net.Conn) {
		_, _ = io.Copy(io.Discard, conn)
		close(ended)
	})

	conn, err := n.Stream(t.Context(), n.ID(), "echo")
	require.NoError(t, err)
	_, err = conn.Write([]byte("ping"))
	require.NoError(t, err)
	require.NoError(t, conn.(interface{ CloseWrite() error }).CloseWrite())
	answer, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "ping", string(answer))
	require.NoError(t, conn.Close())

	grpc, err := Dial(t.Context(), n.Address(), token)
	require.NoError(t, err)
	require.NoError(t, grpc.Close())

	_, err = n.Stream(t.Context(), n.ID(), "nothing")
	require.ErrorContains(t, err, `no service "nothing"`)
	_, err = n.Stream(t.Context(), "node-unknown", "echo")
	require.ErrorIs(t, err, ErrNodeDead)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = n.Stream(cancelled, n.ID(), "echo")
	require.Error(t, err)

	// A connection that is silent, or begins like one of the cluster and is none, is closed. Others do not wait for it.
	var strangers []net.Conn
	for _, head := range []string{"", "\x00man", "\x00mantis__", "\x16", "\x16\x03\x01\x02\x00\x01\x00", "\x16" + strings.Repeat("x", 500), "P", "manta: "} {
		bad, err := net.Dial("tcp", n.Address())
		require.NoError(t, err)
		_, err = bad.Write([]byte(head))
		require.NoError(t, err)
		again, err := n.Stream(t.Context(), n.ID(), "echo")
		require.NoError(t, err)
		require.NoError(t, again.Close())
		strangers = append(strangers, bad)
	}
	for _, bad := range strangers {
		require.NoError(t, bad.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = io.Copy(io.Discard, bad)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, bad.Close())
	}

	// Closing the node ends what is open.
	hangs, err := n.Stream(t.Context(), n.ID(), "hangs")
	require.NoError(t, err)
	defer hangs.Close()
	require.NoError(t, n.Close())
	<-ended
}
