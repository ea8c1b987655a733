package actors

import (
	"sync"

	"manta/actors/core"
)

// brain is the head's core with what carries its messages.
type brain struct {
	n *Node

	mu       sync.Mutex
	core     *core.Core // guarded by mu
	local    []any      // guarded by mu; for this node, in order
	draining bool       // guarded by mu; somebody delivers them
}

func newBrain(n *Node) *brain { return &brain{n: n, core: core.New(core.Config{})} }

// do feeds the core and puts what came out on its way. It does not deliver to this node.
func (b *brain) do(f func(*core.Core)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.core)
	self := core.NodeID(b.n.id)
	for _, o := range b.core.Take() {
		if o.To == self {
			b.local = append(b.local, o.Msg)
		} else {
			b.n.links.send(NodeID(o.To), o.Msg)
		}
	}
	if len(b.local) > 0 && !b.draining {
		b.draining = b.n.background.goRun(b.drain)
	}
}

// handle takes messages from a node. It may deliver to this one: no lock must be held.
func (b *brain) handle(from NodeID, msgs ...any) {
	b.mu.Lock()
	self := core.NodeID(b.n.id)
	for _, m := range msgs {
		b.core.Handle(core.NodeID(from), m)
	}
	for _, o := range b.core.Take() {
		if o.To == self {
			b.local = append(b.local, o.Msg)
		} else {
			b.n.links.send(NodeID(o.To), o.Msg)
		}
	}
	mine := len(b.local) > 0 && !b.draining
	if mine {
		b.draining = true
	}
	b.mu.Unlock()
	if mine {
		b.drain()
	}
}

// drain delivers to this node, in order, until nothing is left.
func (b *brain) drain() {
	for {
		b.mu.Lock()
		msgs := b.local
		b.local = nil
		if len(msgs) == 0 {
			b.draining = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		for _, m := range msgs {
			b.n.engine.receive(m)
		}
	}
}

// nodes takes a new list of nodes.
func (b *brain) nodes(list []NodeInfo) {
	b.do(func(c *core.Core) {
		for _, info := range list {
			if info.State != NodeDead {
				c.NodeUp(core.NodeSpec{
					ID: core.NodeID(info.ID), CPU: int64(info.CPUs) * 1000, Memory: info.MemoryBytes,
					Custom: info.Labels[ResourcesLabel], Labels: info.Labels,
				})
				c.Suspend(core.NodeID(info.ID), info.State == NodeUnreachable)
			}
		}
	})
}

// nodeDead takes a dead node away. It gives the jobs of which gangs used it.
func (b *brain) nodeDead(node NodeID, reason string) (uses []core.JobID) {
	b.do(func(c *core.Core) {
		uses = c.Uses(core.NodeID(node))
		c.NodeDown(core.NodeID(node), reason)
	})
	return uses
}

// ResourcesLabel is the label of a node that says which custom resources it has, in thousandths: "gpu=2000,disk=500".
const ResourcesLabel = "manta/resources"
