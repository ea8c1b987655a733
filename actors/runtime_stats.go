package actors

import (
	"fmt"

	"manta/actors/core"
)

// RuntimeStats is how much the typed runtime keeps.
type RuntimeStats = core.Counts

// Runtime tells how much the typed runtime of the cluster keeps. It is zero on a node that is not the head.
func (n *Node) Runtime() (s RuntimeStats) {
	if n.engine.brain != nil {
		n.engine.brain.do(func(c *core.Core) { s = c.Counts() })
	}
	return s
}

// RunInfo describes a typed task, a call, or the making of an actor that has not ended.
type RunInfo struct {
	ID      string `json:"id"`
	Job     JobID  `json:"job"`
	Name    string `json:"name"`
	State   string `json:"state"` // WAITING for arguments, QUEUED for a place, RUNNING, BLOCKED while it waits for a value
	Node    NodeID `json:"node,omitempty"`
	Attempt int    `json:"attempt"`
	Why     string `json:"why,omitempty"` // what it waits for
}

// Tasks lists up to limit typed tasks and calls that have not ended, with what they wait for. Empty on a node that is not the head.
func (n *Node) Tasks(limit int) []RunInfo {
	if n.engine.brain == nil {
		return nil
	}
	var list []core.TaskInfo
	n.engine.brain.do(func(c *core.Core) { list = c.Tasks(limit) })
	out := make([]RunInfo, len(list))
	for i, t := range list {
		out[i] = RunInfo{
			ID: fmt.Sprintf("%012x", uint64(t.ID)), Job: JobID(t.Job), Name: t.Name, State: t.State, Node: NodeID(t.Node), Attempt: int(t.Attempt), Why: t.Why,
		}
	}
	return out
}
