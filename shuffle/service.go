package shuffle

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// Service is a node's part in all exchanges.
type Service struct {
	cfg   Config
	mem   memory.Allocator
	usage *usage // set by Register

	node  *actors.Node  // set by Register
	actor *actors.Actor // set by Register

	spilled atomic.Int64
	readers atomic.Int64
	stalls  atomic.Int64

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // goroutines of connections, and the watchdog's

	mu     sync.Mutex
	closed bool                     // guarded by mu, like all below
	jobs   map[actors.JobID]*job    // running
	tombs  tombs                    // ended
	dead   map[actors.NodeID]string // why
	links  map[actors.NodeID]*link
	// wires are the connections that other nodes have opened, and those to fetch from them, by their node.
	wires map[*wire]actors.NodeID
}

var _ interface {
	actors.Service
	actors.JobHolder
} = (*Service)(nil)

// NewService makes the part; actors.Start attaches it. A bad config is reported by Register.
func NewService(cfg Config) *Service {
	s := &Service{
		cfg:   cfg,
		jobs:  map[actors.JobID]*job{},
		dead:  map[actors.NodeID]string{},
		links: map[actors.NodeID]*link{},
		wires: map[*wire]actors.NodeID{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// controlActor makes queues that do not exist yet.
const controlActor = "shuffle"

// Register attaches the data plane to the node.
func (s *Service) Register(n *actors.Node, _ grpc.ServiceRegistrar) error {
	if err := s.cfg.Validate(); err != nil {
		return err
	}
	if s.cfg.Dir == "" {
		s.cfg.Dir = filepath.Join(n.Config().DataDir, "shuffle")
	}
	if err := sweep(s.cfg.Dir); err != nil {
		return err
	}
	s.node = n
	s.mem = s.cfg.Allocator
	s.usage = newUsage(s.cfg.MemoryLimit, int64(s.cfg.BatchBytes))
	a, err := n.Spawn(controlActor, s.handle)
	if err != nil {
		return err
	}
	s.actor = a
	n.Streams().Handle(linkService, s.accept(s.serveLink))
	n.Streams().Handle(fetchService, s.accept(s.serveFetch))
	s.running.Go(s.watch)
	return nil
}

// handle is the control actor: it makes queues, and hands over what is kept.
func (s *Service) handle(_ context.Context, _ actors.NodeID, m proto.Message) (proto.Message, error) {
	switch m := m.(type) {
	case *shufflepb.Adopt:
		return s.adopt(m)
	case *shufflepb.Spare:
		s.spare(m)
		return &shufflepb.SpareReply{}, nil
	}
	open, ok := m.(*shufflepb.OpenQueue)
	if !ok {
		return nil, fmt.Errorf("%w: message %T", ErrEdge, m)
	}
	j, err := s.job(actors.JobID(open.GetChannel().GetJob()))
	if err != nil {
		return nil, err
	}
	if _, err := j.refQueue(s, open.GetChannel()); err != nil {
		return nil, err
	}
	return &shufflepb.OpenQueueReply{}, nil
}

// JobsHere lists the jobs of which the node has something: see actors.JobHolder.
func (s *Service) JobsHere() (ids []actors.JobID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.jobs {
		ids = append(ids, id)
	}
	return ids
}

// JobEnded drops everything of the job and refuses it from now on.
func (s *Service) JobEnded(id actors.JobID) {
	s.mu.Lock()
	j := s.jobs[id]
	delete(s.jobs, id)
	s.tombs.add(id)
	s.mu.Unlock()
	if j != nil {
		j.end(s, fmt.Errorf("%w: %s", ErrJobEnded, id))
	}
}

// because returns the end of the job, if it is over here, in place of what failed for it: its objects and files are gone by
// then. JobEnded comes before the store drops the first of them.
func (s *Service) because(id actors.JobID, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tombs.has(id) {
		return fmt.Errorf("%w: %s", ErrJobEnded, id)
	}
	return err
}

// NodeDead fails the channels from and to the node.
func (s *Service) NodeDead(node actors.NodeID, reason string) {
	err := fmt.Errorf("shuffle: node %s: %w (%s)", node, actors.ErrNodeDead, reason)
	s.mu.Lock()
	s.dead[node] = reason
	var broken []*wire
	for w, from := range s.wires {
		if from == node {
			broken = append(broken, w)
		}
	}
	l := s.links[node]
	s.mu.Unlock()
	for _, w := range broken {
		w.close()
	}
	if l != nil {
		l.fail(err)
	}
	for _, j := range s.allJobs() {
		for _, q := range j.queues() {
			q.nodeDead(node, err)
		}
	}
}

// deadError is the error of a node that is known to be dead, or nil.
func (s *Service) deadError(node actors.NodeID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason, ok := s.dead[node]; ok {
		return fmt.Errorf("shuffle: node %s: %w (%s)", node, actors.ErrNodeDead, reason)
	}
	return nil
}

// Close ends all exchanges.
func (s *Service) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	jobs := s.jobs
	s.jobs = map[actors.JobID]*job{}
	s.mu.Unlock()
	err := errors.New("shuffle: node is closing")
	for _, j := range jobs {
		j.end(s, err)
	}
	s.cancel(err) // every link ends
	s.running.Wait()
	if s.actor != nil {
		s.actor.Stop()
	}
	return nil
}

// Stats describes the node now.
func (s *Service) Stats() Stats {
	st := Stats{Spilled: s.spilled.Load(), Readers: int(s.readers.Load()), Stalls: s.stalls.Load()}
	if s.usage == nil {
		return st
	}
	s.usage.stats(&st)
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Jobs, st.Links = len(s.jobs), len(s.links)
	for _, j := range s.jobs {
		j.mu.Lock()
		st.Writers += len(j.writers)
		st.Files += len(j.files)
		for _, k := range j.kept {
			k.mu.Lock()
			if k.whole {
				st.Kept++
				if k.spare {
					st.Spare++
				}
			}
			k.mu.Unlock()
		}
		j.mu.Unlock()
	}
	return st
}
