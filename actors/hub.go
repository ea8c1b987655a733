package actors

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"manta/actors/internal/wire"
)

// Hub carries the control messages of nodes that live in one process: an embedded
// cluster, or a test. Messages are marshalled all the same, so that nothing is
// shared between nodes that could not be between processes. The zero value is
// ready.
type Hub struct {
	mu    sync.RWMutex
	nodes map[NodeID]func(*wire.Envelope)   // guarded by mu
	links map[NodeID]func(*wire.Frame) bool // guarded by mu
}

// NewHub gives a hub without nodes.
func NewHub() *Hub { return &Hub{} }

// attach makes the node reachable. deliver must not block.
func (h *Hub) attach(node NodeID, deliver func(*wire.Envelope), frames func(*wire.Frame) bool) transport {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.nodes == nil {
		h.nodes = make(map[NodeID]func(*wire.Envelope))
		h.links = make(map[NodeID]func(*wire.Frame) bool)
	}
	h.nodes[node] = deliver
	h.links[node] = frames
	return &hubTransport{hub: h, node: node}
}

// frames gives what takes a node's frames; nil if it is not there.
func (h *Hub) frames(node NodeID) func(*wire.Frame) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.links[node]
}

type hubTransport struct {
	hub  *Hub
	node NodeID
}

func (t *hubTransport) send(to peer, e *wire.Envelope) {
	t.hub.mu.RLock()
	deliver := t.hub.nodes[to.node]
	t.hub.mu.RUnlock()
	if deliver == nil {
		return
	}
	data, err := proto.Marshal(e)
	if err != nil {
		return
	}
	copied := new(wire.Envelope)
	if proto.Unmarshal(data, copied) == nil {
		deliver(copied)
	}
}

func (t *hubTransport) address() string { return "" }

func (t *hubTransport) forget(peer) {}

func (t *hubTransport) close() {
	t.hub.mu.Lock()
	defer t.hub.mu.Unlock()
	delete(t.hub.nodes, t.node)
	delete(t.hub.links, t.node)
}
