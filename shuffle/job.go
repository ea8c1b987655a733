package shuffle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// queue is a partition's end of an exchange on the reader's node. It exists before its reader when a producer is
// earlier, and after it as the tombstone that tells late producers to stop.
type queue interface {
	// fail ends it with an error, for its reader and its producers. Only the first error counts.
	fail(err error)
	// nodeDead fails it if a producer on that node had not ended.
	nodeDead(node actors.NodeID, err error)
}

type queueKey struct {
	edge      uint32
	partition uint32
}

type fileKey struct {
	edge     uint32
	producer uint32
}

// job is what a node holds for one job.
type job struct {
	id     actors.JobID
	ctx    context.Context // ends with the job here
	cancel context.CancelCauseFunc

	activity activity

	mu      sync.Mutex
	ended   bool                      // guarded by mu, like all below
	streams map[queueKey]*streamQueue // streaming
	due     map[uint32]due            // by streaming edge, once it has a reader
	refs    map[queueKey]*refQueue    // the other modes
	writers map[*Writer]struct{}
	files   map[fileKey]*spillFile
	kept    map[fileKey]*kept
	dir     string
}

func newJob(id actors.JobID) *job {
	j := &job{
		id:      id,
		streams: map[queueKey]*streamQueue{},
		due:     map[uint32]due{},
		refs:    map[queueKey]*refQueue{},
		writers: map[*Writer]struct{}{},
		files:   map[fileKey]*spillFile{},
		kept:    map[fileKey]*kept{},
	}
	j.ctx, j.cancel = context.WithCancelCause(context.Background())
	return j
}

// job returns the node's part of a job, new if need be; ErrJobEnded once it has ended.
func (s *Service) job(id actors.JobID) (*job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.tombs.has(id) && !without(lateComer) {
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, id)
	}
	j := s.jobs[id]
	if j == nil {
		if len(s.jobs) == 0 {
			s.usage.begin()
		}
		j = newJob(id)
		s.jobs[id] = j
	}
	return j, nil
}

// streamQueue finds or makes the queue of a partition.
func (j *job) streamQueue(s *Service, edge, partition uint32) (*streamQueue, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	if partition >= maxTasks {
		return nil, fmt.Errorf("%w: partition %d", ErrEdge, partition)
	}
	k := queueKey{edge, partition}
	q := j.streams[k]
	if q == nil {
		q = newStreamQueue(s, fmt.Sprintf("partition %d of edge %d of job %s", partition, edge, j.id))
		j.streams[k] = q
	}
	return q, nil
}

// refQueue finds or makes the queue of a partition, and its actor.
func (j *job) refQueue(s *Service, c *shufflepb.Channel) (*refQueue, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return nil, fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	if c.GetPartition() >= maxTasks {
		return nil, fmt.Errorf("%w: partition %d", ErrEdge, c.GetPartition())
	}
	k := queueKey{c.GetEdge(), c.GetPartition()}
	q := j.refs[k]
	if q == nil {
		q = newRefQueue(s)
		a, err := s.node.Spawn(queueName(j.id, k), q.handle)
		if err != nil {
			return nil, err
		}
		q.actor = a
		j.refs[k] = q
	}
	return q, nil
}

// folder returns the job's directory. Its name owes nothing to the job's id, which is a peer's text.
func (j *job) folder(s *Service) (string, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return "", fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	if j.dir == "" {
		dir, err := os.MkdirTemp(s.cfg.Dir, "job-")
		if err != nil {
			return "", fmt.Errorf("shuffle: %w", err)
		}
		j.dir = dir
	}
	return j.dir, nil
}

// queues is a copy of all queues.
func (j *job) queues() (all []queue) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, q := range j.streams {
		all = append(all, q)
	}
	for _, q := range j.refs {
		all = append(all, q)
	}
	return all
}

// openWriters is a copy.
func (j *job) openWriters() []*Writer {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]*Writer, 0, len(j.writers))
	for w := range j.writers {
		all = append(all, w)
	}
	return all
}

// over says that the job has ended here.
func (j *job) over() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

// end drops everything. Nothing can be added afterwards.
func (j *job) end(s *Service, err error) {
	j.mu.Lock()
	j.ended = true
	j.nobodyIsDue(s)
	actorsOf := make([]*actors.Actor, 0, len(j.refs))
	for _, q := range j.refs {
		actorsOf = append(actorsOf, q.actor)
	}
	files, dir := j.files, j.dir
	j.files, j.kept = nil, nil
	j.mu.Unlock()
	for _, w := range j.openWriters() {
		w.fail(err)
	}
	for _, q := range j.queues() {
		q.fail(err)
	}
	for _, a := range actorsOf {
		a.Stop()
	}
	for _, f := range files {
		f.remove()
	}
	if dir != "" {
		_ = os.RemoveAll(dir)
	}
	j.cancel(err)
}

// sweep empties the directory of an earlier process.
func sweep(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "job-*"))
	if err != nil {
		return fmt.Errorf("shuffle: %w", err)
	}
	for _, d := range old {
		if err := os.RemoveAll(d); err != nil {
			return fmt.Errorf("shuffle: %w", err)
		}
	}
	return nil
}

// tombs remembers the jobs that ended last.
type tombs struct {
	ids  map[actors.JobID]struct{}
	ring []actors.JobID
	next int
}

const tombsKept = 4096

func (t *tombs) has(id actors.JobID) bool { _, ok := t.ids[id]; return ok }

func (t *tombs) add(id actors.JobID) {
	if t.has(id) {
		return
	}
	if t.ids == nil {
		t.ids = map[actors.JobID]struct{}{}
	}
	t.ids[id] = struct{}{}
	if len(t.ring) < tombsKept {
		t.ring = append(t.ring, id)
		return
	}
	delete(t.ids, t.ring[t.next])
	t.ring[t.next] = id
	t.next = (t.next + 1) % tombsKept
}
