package shuffle

import (
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/shuffle/credit"
)

// streamItem is a batch in a queue: as it was handed over within the node, or as the block that came from another one.
type streamItem struct {
	producer int
	cost     int64
	batch    arrow.RecordBatch // owned, or nil
	block    []byte            // owned, of the service's allocator
}

// streamQueue is the queue of one partition in streaming mode.
type streamQueue struct {
	s    *Service
	name string
	wake chan struct{} // of the reader, capacity 1

	mu      sync.Mutex
	ports   map[int]backChannel // guarded by mu, like all below; by producer
	format  *format             // of the reader; nil before there is one
	early   map[int]struct{}    // producers that ended empty before there was a reader
	rx      *credit.Receiver    // nil before there is a reader
	nodes   []actors.NodeID     // of the producers; nil before there is a reader
	items   fifo[streamItem]
	err     error // the end, if it is a failure
	over    bool  // the reader has got all, or enough
	peak    int64
	control int64
}

func newStreamQueue(s *Service, name string) *streamQueue {
	return &streamQueue{
		s: s, name: name, wake: make(chan struct{}, 1),
		ports: map[int]backChannel{}, early: map[int]struct{}{},
	}
}

// open takes the back channel of producer i. A queue that is over answers CLOSED, one that failed or does not know the
// producer FAILED; then what is said on it has no effect. Credit is given once there is a reader.
func (q *streamQueue) open(i int, b backChannel) {
	q.mu.Lock()
	_, twice := q.ports[i]
	var err error
	switch {
	case q.err != nil:
		err = q.err
	case q.over:
		q.mu.Unlock()
		if !without(leaving) {
			b.closed()
		}
		return
	case twice:
		err = fmt.Errorf("%w: producer %d opens %s twice", ErrEdge, i, q.name)
	default:
		err = q.checkPort(i, b)
	}
	if err != nil {
		q.mu.Unlock()
		b.failed(err)
		return
	}
	q.ports[i] = b
	if q.rx == nil {
		q.mu.Unlock()
		return
	}
	g := q.rx.Grant(i)
	q.control++
	q.mu.Unlock()
	b.grant(g)
}

// checkPort refuses a producer that is not the edge's. mu is held.
func (q *streamQueue) checkPort(i int, b backChannel) error {
	if i < 0 || i >= maxTasks || q.rx != nil && (i >= len(q.nodes) || q.nodes[i] != b.node()) {
		return fmt.Errorf("%w: %s has no producer %d on node %s", ErrEdge, q.name, i, b.node())
	}
	return nil
}

// attach is the reader's arrival: every channel gets its first credit.
func (q *streamQueue) attach(producers []actors.NodeID, f *format) error {
	q.mu.Lock()
	if q.err != nil {
		defer q.mu.Unlock()
		return q.err
	}
	if q.rx != nil {
		defer q.mu.Unlock()
		return fmt.Errorf("%w: %s has a reader", ErrEdge, q.name)
	}
	q.nodes, q.format = producers, f
	q.s.usage.update(func(b *credit.Budget) { q.rx = credit.NewReceiver(b, len(producers)) })
	var tell []func()
	for i, b := range q.ports {
		if err := q.checkPort(i, b); err != nil {
			delete(q.ports, i)
			tell = append(tell, func() { b.failed(err) })
			continue
		}
		if _, ended := q.early[i]; ended {
			q.update(func() { _ = q.rx.End(i, 0, 0) })
			continue
		}
		g := q.rx.Grant(i)
		q.control++
		tell = append(tell, func() { b.grant(g) })
	}
	q.mu.Unlock()
	for _, f := range tell {
		f()
	}
	return nil
}

// update runs f, which changes rx, with the budget's lock. mu is held.
func (q *streamQueue) update(f func()) { q.s.usage.update(func(*credit.Budget) { f() }) }

// formatOf is the reader's format, once there is credit.
func (q *streamQueue) formatOf() *format {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.format
}

// admit takes batch seq of n bytes of producer i, whose back channel is b, into account before its memory is allocated.
// False: drop it.
func (q *streamQueue) admit(i int, b backChannel, seq uint64, n int64) (ok bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.err != nil || q.over || q.ports[i] != b:
		return false, nil
	case q.rx == nil:
		return false, fmt.Errorf("%w: %s got a batch without a grant", credit.ErrProtocol, q.name)
	}
	q.update(func() { ok, err = q.rx.Arrive(i, seq, n) })
	q.peak = max(q.peak, q.rx.Queued())
	return ok, err
}

