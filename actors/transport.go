package actors

import (
	"manta/actors/internal/wire"
)

// peer is where a node's control actor can be reached.
type peer struct {
	node    NodeID
	control string // between processes: host:port of its remoting
}

// transport carries envelopes from one node's control actor to another's. It may
// lose, repeat, delay and reorder them: what is above it copes.
type transport interface {
	// send never blocks. The envelope must not change afterwards.
	send(to peer, e *wire.Envelope)
	// address is what other nodes need as peer.control.
	address() string
	// forget drops what is held for a node that is dead.
	forget(p peer)
	// close ends it. Nothing is delivered afterwards.
	close()
}
