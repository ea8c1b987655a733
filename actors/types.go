package actors

import (
	"fmt"
	"time"

	"google.golang.org/grpc"

	"manta/actors/internal/wire"
)

// Version is this build's version. Nodes and clients of different versions do not
// work together. A linker flag (-X manta/actors.Version=…) may set it.
var Version = "0.1.0"

const (
	// MaxMessage is the size limit of a control message in bytes, its envelope
	// included.
	MaxMessage = 64 << 10
	// MaxInline is the size in bytes up to which a task's argument or result
	// travels inside a control message; larger ones go through the store.
	MaxInline = 48 << 10

	maxText = 4 << 10  // bytes of an error or a reason that travel
	maxName = 256      // bytes of an actor's name
	maxGRPC = 64 << 20 // bytes of a message on a gRPC server
)

// NodeID names one incarnation of a node: a process that restarts has another.
type NodeID string

// JobID names a job.
type JobID string

// TaskID names a task; unique in the cluster.
type TaskID string

// NodeState is a node's standing in the cluster.
type NodeState string

const (
	NodeAlive       NodeState = "alive"
	NodeUnreachable NodeState = "unreachable" // silent; may come back
	NodeDead        NodeState = "dead"        // final
)

// NodeInfo describes a node as the head, or a node that learned from the head,
// knows it.
type NodeInfo struct {
	ID           NodeID            `json:"id"`
	Address      string            `json:"address"` // of its gRPC server
	State        NodeState         `json:"state"`
	CPUs         int               `json:"cpus"` // slots; 0 = takes no tasks
	MemoryBytes  int64             `json:"memory_bytes"`
	RunningTasks int               `json:"running_tasks"` // hold a slot
	WaitingTasks int               `json:"waiting_tasks"` // queue for a slot, or wait for input or credit
	Labels       map[string]string `json:"labels,omitempty"`
	Head         bool              `json:"head"`
	Version      string            `json:"version"`
	Joined       time.Time         `json:"joined"`
	LastSeen     time.Time         `json:"last_seen"`
	Reason       string            `json:"reason,omitempty"` // why it is not alive

	control string // address for control messages between processes
}

// Service is a part of a node that another package brings. Methods may be called
// from any goroutine, but NodeDead is called for one node after the other.
type Service interface {
	// Register attaches the service's RPCs, before the node serves. The node's id,
	// address and store are set; it has not joined its cluster yet.
	Register(n *Node, r grpc.ServiceRegistrar) error
	// JobEnded is called on every node once the job has ended, in whatever way:
	// drop everything of it. It may be called for a job that was never seen here, and
	// again when a task ended only after the job.
	JobEnded(job JobID)
	// NodeDead is called on every node when another one is dead.
	NodeDead(node NodeID, reason string)
	// Close is called once no task runs any more.
	Close() error
}

// JobHolder is a Service that may have something of a job of which the node has no task: it lists such jobs, so that the
// node hears of a job's end though the order was lost.
type JobHolder interface{ JobsHere() []JobID }

// JobState is where a job stands.
type JobState string

const (
	JobPending   JobState = "PENDING" // waits to be admitted
	JobRunning   JobState = "RUNNING"
	JobSucceeded JobState = "SUCCEEDED"
	JobFailed    JobState = "FAILED"
	JobStopped   JobState = "STOPPED" // by its client, or by somebody else
)

// JobInfo describes a job.
type JobInfo struct {
	ID        JobID     `json:"id"`
	Name      string    `json:"name"`
	User      string    `json:"user,omitempty"`
	State     JobState  `json:"state"`
	Submitted time.Time `json:"submitted"`
	Started   time.Time `json:"started,omitzero"` // admitted
	Ended     time.Time `json:"ended,omitzero"`
	Error     string    `json:"error,omitempty"`
	Tasks     int       `json:"tasks"`
	TasksDone int       `json:"tasks_done"`
}

func nodeToWire(n NodeInfo) *wire.NodeInfo {
	return &wire.NodeInfo{
		Id: string(n.ID), Address: n.Address, Control: n.control, State: stateToWire(n.State),
		Cpus: int32(n.CPUs), MemoryBytes: n.MemoryBytes,
		RunningTasks: int32(n.RunningTasks), WaitingTasks: int32(n.WaitingTasks),
		Labels: n.Labels, Head: n.Head, Version: n.Version, Reason: n.Reason,
		JoinedUnixNano: toUnix(n.Joined), LastSeenUnixNano: toUnix(n.LastSeen),
	}
}

func nodeFromWire(w *wire.NodeInfo) NodeInfo {
	return NodeInfo{
		ID: NodeID(w.GetId()), Address: w.GetAddress(), control: w.GetControl(), State: stateFromWire(w.GetState()),
		CPUs: int(w.GetCpus()), MemoryBytes: w.GetMemoryBytes(),
		RunningTasks: int(w.GetRunningTasks()), WaitingTasks: int(w.GetWaitingTasks()),
		Labels: w.GetLabels(), Head: w.GetHead(), Version: w.GetVersion(), Reason: w.GetReason(),
		Joined: fromUnix(w.GetJoinedUnixNano()), LastSeen: fromUnix(w.GetLastSeenUnixNano()),
	}
}

func jobToWire(j JobInfo) *wire.JobInfo {
	return &wire.JobInfo{
		Id: string(j.ID), Name: cleanText(j.Name), User: cleanText(j.User), State: string(j.State), Error: cleanText(j.Error),
		SubmittedUnixNano: toUnix(j.Submitted), StartedUnixNano: toUnix(j.Started), EndedUnixNano: toUnix(j.Ended),
		Tasks: int32(j.Tasks), TasksDone: int32(j.TasksDone),
	}
}

func jobFromWire(w *wire.JobInfo) JobInfo {
	return JobInfo{
		ID: JobID(w.GetId()), Name: w.GetName(), User: w.GetUser(), State: JobState(w.GetState()), Error: w.GetError(),
		Submitted: fromUnix(w.GetSubmittedUnixNano()), Started: fromUnix(w.GetStartedUnixNano()), Ended: fromUnix(w.GetEndedUnixNano()),
		Tasks: int(w.GetTasks()), TasksDone: int(w.GetTasksDone()),
	}
}

func stateToWire(s NodeState) uint32 {
	switch s {
	case NodeAlive:
		return 1
	case NodeUnreachable:
		return 2
	}
	return 3
}

func stateFromWire(s uint32) NodeState {
	switch s {
	case 1:
		return NodeAlive
	case 2:
		return NodeUnreachable
	}
	return NodeDead
}

func toUnix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func fromUnix(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

// Address names an actor in the cluster.
type Address struct {
	Node NodeID
	Name string
}

func (a Address) String() string { return fmt.Sprintf("%s/%s", a.Node, a.Name) }
