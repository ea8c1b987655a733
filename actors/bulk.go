package actors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"manta/actors/internal/trust"
)

// Connections for bulk. A node's address serves two protocols: gRPC, and plain byte streams for services that move more
// than gRPC passes on with the same processor time. Whichever a connection speaks shows in its first bytes. A byte stream begins
// with a preface:
//
//	bulkMagic, service (length u16, bytes)
//
// and the answer is a length u16 and as many bytes: why the node does not want it, or nothing. From there on it is the service's.
//
// In a cluster with a token all of it is inside TLS, which this side of gRPC sets up (package trust). Before that nothing that a
// connection says gets any further.

// bulkMagic cannot begin an HTTP/2 connection, whose first byte is P.
var bulkMagic = []byte("\x00manta\x00\x01")

// Streams is how services accept byte streams from other nodes.
type Streams struct {
	mu    sync.Mutex
	serve map[string]func(net.Conn) // guarded by mu
}

// Handle has the service of that name serve connections, from now on. serve runs on a goroutine of its own for each and
// ends when it is closed; the connection is closed when serve returns.
func (s *Streams) Handle(service string, serve func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serve == nil {
		s.serve = map[string]func(net.Conn){}
	}
	s.serve[service] = serve
}

func (s *Streams) find(service string) func(net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.serve[service]
}

// Streams accepts byte streams from other nodes; services register in it.
func (n *Node) Streams() *Streams { return &n.streams }

// Stream opens a byte stream to a service of another node. The caller closes it, and must when the node dies. ctx bounds
// the opening alone.
func (n *Node) Stream(ctx context.Context, id NodeID, service string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	info, err := n.find(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := dialBulk(ctx, info.Address, service, n.trust)
	if err != nil {
		return nil, fmt.Errorf("actors: node %s at %s: %w", id, info.Address, cmp.Or(notTrusted(info.Address, err), err))
	}
	return conn, nil
}

func dialBulk(ctx context.Context, address, service string, t *trust.Trust) (net.Conn, error) {
	if err := staysHere(address, t); err != nil {
		return nil, err
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Now()) })
	conn, err := greet(raw, service, t)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// greet makes sure of the other end, sends the preface and reads the answer.
func greet(conn net.Conn, service string, t *trust.Trust) (net.Conn, error) {
	if t != nil {
		secret, err := t.Client(conn)
		if err != nil {
			return nil, err
		}
		conn = secret
	}
	if _, err := conn.Write(appendText(bytes.Clone(bulkMagic), service)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	if trust.IsRefusal(size[:]) { // as a length it would be larger than any
		return nil, trust.ErrWanted
	}
	refusal, err := readSized(conn, size)
	if err == nil && refusal != "" {
		err = errors.New(refusal)
	}
	return conn, err
}

// notTrusted says in this package's words that the other end is not of the cluster; nil if that is not what an error says.
func notTrusted(address string, err error) error {
	switch {
	case errors.Is(err, trust.ErrForeign):
		return fmt.Errorf("%w: something else than Manta is at %s", ErrNotHead, address)
	case errors.Is(err, trust.ErrOther), errors.Is(err, trust.ErrWanted), errors.Is(err, trust.ErrNone):
		return fmt.Errorf("%w for %s: %w", ErrToken, address, err)
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func readText(r io.Reader) (string, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return "", err
	}
	return readSized(r, size)
}

func readSized(r io.Reader, size [2]byte) (string, error) {
	text := make([]byte, binary.LittleEndian.Uint16(size[:]))
	_, err := io.ReadFull(r, text)
	return string(text), err
}

// bulkListener gives gRPC the connections that speak it, and serves the others.
type bulkListener struct {
	net.Listener
	streams *Streams
	trust   *trust.Trust
	grpc    chan accepted
	closed  chan struct{}
	running sync.WaitGroup

	mu    sync.Mutex
	open  map[net.Conn]struct{} // guarded by mu; not handed to gRPC
	ended bool                  // guarded by mu
}

type accepted struct {
	conn net.Conn
	err  error
}

// newBulkListener takes over lis. Close it, then wait for it.
func newBulkListener(lis net.Listener, streams *Streams, t *trust.Trust) *bulkListener {
	l := &bulkListener{
		Listener: lis, streams: streams, trust: t,
		grpc: make(chan accepted), closed: make(chan struct{}), open: map[net.Conn]struct{}{},
	}
	l.running.Go(l.run)
	return l
}

// run accepts. gRPC deals with errors: after one it may wait before it accepts again.
func (l *bulkListener) run() {
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			l.running.Go(func() { l.sort(conn) })
			continue
		}
		if !l.pass(accepted{err: err}) {
			return
		}
	}
}

