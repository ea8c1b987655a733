package actors

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"manta/actors/internal/wire"
	"manta/actors/membership"
)

// head keeps the cluster's membership: the shell around membership.Table.
type head struct {
	n *Node

	mu    sync.Mutex
	table *membership.Table   // guarded by mu
	infos map[NodeID]NodeInfo // guarded by mu; what does not change, and counts of tasks
}

func newHead(n *Node) *head {
	return &head{
		n:     n,
		infos: make(map[NodeID]NodeInfo),
		table: membership.New(membership.Config{
			Suspect: min(2*n.cfg.Heartbeat, n.cfg.Lease*2/3),
			Lease:   n.cfg.Lease,
		}),
	}
}

// run judges silence until the node ends.
func (h *head) run() {
	tick := time.NewTicker(h.n.cfg.Heartbeat / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.change(func(now membership.Time) ([]membership.Event, error) { return h.table.Tick(now), nil })
			h.n.control.expire()
		case <-h.n.ctx.Done():
			return
		}
	}
}

// change feeds the table and publishes what came out. step runs under mu.
func (h *head) change(step func(membership.Time) ([]membership.Event, error)) error {
	h.mu.Lock()
	events, err := step(h.now())
	var list []NodeInfo
	var version uint64
	if len(events) > 0 {
		version, list = h.table.Version(), h.listLocked()
	}
	h.mu.Unlock()
	if len(events) > 0 {
		for _, e := range events {
			h.n.log.Info("membership", "node", e.ID, "from", e.From, "to", e.To, "reason", e.Reason)
		}
		h.n.applyNodes(version, list)
		h.poke(list)
	}
	return err
}

func (h *head) now() membership.Time { return time.Duration(h.n.since(time.Now())) }

// join adds a node.
func (h *head) join(info NodeInfo) error {
	if info.Version != h.n.cfg.Version {
		return fmt.Errorf("%w: the head at %s is %s, this node is %s", ErrVersion, h.n.address, h.n.cfg.Version, info.Version)
	}
	return h.change(func(now membership.Time) ([]membership.Event, error) {
		events, err := h.table.Join(now, string(info.ID), info.Address, info.Head)
		if err == nil {
			h.infos[info.ID] = info
		}
		return events, err
	})
}

func (h *head) heartbeat(r *wire.HeartbeatRequest) error {
	return h.change(func(now membership.Time) ([]membership.Event, error) {
		events, err := h.table.Heartbeat(now, r.Node)
		if err == nil {
			info := h.infos[NodeID(r.Node)]
			info.RunningTasks, info.WaitingTasks = int(r.RunningTasks), int(r.WaitingTasks)
			h.infos[NodeID(r.Node)] = info
		}
		return events, err
	})
}

func (h *head) leave(node NodeID, reason string) {
	_ = h.change(func(now membership.Time) ([]membership.Event, error) {
		return h.table.Leave(now, string(node), reason), nil
	})
}

// nodes gives the list with counts that are as new as the last heartbeats.
func (h *head) nodes() []NodeInfo {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.listLocked()
}

func (h *head) version() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Version()
}

func (h *head) current() (version uint64, list []NodeInfo) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Version(), h.listLocked()
}

func (h *head) listLocked() []NodeInfo {
	members := h.table.Members()
	list := make([]NodeInfo, 0, len(members))
	known := make(map[NodeID]NodeInfo, len(members))
	for _, m := range members {
		info := h.infos[NodeID(m.ID)]
		known[info.ID] = info
		switch m.State {
		case membership.Alive:
			info.State = NodeAlive
		case membership.Unreachable:
			info.State = NodeUnreachable
		case membership.Dead:
			info.State = NodeDead
			info.RunningTasks, info.WaitingTasks = 0, 0
		}
		info.Reason = m.Reason
		info.Joined, info.LastSeen = h.n.started.Add(m.Joined), h.n.started.Add(m.LastSeen)
		if info.ID == h.n.id {
			info.RunningTasks, info.WaitingTasks = h.n.runner.counts()
		}
		list = append(list, info)
	}
	h.infos = known // members that the table forgot go too
	return list
}

// poke tells the others that there is a newer list. One that misses it learns
// with its next heartbeat.
func (h *head) poke(list []NodeInfo) {
	for _, info := range list {
		if info.State == NodeAlive && info.ID != h.n.id {
			h.n.goAsk(time.Second, info.ID, nodeActor, &wire.Poke{})
		}
	}
}

