package shuffle

import (
	"context"
	"fmt"
	"net"

	"manta/actors"
)

// dial opens a connection to a service of another node's data plane. It ends with ctx.
func (s *Service) dial(ctx context.Context, node actors.NodeID, service string) (*wire, error) {
	conn, err := s.node.Stream(ctx, node, service)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	context.AfterFunc(ctx, w.close)
	if err := w.send(outgoing{f: frame{kind: frameHello}, text: []byte(s.node.ID())}); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// accept makes a handler of connections that other nodes open. serve ends when the wire is closed, which happens when that
// node is dead or this one closes.
func (s *Service) accept(serve func(*wire, actors.NodeID)) func(net.Conn) {
	return func(conn net.Conn) {
		w := newWire(conn)
		defer w.close()
		if !s.begin() {
			return
		}
		defer s.running.Done()
		stop := context.AfterFunc(s.ctx, w.close)
		defer stop()
		from, err := w.hello()
		if err == nil {
			err = s.remember(w, from)
		}
		if err != nil {
			w.refuse(err)
			return
		}
		defer s.forget(w)
		serve(w, from)
	}
}

// hello reads the first frame, which says whose the connection is.
func (w *wire) hello() (actors.NodeID, error) {
	f, err := w.recv()
	if err != nil {
		return "", err
	}
	if f.kind != frameHello {
		return "", fmt.Errorf("%w: kind %d before hello", errFrame, f.kind)
	}
	text, err := w.text(256)
	return actors.NodeID(text), err
}

// begin counts one more in running, unless the service is closed. Its end is running.Done.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// remember lets NodeDead find the connection.
func (s *Service) remember(w *wire, from actors.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason, ok := s.dead[from]; ok {
		return fmt.Errorf("shuffle: node %s: %w (%s)", from, actors.ErrNodeDead, reason)
	}
	s.wires[w] = from
	return nil
}

func (s *Service) forget(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wires, w)
}

// serveLink receives the streaming channels of one node.
func (s *Service) serveLink(w *wire, from actors.NodeID) {
	(&inbound{s: s, wire: w, from: from, answers: newAnswers()}).run()
}
