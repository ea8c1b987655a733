package shuffle

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/objectstore"
	"manta/objectstore/block"
	"manta/shuffle/shufflepb"
)

// refSource reads a refQueue: one goroutine resolves references a block ahead of the reader.
type refSource struct {
	r      *Reader
	e      *Edge
	q      *refQueue
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: out has something
	taken  chan struct{} // capacity 1: out was emptied
	out    chan fetched  // capacity 1
	done   chan struct{} // closed when the goroutine has ended
	far    farBlocks

	// Owned by the goroutine until done.
	n    Counters
	owed map[actors.NodeID][]*shufflepb.Ref // used, and perhaps not given back
	lost []queuedRef                        // taken, and not used
}

// fetched is a block in memory, or the end.
type fetched struct {
	data  []byte
	bytes int64  // of the node's memory
	free  func() // ends the use of data and of the reference
	err   error
}

func newRefSource(r *Reader, e *Edge, partition int) (*refSource, error) {
	q, err := r.job.refQueue(r.s, e.channel(0, partition, 0))
	if err != nil {
		return nil, err
	}
	if err := q.attach(e.Producers, e.Mode == Concat); err != nil {
		return nil, err
	}
	for _, n := range e.Producers {
		if err := r.s.deadError(n); err != nil {
			q.nodeDead(n, err)
		}
	}
	s := &refSource{
		r: r, e: e, q: q,
		wake: make(chan struct{}, 1), taken: make(chan struct{}, 1), out: make(chan fetched, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(r.job.ctx)
	s.far = farBlocks{s: r.s, e: e, ctx: s.ctx}
	go s.run()
	return s, nil
}

func (s *refSource) ready() <-chan struct{} { return s.wake }

func (s *refSource) next() (arrow.RecordBatch, *block.Reader, error) {
	select {
	case f := <-s.out:
		poke(s.taken)
		if f.err != nil {
			return nil, nil, f.err
		}
		s.r.s.usage.fetched(f.bytes)
		blk, err := block.Decode(f.data, s.r.schema, f.free)
		return nil, blk, err
	default:
		return nil, nil, nil
	}
}

// run resolves references in order until the end, a failure or the reader's leave.
func (s *refSource) run() {
	defer close(s.done)
	defer func() { s.n.ControlMessages, s.owed = s.far.close() }()
	for {
		f, ok := s.obtain()
		if !ok {
			return
		}
		end := f.err != nil
		if f.err == io.EOF {
			s.far.flush()
		}
		select {
		case s.out <- f:
			poke(s.wake)
		case <-s.ctx.Done():
			s.discard(f)
			return
		}
		if end {
			return
		}
	}
}

// obtain waits for the next reference and resolves it. False: the reader left, or the job ended.
func (s *refSource) obtain() (fetched, bool) {
	var ref queuedRef
	for {
		r, ok, err := s.q.next()
		if err != nil {
			return fetched{err: err}, true
		}
		if ok {
			ref = r
			break
		}
		select {
		case <-s.q.wake:
		case <-s.ctx.Done():
			return fetched{}, false
		}
	}
	n := s.needs(ref)
	if !s.room(n) {
		s.lost = append(s.lost, ref)
		return fetched{}, false
	}
	f, err := s.resolve(ref)
	if err == nil {
		f.bytes = n
		return f, true
	}
	s.r.s.usage.fetched(n)
	s.lost = append(s.lost, ref)
	if s.ctx.Err() != nil {
		return fetched{}, false
	}
	if dead := s.r.s.deadError(s.e.Producers[ref.producer]); dead != nil { // and that is why the connection broke
		err = dead
	}
	err = s.r.s.because(s.e.Job, err)
	err = fmt.Errorf("shuffle: block of producer %d on node %s: %w", ref.producer, s.e.Producers[ref.producer], err)
	return fetched{err: err}, true
}

func (s *refSource) discard(f fetched) {
	if f.free != nil {
		f.free()
	}
	s.r.s.usage.fetched(f.bytes)
}

// needs is the exchange memory that a block will take: none if it is, or will be, in this node's store.
func (s *refSource) needs(q queuedRef) int64 {
	object := len(q.ref.GetObject()) > 0
	if object && (s.e.Producers[q.producer] == s.r.s.node.ID() || q.ref.GetSize() > bigBlock) {
		return 0
	}
	return q.ref.GetSize()
}

// room takes n bytes of the node's memory. Without room it waits until the block before is with the reader: then this one is
// the reader's reserve. False: the reader left.
func (s *refSource) room(n int64) bool {
	for !s.r.s.usage.fetch(n, len(s.out) == 0) {
		select {
		case <-s.taken:
		case <-s.ctx.Done():
			return false
		}
	}
	return true
}

// resolve gets one block into memory.
func (s *refSource) resolve(q queuedRef) (fetched, error) {
	s.n.Objects++
	here := s.e.Producers[q.producer] == s.r.s.node.ID()
	switch object := len(q.ref.GetObject()) > 0; {
	case here && object:
		return s.localObject(q.ref)
	case here:
		return s.localRange(q)
	case object && q.ref.GetSize() > bigBlock:
		return s.throughStore(q)
	}
	return s.farBlock(q)
}

// localObject reads an object of this node's store in place.
func (s *refSource) localObject(ref *shufflepb.Ref) (fetched, error) {
	id, err := objectstore.IDFromBytes(ref.GetObject())
	if err != nil {
		return fetched{}, err
	}
	o, err := s.r.s.node.Store().Get(id)
	if err != nil {
		return fetched{}, err
	}
	return fetched{data: o.Bytes(), free: func() {
		o.Release()
		s.r.s.releaseHere([]*shufflepb.Ref{ref}, spent)
	}}, nil
}

// localRange reads a range of a file of this node.
func (s *refSource) localRange(q queuedRef) (fetched, error) {
	b, err := s.r.s.openBlock(s.far.request(q))
	if err != nil {
		return fetched{}, err
	}
	hold, err := b.part(0, b.size())
	if err != nil {
		return fetched{}, err
	}
	data := hold.parts[0]
	if q.ref.GetSum() != 0 && sumOf(data) != q.ref.GetSum() {
		hold.release()
		return fetched{}, corruptRange(q.ref)
	}
	s.n.BytesCopied += int64(len(data))
	return fetched{data: data, free: hold.release}, nil
}

// farBlock fetches a block of another node.
func (s *refSource) farBlock(q queuedRef) (fetched, error) {
	var data []byte
	var at int64
	var sum digest
	err := s.far.fetch(q, &sum, func(w *wire, n int64) error {
		if data == nil { // not before there is an answer
			data = s.r.s.mem.Allocate(int(q.ref.GetSize()))
		}
		part := data[at : at+n]
		at += n
		return peerError(w.readBlock(part, &sum))
	})
	if err == nil && q.ref.GetSum() != 0 && sum.sum() != q.ref.GetSum() {
		err = corruptRange(q.ref)
	}
	if err != nil {
		if data != nil {
			s.r.s.mem.Free(data)
		}
		return fetched{}, err
	}
	s.far.release(q)
	s.n.BytesCopied += at
	return fetched{data: data, free: func() { s.r.s.mem.Free(data) }}, nil
}

func corruptRange(ref *shufflepb.Ref) error {
	return fmt.Errorf("%w: %d bytes at %d", ErrCorrupt, ref.GetSize(), ref.GetOffset())
}

// bigBlock is the size from which a fetched object goes to this node's store, whose limit it then counts in, and which can spill.
const bigBlock = 8 << 20

// throughStore fetches a large object in parts straight into this node's store.
func (s *refSource) throughStore(q queuedRef) (fetched, error) {
	s.r.s.relieve(q.ref.GetSize())
	store := s.r.s.node.Store()
	out, err := store.Create(string(s.e.Job), q.ref.GetSize())
	if err != nil {
		return fetched{}, fmt.Errorf("mode %s: %w", s.e.Mode, err)
	}
	buffer := s.r.s.mem.Allocate(sumChunk)
	defer s.r.s.mem.Free(buffer)
	var sum digest
	err = s.far.fetch(q, &sum, func(w *wire, n int64) error {
		for n > 0 {
			chunk := buffer[:min(n, sumChunk)]
			if err := w.read(chunk); err != nil {
				return peerError(err)
			}
			sum.add(chunk)
			if _, err := out.Write(chunk); err != nil {
				return err
			}
			n -= int64(len(chunk))
		}
		return nil
	})
	if err != nil {
		out.Abort()
		return fetched{}, err
	}
	id, err := out.Seal()
	if err != nil {
		return fetched{}, err
	}
	s.far.release(q)
	s.n.BytesCopied += q.ref.GetSize()
	return s.localObject(&shufflepb.Ref{Object: id[:], Holder: string(s.e.Job)})
}

func (s *refSource) fail(err error) { s.q.fail(err) }

func (s *refSource) close(n *Counters) {
	s.cancel()
	<-s.done
	select {
	case f := <-s.out:
		s.discard(f)
	default:
	}
	unread, received, peak, fate := s.q.close()
	if !s.r.job.over() { // else it has gone already
		s.n.ControlMessages += giveBack(s.r.s, s.e, fate, append(unread, s.lost...), s.owed)
	}
	s.n.References += received
	s.n.PeakQueued = peak
	n.Add(s.n)
}
