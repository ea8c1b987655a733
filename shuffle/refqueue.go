package shuffle

import (
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// queuedRef is a reference and where its block lies.
type queuedRef struct {
	producer int
	ref      *shufflepb.Ref
}

// refQueue is the queue actor of one partition in the modes that store blocks: references come in as messages, the
// reader takes them out. It makes no producer wait.
type refQueue struct {
	s     *Service
	actor *actors.Actor // immutable after the queue is in its job
	wake  chan struct{} // of the reader, capacity 1

	mu       sync.Mutex
	channels map[int]*refChannel // guarded by mu, like all below; by producer
	nodes    []actors.NodeID     // of the producers; nil before there is a reader
	barrier  bool                // nothing is read before all have ended
	left     int                 // producers that have not ended
	refs     fifo[queuedRef]
	bytes    int64
	peak     int64
	err      error
	over     bool
}

// refChannel is what a queue knows of one producer.
type refChannel struct {
	from  actors.NodeID
	next  uint64 // references taken
	ended bool
}

func newRefQueue(s *Service) *refQueue {
	return &refQueue{s: s, wake: make(chan struct{}, 1), channels: map[int]*refChannel{}}
}

// queueName names a partition's queue actor.
func queueName(id actors.JobID, k queueKey) string {
	return fmt.Sprintf("shuffle/%s/%d/%d", id, k.edge, k.partition)
}

// handle is the actor.
func (q *refQueue) handle(_ context.Context, from actors.NodeID, m proto.Message) (proto.Message, error) {
	refs, ok := m.(*shufflepb.Refs)
	if !ok {
		return nil, fmt.Errorf("%w: message %T", ErrEdge, m)
	}
	closed, err := q.take(from, refs)
	if err != nil {
		return nil, err
	}
	return &shufflepb.RefsReply{Closed: closed}, nil
}

// take adds what a message brings. True: the reader has enough, nothing was taken.
func (q *refQueue) take(from actors.NodeID, m *shufflepb.Refs) (closed bool, err error) {
	defer poke(q.wake)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false, fmt.Errorf("%w: %w", ErrReader, q.err)
	}
	if q.over {
		return true, nil
	}
	i := int(m.GetChannel().GetProducer())
	c := q.channels[i]
	if c == nil {
		c = &refChannel{from: from}
		if err := q.check(i, c); err != nil {
			return false, err
		}
		q.channels[i] = c
	}
	switch {
	case c.from != from:
		return false, fmt.Errorf("%w: producer %d is on node %s, not %s", ErrEdge, i, c.from, from)
	case c.ended:
		return false, nil // a repeat of the last message
	case m.GetFirst() > c.next:
		return false, fmt.Errorf("%w: reference %d of producer %d where %d is due", credit.ErrProtocol, m.GetFirst(), i, c.next)
	}
	for n, r := range m.GetRefs() {
		if m.GetFirst()+uint64(n) < c.next {
			continue
		}
		if r.GetSize() < 0 || r.GetOffset() < 0 {
			return false, fmt.Errorf("%w: reference to %d bytes at %d", ErrEdge, r.GetSize(), r.GetOffset())
		}
		c.next++
		q.refs.push(queuedRef{producer: i, ref: r})
		q.bytes += r.GetSize()
	}
	q.peak = max(q.peak, q.bytes)
	switch {
	case m.GetFailed() != "":
		q.stop(decodeFailure([]byte(m.GetFailed())))
	case m.GetEnd():
		c.ended = true
		q.left--
	}
	return false, nil
}

// check refuses a producer that is not the edge's. mu is held.
func (q *refQueue) check(i int, c *refChannel) error {
	if i >= maxTasks || q.nodes != nil && (i >= len(q.nodes) || q.nodes[i] != c.from) {
		return fmt.Errorf("%w: no producer %d on node %s", ErrEdge, i, c.from)
	}
	return nil
}

// attach is the reader's arrival.
func (q *refQueue) attach(producers []actors.NodeID, barrier bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	if q.nodes != nil {
		return fmt.Errorf("%w: the partition has a reader", ErrEdge)
	}
	q.nodes, q.barrier = producers, barrier
	q.left += len(producers)
	for i, c := range q.channels {
		if err := q.check(i, c); err != nil {
			q.stop(err)
			return err
		}
	}
	return nil
}

// next returns the next reference, io.EOF at the end, or false when there is none yet.
func (q *refQueue) next() (r queuedRef, ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil:
		return r, false, q.err
	case q.left > 0 && q.barrier:
		return r, false, nil
	case q.refs.len() > 0:
		r = q.refs.pop()
		q.bytes -= r.ref.GetSize()
		return r, true, nil
	case q.left > 0:
		return r, false, nil
	}
	q.over = true
	return r, false, io.EOF
}

func (q *refQueue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop(err)
}

// stop ends the queue with a failure, unless it is over. What is queued is not read then, and close gives it back. mu is held.
func (q *refQueue) stop(err error) {
	if q.err == nil && !q.over {
		q.err = err
		poke(q.wake)
	}
}

func (q *refQueue) nodeDead(node actors.NodeID, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	hit := false
	for i, n := range q.nodes {
		c := q.channels[i]
		hit = hit || n == node && (c == nil || !c.ended)
	}
	for i := range q.refs.len() {
		producer := q.refs.items[q.refs.head+i].producer
		hit = hit || q.channels[producer].from == node
	}
	if hit {
		q.stop(err)
	}
}

// close is the reader's leave: it returns the references that it will not read, and what becomes of them.
func (q *refQueue) close() (unread []queuedRef, received, peak int64, how fate) {
	q.mu.Lock()
	defer q.mu.Unlock()
	how = missed
	if q.err == nil {
		q.over, how = true, spent
	}
	for _, c := range q.channels {
		received += int64(c.next)
	}
	q.bytes = 0
	return q.refs.takeAll(), received, q.peak, how
}
