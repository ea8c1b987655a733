package shuffle

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/rows"
	"manta/shuffle/shufflepb"
)

// Output names what one producer writes to an edge.
type Output struct {
	Edge     uint32
	Producer int
}

// adoptAtOnce is how many outputs a message names at most, far below what one can hold.
const adoptAtOnce = 1000

// Adopt hands kept outputs of a job on a node over to another job, and gives those that are the other's now. No task of the
// first job may run any more, and it must not have been finished.
func (s *Service) Adopt(ctx context.Context, node actors.NodeID, from, to actors.JobID, outputs []Output) (adopted []Output, err error) {
	for chunk := range slices.Chunk(outputs, adoptAtOnce) {
		m := &shufflepb.Adopt{From: string(from), To: string(to), Outputs: wireOutputs(chunk)}
		reply, err := s.node.Ask(ctx, actors.Address{Node: node, Name: controlActor}, m)
		if err != nil {
			return adopted, fmt.Errorf("shuffle: node %s: %w", node, err)
		}
		answer, ok := reply.(*shufflepb.AdoptReply)
		if !ok {
			return adopted, fmt.Errorf("%w: reply %T", ErrEdge, reply)
		}
		for _, o := range answer.GetOutputs() {
			adopted = append(adopted, Output{o.GetEdge(), int(o.GetProducer())})
		}
	}
	return adopted, nil
}

// Spare tells a node of outputs that a job keeps there, and that none of its tasks reads: they are there for a job after it,
// and are the first to go when memory is short.
func (s *Service) Spare(ctx context.Context, node actors.NodeID, job actors.JobID, outputs []Output) error {
	for chunk := range slices.Chunk(outputs, adoptAtOnce) {
		m := &shufflepb.Spare{Job: string(job), Outputs: wireOutputs(chunk)}
		if _, err := s.node.Ask(ctx, actors.Address{Node: node, Name: controlActor}, m); err != nil {
			return fmt.Errorf("shuffle: node %s: %w", node, err)
		}
	}
	return nil
}

func wireOutputs(outputs []Output) (out []*shufflepb.Output) {
	for _, o := range outputs {
		out = append(out, &shufflepb.Output{Edge: o.Edge, Producer: uint32(o.Producer)})
	}
	return out
}

// spare is Spare on the node that keeps the outputs.
func (s *Service) spare(m *shufflepb.Spare) {
	s.mu.Lock()
	j := s.jobs[actors.JobID(m.GetJob())]
	s.mu.Unlock()
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range m.GetOutputs() {
		if k := j.kept[fileKey{o.GetEdge(), o.GetProducer()}]; k != nil {
			k.mu.Lock()
			k.spare = true
			k.mu.Unlock()
		}
	}
}

// adopt is Adopt on the node that keeps the outputs.
func (s *Service) adopt(m *shufflepb.Adopt) (*shufflepb.AdoptReply, error) {
	s.mu.Lock()
	from := s.jobs[actors.JobID(m.GetFrom())]
	s.mu.Unlock()
	reply := &shufflepb.AdoptReply{}
	if from == nil {
		return reply, nil
	}
	to, err := s.job(actors.JobID(m.GetTo()))
	if err != nil {
		return nil, err
	}
	for _, o := range m.GetOutputs() {
		if s.move(from, to, fileKey{o.GetEdge(), o.GetProducer()}) {
			reply.Outputs = append(reply.Outputs, o)
		}
	}
	return reply, nil
}

// Serve opens an output that the job keeps on this node, in place of a Writer that makes it: its Close hands it out once
// more, to the partitions that are named. The others hear of its end only.
func (s *Service) Serve(tc *actors.TaskContext, e *Edge, producer int, partitions []int) (*Writer, error) {
	if err := s.checkProducer(e, producer); err != nil {
		return nil, err
	}
	for _, p := range partitions {
		if p < 0 || p >= len(e.Consumers) {
			return nil, fmt.Errorf("%w: %s has no partition %d", ErrEdge, e, p)
		}
	}
	j, err := s.job(e.Job)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	k := j.kept[fileKey{e.ID, uint32(producer)}]
	j.mu.Unlock()
	if k == nil || !k.isWhole() {
		return nil, fmt.Errorf("%w: nothing is kept of producer %d of %s", ErrEdge, producer, e)
	}
	w := newWriter(s, tc, j, e, producer)
	w.rows = rows.New(s.mem, arrow.NewSchema(nil, nil), 1, int64(s.cfg.BatchBytes))
	s.usage.addWriters(1)
	if err := j.addWriter(w); err != nil {
		w.cleanup()
		return nil, err
	}
	refs := newRefWriter(w, producer)
	refs.outlives = true
	w.sink = &servingSink{w: w, refs: refs, kept: k, producer: producer, partitions: partitions}
	w.account()
	return w, nil
}

// servingSink hands out what is kept.
type servingSink struct {
	w          *Writer
	refs       *refWriter
	kept       *kept
	producer   int
	partitions []int
}

func (s *servingSink) finish() error {
	all, err := s.kept.take(s.w.edge, s.producer, s.partitions)
	if err != nil {
		return err
	}
	for i, refs := range all {
		for _, ref := range refs {
			s.refs.push(s.partitions[i], ref)
		}
	}
	return s.refs.finish()
}

// take gives references for the readers of partitions. It takes them at once: an output may be given up as soon as some of
// it was read.
func (k *kept) take(e *Edge, producer int, partitions []int) ([][]*shufflepb.Ref, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.given {
		return nil, fmt.Errorf("%w: producer %d of %s is not kept any more", ErrEdge, producer, e)
	}
	var all [][]*shufflepb.Ref
	for _, p := range partitions {
		refs, err := k.forReader(e, producer, p)
		if err != nil {
			return nil, err
		}
		all = append(all, refs)
	}
	return all, nil
}

// forReader gives references for a partition's reader, with a hold of its own on each object. mu is held.
func (k *kept) forReader(e *Edge, producer, p int) ([]*shufflepb.Ref, error) {
	list := k.refs[p]
	if k.toAll {
		list = k.refs[0]
	}
	out := make([]*shufflepb.Ref, len(list))
	for i, r := range list {
		out[i] = &shufflepb.Ref{Object: r.Object, Offset: r.Offset, Size: r.Size, Rows: r.Rows, Sum: r.Sum}
		if len(r.Object) == 0 {
			continue
		}
		id, err := objectstore.IDFromBytes(r.Object)
		if err != nil {
			return nil, err
		}
		out[i].Holder = holderName(e, producer, p)
		if err := k.s.node.Store().Hold(id, out[i].Holder); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *servingSink) put(_ int, b arrow.RecordBatch) error {
	b.Release()
	return fmt.Errorf("%w: %s is served, not written", ErrEdge, s.w.edge)
}

func (s *servingSink) settle(int64) error { return s.refs.failure() }
func (s *servingSink) abort(err error)    { s.refs.abort(err) }
func (s *servingSink) held() int64        { return 0 }
func (s *servingSink) done() bool         { return s.refs.full() }
func (s *servingSink) wants(p int) bool   { return s.refs.wants(p) }
func (s *servingSink) release()           { s.refs.release() }