// headServer answers the Head service on every node; those that are not the head
// say who is.
type headServer struct {
	wire.UnimplementedHeadServer
	n *Node
}

func (s *headServer) head() (*head, error) {
	if s.n.head == nil {
		return nil, toStatus(codes.FailedPrecondition, fmt.Errorf("%w: it is a worker of the head at %s", ErrNotHead, s.n.cfg.Head))
	}
	if s.n.ctx.Err() != nil {
		return nil, toStatus(codes.Aborted, fmt.Errorf("%w: the head is closing", ErrHeadLost))
	}
	return s.n.head, nil
}

func (s *headServer) Ping(_ context.Context, r *wire.PingRequest) (*wire.PingReply, error) {
	if _, err := s.head(); err != nil {
		return nil, err
	}
	if r.Version != s.n.cfg.Version {
		return nil, toStatus(codes.FailedPrecondition, fmt.Errorf("%w: the head at %s is %s, this client is %s", ErrVersion, s.n.address, s.n.cfg.Version, r.Version))
	}
	return &wire.PingReply{Version: s.n.cfg.Version, Node: string(s.n.id)}, nil
}

func (s *headServer) Join(_ context.Context, r *wire.JoinRequest) (*wire.JoinReply, error) {
	h, err := s.head()
	if err != nil {
		return nil, err
	}
	info := nodeFromWire(r.GetNode())
	if info.ID == "" || info.Address == "" {
		return nil, toStatus(codes.InvalidArgument, fmt.Errorf("actors: a node without id or address"))
	}
	info.Head = false
	if err := h.join(info); err != nil {
		return nil, toStatus(codes.FailedPrecondition, err)
	}
	version, list := h.current()
	return &wire.JoinReply{
		Head:        string(s.n.id),
		HeartbeatMs: s.n.cfg.Heartbeat.Milliseconds(),
		LeaseMs:     s.n.cfg.Lease.Milliseconds(),
		Version:     version,
		Nodes:       nodesToWire(list),
	}, nil
}

func (s *headServer) Heartbeat(_ context.Context, r *wire.HeartbeatRequest) (*wire.HeartbeatReply, error) {
	h, err := s.head()
	if err != nil {
		return nil, err
	}
	if err := h.heartbeat(r); err != nil {
		return nil, toStatus(codes.Aborted, err)
	}
	reply := &wire.HeartbeatReply{Version: h.version(), Ended: s.n.jobs.over(r.Jobs)}
	if reply.Version != r.Version {
		version, list := h.current()
		reply.Version, reply.Nodes = version, nodesToWire(list)
	}
	return reply, nil
}

func (s *headServer) Leave(_ context.Context, r *wire.LeaveRequest) (*wire.LeaveReply, error) {
	h, err := s.head()
	if err != nil {
		return nil, err
	}
	if NodeID(r.Node) != s.n.id {
		h.leave(NodeID(r.Node), r.Reason)
	}
	return &wire.LeaveReply{}, nil
}

func (s *headServer) ListNodes(context.Context, *wire.ListNodesRequest) (*wire.ListNodesReply, error) {
	h, err := s.head()
	if err != nil {
		return nil, err
	}
	return &wire.ListNodesReply{Nodes: nodesToWire(h.nodes())}, nil
}

func (s *headServer) ListJobs(context.Context, *wire.ListJobsRequest) (*wire.ListJobsReply, error) {
	if _, err := s.head(); err != nil {
		return nil, err
	}
	reply := &wire.ListJobsReply{}
	for _, j := range s.n.Jobs() {
		reply.Jobs = append(reply.Jobs, jobToWire(j))
	}
	return reply, nil
}

func (s *headServer) StopJob(_ context.Context, r *wire.StopJobRequest) (*wire.StopJobReply, error) {
	if _, err := s.head(); err != nil {
		return nil, err
	}
	if err := s.n.StopJob(JobID(r.Job), r.Reason); err != nil {
		return nil, toStatus(codes.NotFound, err)
	}
	return &wire.StopJobReply{}, nil
}

func nodesToWire(list []NodeInfo) []*wire.NodeInfo {
	out := make([]*wire.NodeInfo, 0, len(list))
	for _, info := range list {
		out = append(out, nodeToWire(info))
	}
	return out
}
