package actors

import "manta/actors/core"

// RuntimeStats is how much the typed runtime keeps.
type RuntimeStats = core.Counts

// Runtime tells how much the typed runtime of the cluster keeps. It is zero on a node that is not the head.
func (n *Node) Runtime() (s RuntimeStats) {
	if n.engine.brain != nil {
		n.engine.brain.do(func(c *core.Core) { s = c.Counts() })
	}
	return s
}