func (l *bulkListener) pass(a accepted) bool {
	select {
	case l.grpc <- a:
		return true
	case <-l.closed:
		return false
	}
}

// Accept returns the next connection that does not begin with a preface.
func (l *bulkListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.grpc:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the byte streams that are open, too.
func (l *bulkListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	l.ended = true
	close(l.closed)
	for conn := range l.open {
		_ = conn.Close()
	}
	return l.Listener.Close()
}

// wait returns once everything that served a connection has ended.
func (l *bulkListener) wait() { l.running.Wait() }

// hold keeps a connection where Close finds it.
func (l *bulkListener) hold(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.open[conn] = struct{}{}
	}
	return !l.ended
}

func (l *bulkListener) drop(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, conn)
}

// sort gives a new connection to whom it is for. What is silent, or no connection of the cluster, is closed.
func (l *bulkListener) sort(raw net.Conn) {
	if !l.hold(raw) {
		_ = raw.Close()
		return
	}
	defer l.drop(raw)
	_ = raw.SetDeadline(time.Now().Add(helloTimeout))
	conn, first, err := l.admit(raw)
	if err != nil {
		_ = raw.Close()
		return
	}
	if first == bulkMagic[0] {
		rest := make([]byte, len(bulkMagic)-1)
		if _, err := io.ReadFull(conn, rest); err == nil && bytes.Equal(rest, bulkMagic[1:]) {
			l.serve(conn)
		}
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if !l.pass(accepted{conn: &peeked{Conn: conn, head: []byte{first}}}) {
		_ = conn.Close()
	}
}

// admit lets a connection in that has the cluster's token, if there is one. It returns what is inside of TLS, and its first byte.
func (l *bulkListener) admit(conn net.Conn) (_ net.Conn, first byte, err error) {
	var b [1]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return nil, 0, err
	}
	switch {
	case !l.trust.Begins(b[0]):
		turnAway(conn, l.trust.Refusal())
		return nil, 0, ErrToken
	case l.trust == nil:
		return conn, b[0], nil
	}
	secret, err := l.trust.Server(conn, b[:])
	if err != nil {
		return nil, 0, err
	}
	var inside [1]byte
	if _, err := io.ReadFull(secret, inside[:]); err != nil {
		return nil, 0, err
	}
	return secret, inside[0], nil
}

// turnAway says why, and reads on for a moment: what lies unread when a connection is closed can take the words with it.
func turnAway(conn net.Conn, words []byte) {
	if _, err := conn.Write(words); err != nil {
		return
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, conn, 64<<10)
	}
}

// serve reads the rest of the preface, answers, and runs the service.
func (l *bulkListener) serve(conn net.Conn) {
	service, err := readText(conn)
	if err != nil {
		return
	}
	refusal := ""
	serve := l.streams.find(service)
	if serve == nil {
		refusal = fmt.Sprintf("no service %q", service)
	}
	if _, err := conn.Write(appendText(nil, refusal)); err != nil || refusal != "" {
		return
	}
	_ = conn.SetDeadline(time.Time{})
	serve(conn)
}

// peeked is a connection whose first bytes were read already.
type peeked struct {
	net.Conn
	head []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.head) > 0 {
		n := copy(b, p.head)
		p.head = p.head[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}
