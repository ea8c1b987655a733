package actors

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors/internal/wire"
)

// member is a worker's side of membership: it joins, keeps the lease and learns
// of the other nodes.
type member struct {
	n         *Node
	conn      *grpc.ClientConn
	head      NodeID        // set by join
	heartbeat time.Duration // set by join
	lease     time.Duration // set by join
	poke      chan struct{} // capacity 1: beat now

	mu      sync.Mutex
	waiters []chan struct{} // guarded by mu; closed after the next heartbeat
}

func newMember(n *Node) (*member, error) {
	conn, err := newClient(n.cfg.Head, n.trust)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return &member{n: n, conn: conn, poke: make(chan struct{}, 1)}, nil
}

// join makes the node a member. While nobody answers it tries again: head and
// workers are often started together.
func (m *member) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.n.cfg.JoinTimeout)
	defer cancel()
	request := &wire.JoinRequest{Node: nodeToWire(m.n.Info())}
	for {
		reply, err := wire.NewHeadClient(m.conn).Join(ctx, request)
		if err == nil {
			m.head = NodeID(reply.Head)
			m.heartbeat = time.Duration(reply.HeartbeatMs) * time.Millisecond
			m.lease = time.Duration(reply.LeaseMs) * time.Millisecond
			m.apply(reply.Version, reply.Nodes)
			return nil
		}
		if status.Code(err) == codes.DeadlineExceeded {
			return fmt.Errorf("join the cluster: %w at %s", ErrUnreachable, m.n.cfg.Head)
		}
		if err = because(ctx, m.n.cfg.Head, m.n.trust, err); !errors.Is(err, ErrUnreachable) {
			return fmt.Errorf("join the cluster: %w", err)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("join the cluster: %w", err)
		}
	}
}

// run keeps the lease until the node ends. A node that cannot keep it fails.
func (m *member) run() {
	renewed := time.Now()
	timer := time.NewTimer(m.heartbeat)
	defer timer.Stop()
	for {
		select {
		case <-m.n.ctx.Done():
			return
		case <-m.poke:
		case <-timer.C:
		}
		m.mu.Lock()
		waiters := m.waiters
		m.waiters = nil
		m.mu.Unlock()

		begun := time.Now()
		over := begun.Sub(renewed) > m.lease
		err := m.beat(over)
		for _, w := range waiters {
			close(w)
		}
		pause := m.heartbeat
		switch {
		case err == nil:
			renewed = begun
		case m.n.ctx.Err() != nil:
			return
		case status.Code(err) == codes.Aborted:
			m.n.fail(fmt.Errorf("%w: the head at %s has dismissed this node: %w", ErrHeadLost, m.n.cfg.Head, fromStatus(m.n.cfg.Head, err)))
			return
		case over:
			m.n.fail(fmt.Errorf("%w: the head at %s did not answer for %v", ErrHeadLost, m.n.cfg.Head, m.lease))
			return
		case time.Since(renewed) > m.lease: // maybe this process was stopped, and not the head silent: ask once more
			pause = 0
		default:
			pause = m.heartbeat / 4
		}
		m.n.control.expire()
		timer.Reset(pause)
	}
}

// jobsHere lists the jobs of which this node has something.
func (n *Node) jobsHere() []string {
	here := map[string]struct{}{}
	for _, id := range n.engine.jobs() {
		here[id] = struct{}{}
	}
	for _, s := range n.cfg.Services {
		if s, ok := s.(JobHolder); ok {
			for _, id := range s.JobsHere() {
				here[string(id)] = struct{}{}
			}
		}
	}
	return slices.Collect(maps.Keys(here))
}

// beat sends one heartbeat; the last one waits for a connection to come back. It takes the list of nodes if there is a newer one, and ends
// jobs of which the end was missed.
func (m *member) beat(last bool) error {
	ctx, cancel := context.WithTimeout(m.n.ctx, m.heartbeat)
	defer cancel()
	running, waiting := m.n.runner.counts()
	reply, err := wire.NewHeadClient(m.conn).Heartbeat(ctx, &wire.HeartbeatRequest{
		Node: string(m.n.id), Version: m.n.peers.listVersion(),
		RunningTasks: int32(running), WaitingTasks: int32(waiting), Jobs: m.n.jobsHere(),
	}, grpc.WaitForReady(last))
	if err != nil {
		return err
	}
	m.n.runner.missed(reply.Ended)
	if len(reply.Nodes) > 0 {
		m.apply(reply.Version, reply.Nodes)
	}
	return nil
}

func (m *member) apply(version uint64, nodes []*wire.NodeInfo) {
	list := make([]NodeInfo, 0, len(nodes))
	for _, w := range nodes {
		list = append(list, nodeFromWire(w))
	}
	m.n.applyNodes(version, list)
}

// soon asks for a heartbeat now.
func (m *member) soon() {
	select {
	case m.poke <- struct{}{}:
	default:
	}
}

// refresh waits for a heartbeat that begins after the call.
func (m *member) refresh(ctx context.Context) error {
	done := make(chan struct{})
	m.mu.Lock()
	m.waiters = append(m.waiters, done)
	m.mu.Unlock()
	m.soon()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return asked(ctx, m.head, "membership")
	case <-m.n.ctx.Done():
		return ErrClosed
	}
}

// leave tells the head that the node goes, as well as that can be done.
func (m *member) leave(reason string) {
	ctx, cancel := context.WithTimeout(context.Background(), m.lease)
	defer cancel()
	_, err := wire.NewHeadClient(m.conn).Leave(ctx, &wire.LeaveRequest{Node: string(m.n.id), Reason: reason})
	if err != nil && !errors.Is(fromStatus(m.n.cfg.Head, err), ErrHeadLost) {
		m.n.log.Debug("could not leave the cluster properly", "error", err)
	}
}
