package trust

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// processOf is a token's trust as it is in the first, the second process and so on. They are kept, because they are slow to make.
func processOf(t *testing.T, token string, i int) *Trust {
	t.Helper()
	for len(processes[token]) <= i {
		trust, err := derive(token)
		require.NoError(t, err)
		processes[token] = append(processes[token], trust)
	}
	return processes[token][i]
}

var processes = map[string][]*Trust{}

// tcp gives both ends of a connection, which ends by itself when a test hangs.
func tcp(t *testing.T) (client, server net.Conn) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	client, err = net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	server, err = lis.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	for _, c := range []net.Conn{client, server} {
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	}
	return client, server
}

// accept runs the accepting end.
func accept(trust *Trust, conn net.Conn) (c *Conn, err error) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return nil, err
	}
	return trust.Server(conn, first)
}

// pair makes a connection between two holders of one token.
func pair(t *testing.T) (client, server *Conn) {
	t.Helper()
	rawClient, rawServer := tcp(t)
	mine, same := processOf(t, "mine", 0), processOf(t, "mine", 1)
	accepted := make(chan error, 1)
	go func() {
		var err error
		server, err = accept(same, rawServer)
		accepted <- err
	}()
	client, err := mine.Client(rawClient)
	require.NoError(t, err)
	require.NoError(t, <-accepted)
	return client, server
}

func TestOf(t *testing.T) {
	none, err := Of("")
	require.NoError(t, err)
	require.Nil(t, none)
	one, err := Of("one")
	require.NoError(t, err)
	again, err := Of("one")
	require.NoError(t, err)
	require.Same(t, one, again)
	other, err := Of("other")
	require.NoError(t, err)
	require.NotSame(t, one, other)
	require.GreaterOrEqual(t, len(NewToken()), MinToken)
	require.NotEqual(t, NewToken(), NewToken())
}

// Every process derives the same authority, byte for byte, and no other token gives it.
func TestAuthority(t *testing.T) {
	a, b := processOf(t, "mine", 0), processOf(t, "mine", 1)
	require.True(t, a.grpc.RootCAs.Equal(b.grpc.RootCAs))
	require.NotEqual(t, a.grpc.Certificates[0].Certificate, b.grpc.Certificates[0].Certificate, "the keys of processes are their own")
	require.False(t, a.grpc.RootCAs.Equal(processOf(t, "minf", 0).grpc.RootCAs))
}

// The end that connects learns what is wrong, and has said nothing by then.
func TestClientRefuses(t *testing.T) {
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	web, https := httptest.NewUnstartedServer(ok), httptest.NewUnstartedServer(ok)
	https.Config.ErrorLog = log.New(io.Discard, "", 0)
	web.Start()
	defer web.Close()
	https.StartTLS()
	defer https.Close()
	old := httptest.NewUnstartedServer(ok)
	old.Config.ErrorLog, old.TLS = https.Config.ErrorLog, &tls.Config{MaxVersion: tls.VersionTLS12}
	old.StartTLS()
	defer old.Close()
	dial := func(s *httptest.Server) net.Conn {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
		return conn
	}
	mine, theirs := processOf(t, "mine", 0), processOf(t, "theirs", 0)
	_, err := mine.Client(dial(web))
	require.ErrorIs(t, err, ErrForeign)
	_, err = mine.Client(dial(https))
	require.ErrorIs(t, err, ErrForeign)
	_, err = mine.Client(dial(old))
	require.ErrorIs(t, err, ErrForeign)

	client, server := tcp(t)
	served := make(chan error, 1)
	go func() {
		_, err := accept(theirs, server)
		served <- err
	}()
	_, err = mine.Client(client)
	require.ErrorIs(t, err, ErrOther)
	require.ErrorContains(t, <-served, "bad certificate")

	client, server = tcp(t)
	go func() { _, _ = server.Write((*Trust)(nil).Refusal()) }()
	_, err = mine.Client(client)
	require.ErrorIs(t, err, ErrNone)
}

// The end that accepts believes nobody who has not the token, whatever he believes himself.
func TestServerRefuses(t *testing.T) {
	mine, theirs := processOf(t, "mine", 0), processOf(t, "theirs", 0)
	blind := theirs.stream.Clone()
	blind.InsecureSkipVerify = true
	nameless := blind.Clone()
	nameless.Certificates = nil
	old := mine.stream.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	for _, test := range []struct {
		name   string
		config *tls.Config
	}{{"another token", blind}, {"no certificate", nameless}, {"an old version", old}} {
		t.Run(test.name, func(t *testing.T) {
			client, server := tcp(t)
			got := make(chan []byte, 1)
			go func() {
				stranger := tls.Client(client, test.config)
				_, _ = stranger.Write([]byte("hello"))
				answer, _ := io.ReadAll(stranger)
				got <- answer
			}()
			_, err := accept(mine, server)
			require.Error(t, err)
			require.NoError(t, server.Close())
			require.Empty(t, <-got)
		})
	}
}

// What no holder of the token says ends the handshake, or the deadline does.
func TestGarbage(t *testing.T) {
	for _, words := range []string{"\x16", "\x16\x03\x01\x02\x00\x01\x00", "\x16" + strings.Repeat("x", 1000), "\x16\x03\x03\xff\xff" + strings.Repeat("\x00", 70000)} {
		client, server := tcp(t)
		require.NoError(t, server.SetDeadline(time.Now().Add(200*time.Millisecond)))
		go func() { _, _ = client.Write([]byte(words)) }()
		_, err := accept(processOf(t, "mine", 0), server)
		require.Error(t, err)
	}
}

func TestRefusal(t *testing.T) {
	secret := processOf(t, "mine", 0)
	var plain *Trust
	for _, trust := range []*Trust{secret, plain} {
		words := trust.Refusal()
		for n := 2; n <= len(words); n++ {
			require.True(t, IsRefusal(words[:n]))
		}
		// Neither side takes it for the beginning of what it waits for.
		require.False(t, secret.Begins(words[0]))
		require.NotEqual(t, byte(0), words[0])
		require.NotEqual(t, byte('P'), words[0])
	}
	require.False(t, IsRefusal([]byte{0, 0}))
	require.False(t, IsRefusal([]byte("HTTP/")))
	require.True(t, secret.Begins(22))
	require.False(t, plain.Begins(22))
	require.True(t, plain.Begins('P'))
	require.True(t, plain.Begins(0))
	require.False(t, errors.Is(ErrNone, ErrWanted))
}