// deliver puts an admitted item (taken) into the queue.
func (q *streamQueue) deliver(it streamItem) {
	q.mu.Lock()
	if q.err != nil || q.over {
		q.mu.Unlock()
		q.drop(it)
		return
	}
	q.items.push(it)
	q.mu.Unlock()
	poke(q.wake)
}

func (q *streamQueue) drop(it streamItem) {
	if it.batch != nil {
		it.batch.Release()
	}
	if it.block != nil {
		q.s.mem.Free(it.block)
	}
}

// next returns the next item (the caller's), io.EOF at the end, or false when there is nothing yet.
func (q *streamQueue) next() (it streamItem, ok bool, err error) {
	q.mu.Lock()
	if q.err != nil {
		defer q.mu.Unlock()
		return it, false, q.err
	}
	if q.items.len() == 0 {
		defer q.mu.Unlock()
		if q.over || q.rx.Done() {
			q.over = true
			return it, false, io.EOF
		}
		return it, false, nil
	}
	it = q.items.pop()
	var g credit.Grant
	var tell bool
	q.update(func() { g, tell = q.rx.Take(it.producer, it.cost) })
	b := q.ports[it.producer]
	if tell {
		q.control++
	}
	q.mu.Unlock()
	if tell {
		b.grant(g)
	}
	return it, true, nil
}

// end takes END of producer i.
func (q *streamQueue) end(i int, b backChannel, batches uint64, bytes int64) {
	q.mu.Lock()
	if q.err != nil || q.over || q.ports[i] != b {
		q.mu.Unlock()
		return
	}
	var err error
	switch {
	case q.rx != nil:
		q.update(func() { err = q.rx.End(i, batches, bytes) })
	case batches == 0:
		q.early[i] = struct{}{}
	default:
		err = fmt.Errorf("%w: %s got END of %d batches without a grant", credit.ErrProtocol, q.name, batches)
	}
	q.mu.Unlock()
	if err != nil {
		q.fail(err)
	}
	poke(q.wake)
}

// ended says whether producer i's channel has ended. mu is held.
func (q *streamQueue) ended(i int) bool {
	if q.rx == nil {
		_, ok := q.early[i]
		return ok
	}
	return q.rx.State(i) != credit.Open
}

// lost fails the queue if producer i, whose back channel is b, has not ended.
func (q *streamQueue) lost(i int, b backChannel, err error) {
	q.mu.Lock()
	live := q.ports[i] == b && !q.ended(i)
	q.mu.Unlock()
	if live {
		q.fail(err)
	}
}

func (q *streamQueue) nodeDead(node actors.NodeID, err error) {
	q.mu.Lock()
	hit := false
	if q.rx == nil {
		for i, b := range q.ports {
			hit = hit || b.node() == node && !q.ended(i)
		}
	}
	for i, n := range q.nodes {
		hit = hit || n == node && !q.ended(i)
	}
	q.mu.Unlock()
	if hit {
		q.fail(err)
	}
}

func (q *streamQueue) fail(err error) {
	q.stop(err, func(b backChannel) { b.failed(err) })
}

// close is the reader's leave. It returns the peak of queued bytes and the number of messages sent to producers.
func (q *streamQueue) close() (peak, control int64) {
	q.stop(nil, func(b backChannel) { b.closed() })
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.peak, q.control
}

// stop ends the queue, with a failure or because the reader has enough, and tells the producers that have not ended.
func (q *streamQueue) stop(err error, tell func(backChannel)) {
	q.mu.Lock()
	if q.err != nil || q.over && q.items.len() == 0 {
		q.mu.Unlock()
		return
	}
	var told []backChannel
	for i, b := range q.ports {
		if !q.ended(i) {
			told = append(told, b)
		}
	}
	q.err = err
	q.over = true
	if q.rx != nil {
		q.update(func() { q.rx.Close() })
	}
	items := q.items.takeAll()
	q.control += int64(len(told))
	q.mu.Unlock()
	for _, it := range items {
		q.drop(it)
	}
	for _, b := range told {
		tell(b)
	}
	poke(q.wake)
}
