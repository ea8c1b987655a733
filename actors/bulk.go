package actors

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Connections for bulk. A node's address serves two protocols: gRPC, and plain byte streams for services that move more
// than gRPC passes on with the same processor time. Whichever a connection speaks shows in its first bytes. A byte stream begins
// with a preface:
//
//	bulkMagic, service (length u16, bytes), token (length u16, bytes)
//
// and the answer is a length u16 and as many bytes: why the node does not want it, or nothing. From there on it is the service's.

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
	conn, err := dialBulk(ctx, info.Address, service, n.cfg.Token)
	if err != nil {
		return nil, fmt.Errorf("actors: node %s at %s: %w", id, info.Address, err)
	}
	return conn, nil
}

func dialBulk(ctx context.Context, address, service, token string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	err = greet(conn, service, token)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// greet sends the preface and reads the answer.
func greet(conn net.Conn, service, token string) error {
	hello := bytes.Clone(bulkMagic)
	hello = appendText(hello, service)
	hello = appendText(hello, token)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	refusal, err := readText(conn)
	switch {
	case err != nil:
		return err
	case refusal == tokenRefusal:
		return ErrToken
	case refusal != "":
		return errors.New(refusal)
	}
	return nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(s))), s...)
}

func readText(r io.Reader) (string, error) {
	var n [2]byte
	if _, err := io.ReadFull(r, n[:]); err != nil {
		return "", err
	}
	text := make([]byte, binary.LittleEndian.Uint16(n[:]))
	_, err := io.ReadFull(r, text)
	return string(text), err
}

const tokenRefusal = "the token is not the cluster's"

// bulkListener gives gRPC the connections that speak it, and serves the others.
type bulkListener struct {
	net.Listener
	streams *Streams
	token   string
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
func newBulkListener(lis net.Listener, streams *Streams, token string) *bulkListener {
	l := &bulkListener{
		Listener: lis, streams: streams, token: token,
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

// sort gives a new connection to whom it is for. A silent one is closed.
func (l *bulkListener) sort(conn net.Conn) {
	if !l.hold(conn) {
		_ = conn.Close()
		return
	}
	defer l.drop(conn)
	_ = conn.SetDeadline(time.Now().Add(helloTimeout))
	head := make([]byte, len(bulkMagic))
	if _, err := io.ReadFull(conn, head[:1]); err != nil {
		_ = conn.Close()
		return
	}
	if head[0] == bulkMagic[0] {
		if _, err := io.ReadFull(conn, head[1:]); err == nil && bytes.Equal(head, bulkMagic) {
			l.serve(conn)
		}
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	if !l.pass(accepted{conn: &peeked{Conn: conn, head: head[:1]}}) {
		_ = conn.Close()
	}
}

// serve reads the rest of the preface, answers, and runs the service.
func (l *bulkListener) serve(conn net.Conn) {
	service, err := readText(conn)
	if err != nil {
		return
	}
	token, err := readText(conn)
	if err != nil {
		return
	}
	refusal := ""
	serve := l.streams.find(service)
	switch {
	case l.token != "" && !sameToken(l.token, token):
		refusal = tokenRefusal
	case serve == nil:
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
