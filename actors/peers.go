package actors

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
)

// peers is what a node knows of the cluster's nodes, itself included, and its
// connections to them. The list comes from the head, whole each time.
type peers struct {
	mu      sync.Mutex
	version uint64                      // guarded by mu; of nodes
	nodes   map[NodeID]NodeInfo         // guarded by mu
	conns   map[NodeID]*grpc.ClientConn // guarded by mu
	closed  bool                        // guarded by mu
}

func (p *peers) get(id NodeID) (NodeInfo, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, ok := p.nodes[id]
	return info, ok
}

func (p *peers) listVersion() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// list gives the nodes in order of joining.
func (p *peers) list() []NodeInfo {
	p.mu.Lock()
	list := slices.Collect(maps.Values(p.nodes))
	p.mu.Unlock()
	slices.SortFunc(list, func(a, b NodeInfo) int {
		return cmp.Or(a.Joined.Compare(b.Joined), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// apply takes a list, unless it is older than the one that is there. It gives the
// nodes that are dead since then and closes the connections to them.
func (p *peers) apply(version uint64, list []NodeInfo) (died []NodeInfo, fresh bool) {
	nodes := make(map[NodeID]NodeInfo, len(list))
	for _, info := range list {
		nodes[info.ID] = info
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if version <= p.version {
		return nil, false
	}
	for id, old := range p.nodes {
		now, ok := nodes[id]
		if !ok { // forgotten: it has been dead for long
			now = old
			now.State = NodeDead
		}
		if old.State != NodeDead && now.State == NodeDead {
			died = append(died, now)
			if conn, ok := p.conns[id]; ok {
				delete(p.conns, id)
				_ = conn.Close()
			}
		}
	}
	p.version, p.nodes = version, nodes
	return died, true
}

// conn gives the shared connection to a node, made when first wanted.
func (p *peers) conn(info NodeInfo, dial func(address string) (*grpc.ClientConn, error)) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if now, ok := p.nodes[info.ID]; !ok || now.State == NodeDead {
		return nil, &NodeDeadError{Node: info.ID, Reason: now.Reason}
	}
	if conn, ok := p.conns[info.ID]; ok {
		return conn, nil
	}
	conn, err := dial(info.Address)
	if err != nil {
		return nil, fmt.Errorf("actors: node %s at %s: %w", info.ID, info.Address, err)
	}
	if p.conns == nil {
		p.conns = make(map[NodeID]*grpc.ClientConn)
	}
	p.conns[info.ID] = conn
	return conn, nil
}

func (p *peers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.conns = nil
}

// find gives a node that is not known to be dead. For one that this node has not
// heard of it asks the head first: it may have joined a moment ago.
func (n *Node) find(ctx context.Context, id NodeID) (NodeInfo, error) {
	info, ok := n.peers.get(id)
	if !ok && n.member != nil {
		if err := n.member.refresh(ctx); err != nil {
			return NodeInfo{}, err
		}
		info, ok = n.peers.get(id)
	}
	switch {
	case !ok:
		return NodeInfo{}, &NodeDeadError{Node: id, Reason: "it is not a member of the cluster"}
	case info.State == NodeDead:
		return NodeInfo{}, &NodeDeadError{Node: id, Reason: info.Reason}
	}
	return info, nil
}

// Conn gives the connection to a node's gRPC server, for bulk: all callers share
// it, and it is closed when the node is dead or this one
// closes. Control messages do not use it.
func (n *Node) Conn(id NodeID) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
	defer cancel()
	info, err := n.find(ctx, id)
	if err != nil {
		return nil, err
	}
	return n.peers.conn(info, func(address string) (*grpc.ClientConn, error) {
		return newClient(address, n.trust)
	})
}

// Nodes gives the nodes as this one knows them, in order of joining. On the head
// that is the truth; elsewhere counts of tasks may be old.
func (n *Node) Nodes() []NodeInfo {
	if n.head != nil {
		return n.head.nodes()
	}
	list := n.peers.list()
	for i := range list {
		if list[i].ID == n.id {
			list[i].RunningTasks, list[i].WaitingTasks = n.runner.counts()
		}
	}
	return list
}

// applyNodes takes a list of nodes from the head and carries out what follows
// from it. It does not block on services: they hear of dead nodes in order, from
// an actor.
func (n *Node) applyNodes(version uint64, list []NodeInfo) {
	n.applying.Lock()
	defer n.applying.Unlock()
	died, fresh := n.peers.apply(version, list)
	if fresh {
		n.links.sweep()
	}
	switch {
	case fresh && n.jobs != nil:
		n.engine.brain.nodes(list)
	case fresh:
		n.engine.direct.nodes()
	}
	for _, info := range died {
		if info.ID == n.id {
			n.fail(fmt.Errorf("%w: it has declared this node dead: %s", ErrHeadLost, info.Reason))
			continue
		}
		level := slog.LevelWarn
		if info.Reason == leftInOrder {
			level = slog.LevelInfo
		}
		n.log.Log(context.Background(), level, "node is dead", "node", info.ID, "address", info.Address, "reason", info.Reason)
		n.control.nodeDead(info.ID, info.Reason)
		n.control.transport.forget(peer{info.ID, info.control})
		n.links.forget(info.ID)
		n.engine.copies.dropAll("", info.ID)
		if n.engine.direct != nil {
			n.engine.direct.nodeDead(info.ID)
		}
		if n.jobs != nil {
			uses := n.engine.brain.nodeDead(info.ID, info.Reason)
			n.jobs.nodeDead(info.ID, info.Reason, uses)
		}
		n.system.Root.Send(n.events, func() {
			for _, s := range n.cfg.Services {
				s.NodeDead(info.ID, info.Reason)
			}
		})
	}
}
