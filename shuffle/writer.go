package shuffle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/shuffle/keys"
	"manta/shuffle/rows"
)

// RouteKind says how a writer's rows find their partitions.
type RouteKind uint8

const (
	ByColumn   RouteKind = iota // each row to the partition that a UINT32 column names
	ToAll                       // each row to every partition
	To                          // all rows to one partition
	ByKey                       // rows of equal keys to the same partition
	ByRange                     // rows to the range that their keys are in
	RoundRobin                  // rows to all partitions in turn
)

// Route is where a writer's rows go.
type Route struct {
	Kind      RouteKind
	Column    int // of ByColumn: its position in the batches
	Partition int // of To

	Columns []int             // of ByKey: the keys' positions; see package keys for what is equal
	Keys    []keys.Key        // of ByRange
	Bounds  arrow.RecordBatch // of ByRange, borrowed until the writer's end: a column for each key, partitions-1 rows, in order
}

// WriterOptions say what a writer is given.
type WriterOptions struct {
	// Columns is the number of data columns, the first ones; the rest are for routing and are dropped.
	Columns int
	Route   Route
	// Schema is that of the data columns.
	Schema *arrow.Schema
	// Keep asks that the output be kept beyond its reading, in a mode that stores it, until the job's end or until its node
	// is short of memory: see Service.Adopt.
	Keep bool
}

// toAll stands for every partition where one is named.
const toAll = -1

// sink is a mode's side of a Writer. Its methods run on the writer's goroutine, fail and stop excepted.
type sink interface {
	// put takes a batch for a partition, or for all.
	put(p int, b arrow.RecordBatch) error
	// settle returns once the sink holds at most limit bytes; it may wait.
	settle(limit int64) error
	// finish sends what is left and END on every channel.
	finish() error
	// abort sends FAILED on every channel that has not ended.
	abort(err error)
	// held is the memory it holds.
	held() int64
	// done says that every reader has enough.
	done() bool
	// wants says whether partition p, or any for toAll, still has a reader.
	wants(p int) bool
	// release frees everything; last, and in any case.
	release()
}

// Writer is one producer's end of an edge. It is for one goroutine. End it with Close or Abort.
type Writer struct {
	s     *Service
	tc    *actors.TaskContext
	job   *job
	edge  *Edge
	opts  WriterOptions
	label string // of what it puts into the store
	route router
	rows  *rows.Builder
	sink  sink
	refs  *refWriter    // of the modes that store blocks
	kept  *kept         // when the output is to be kept
	id    int           // the producer's number
	wake  chan struct{} // capacity 1: something changed that settle may wait for

	held  int64 // as counted in the node's usage
	share int64 // of the node's memory
	ended bool
	n     Counters

	holds    atomic.Int64 // held, for the watchdog
	full     atomic.Bool  // it waits with more to write
	relieved atomic.Bool  // set by the watchdog: it must not wait

	failure atomic.Pointer[error] // set by fail, from outside
	once    sync.Once
}

// Writer opens producer's end of the edge. The task must run on the node that the edge names for it.
func (s *Service) Writer(tc *actors.TaskContext, e *Edge, producer int, o WriterOptions) (*Writer, error) {
	if err := s.checkProducer(e, producer); err != nil {
		return nil, err
	}
	switch {
	case o.Schema == nil || o.Columns != o.Schema.NumFields():
		return nil, fmt.Errorf("%w: %d data columns and a schema of another size", ErrEdge, o.Columns)
	case o.Route.Kind == To && (o.Route.Partition < 0 || o.Route.Partition >= len(e.Consumers)):
		return nil, fmt.Errorf("%w: route %+v for %d partitions", ErrEdge, o.Route, len(e.Consumers))
	}
	j, err := s.job(e.Job)
	if err != nil {
		return nil, err
	}
	w := newWriter(s, tc, j, e, producer)
	w.opts = o
	if w.route, err = newRouter(o, producer, len(e.Consumers)); err != nil {
		return nil, err
	}
	partitions := len(e.Consumers)
	if o.Route.Kind == ToAll || o.Route.Kind == To {
		partitions = 1
	}
	w.rows = rows.New(s.mem, o.Schema, partitions, int64(s.cfg.BatchBytes))
	s.usage.addWriters(1)
	if err := j.addWriter(w); err != nil {
		w.cleanup()
		return nil, err
	}
	if o.Keep && e.Mode != Streaming {
		if w.kept, err = j.keep(s, fileKey{e.ID, uint32(producer)}, o.Route.Kind == ToAll, len(e.Consumers)); err != nil {
			w.cleanup()
			return nil, err
		}
	}
	switch e.Mode {
	case Streaming:
		w.sink, err = newStreamSink(w, producer)
	case ObjectStore:
		w.sink = newObjectSink(w, producer)
	case Concat:
		w.sink = newConcatSink(w, producer)
	case Disk:
		w.sink, err = newDiskSink(w, producer)
	}
	if err != nil {
		w.cleanup()
		return nil, err
	}
	w.account()
	return w, nil
}

// checkProducer refuses an edge that this node does not write as the producer.
func (s *Service) checkProducer(e *Edge, producer int) error {
	if err := e.Validate(); err != nil {
		return err
	}
	if producer < 0 || producer >= len(e.Producers) || e.Producers[producer] != s.node.ID() {
		return fmt.Errorf("%w: %s has no producer %d on node %s", ErrEdge, e, producer, s.node.ID())
	}
	return nil
}

func newWriter(s *Service, tc *actors.TaskContext, j *job, e *Edge, producer int) *Writer {
	return &Writer{
		s: s, tc: tc, job: j, edge: e, id: producer, label: fmt.Sprintf("edge %d, producer %d", e.ID, producer), wake: make(chan struct{}, 1),
	}
}

func (j *job) addWriter(w *Writer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return fmt.Errorf("%w: %s", ErrJobEnded, j.id)
	}
	j.writers[w] = struct{}{}
	j.activity.enter(w.tc.Task)
	return nil
}

// account reports what the writer holds and adapts the size of batches to its share of the memory.
func (w *Writer) account() {
	now := w.rows.Bytes() + w.sink.held()
	w.share = w.s.usage.writerHolds(w.held, now)
	w.held = now
	w.holds.Store(now)
	w.n.PeakQueued = max(w.n.PeakQueued, now)
	// Builders hold half of the share at most; most often half of that, since they empty one after another.
	target := w.share / 2 / int64(w.rows.Partitions())
	w.rows.SetTarget(min(int64(w.s.cfg.BatchBytes), max(target, 1<<10)))
}

// Write sends the rows of batch (borrowed) on their way. It may wait for credit. After ErrClosed the caller should
// stop: every reader has enough.
func (w *Writer) Write(batch arrow.RecordBatch) error {
	if w.ended {
		return errors.New("shuffle: write after the end")
	}
	if err := w.check(); err != nil {
		return err
	}
	if w.sink.done() {
		return ErrClosed
	}
	// A batch that is large for the writer's share goes in slices.
	n := batch.NumRows()
	step := n
	if size := rows.Size(batch); size > w.share/4 {
		step = max(1, n*(w.share/4)/size)
	}
	if step >= n {
		return w.because(w.add(batch))
	}
	for from := int64(0); from < n; from += step {
		part := batch.NewSlice(from, min(n, from+step))
		err := w.add(part)
		part.Release()
		if err != nil {
			return w.because(err)
		}
	}
	return nil
}

// because returns what ended the writer from outside in place of what failed for it, as the store does without its job.
func (w *Writer) because(err error) error {
	if f := w.failure.Load(); err != nil && f != nil {
		return *f
	}
	return err
}

// add scatters a batch (borrowed) and waits until what is held is within the writer's share.
func (w *Writer) add(batch arrow.RecordBatch) error {
	err := w.route(w.rows, batch, w.emit)
	w.account()
	if err != nil {
		return err
	}
	return w.settle(w.share / 4)
}

// check returns why the writer cannot go on.
func (w *Writer) check() error {
	if err := w.failure.Load(); err != nil {
		return *err
	}
	return context.Cause(w.tc)
}

// emit passes a coalesced batch on.
func (w *Writer) emit(p int, b arrow.RecordBatch) error {
	switch w.opts.Route.Kind {
	case ToAll:
		p = toAll
	case To:
		p = w.opts.Route.Partition
	}
	if !w.sink.wants(p) {
		b.Release()
		return nil
	}
	return w.sink.put(p, b)
}

func (w *Writer) settle(limit int64) error {
	if w.sink.held() <= limit {
		return nil
	}
	w.full.Store(true)
	err := w.sink.settle(limit)
	w.full.Store(false)
	w.account()
	return err
}

// sent counts a batch that a partition got.
func (w *Writer) sent(rows, bytes int64) {
	w.n.Rows += rows
	w.n.Bytes += bytes
	w.n.Batches++
}

// wait gives the slot back until something changes.
func (w *Writer) wait() error {
	if err := w.check(); err != nil {
		return err
	}
	start := time.Now()
	w.job.activity.writers.Add(1)
	w.job.activity.waits.Add(1)
	defer func() {
		w.job.activity.writers.Add(-1)
		w.job.activity.waits.Add(-1)
		w.n.CreditWait += time.Since(start)
	}()
	return yield(w.tc, func() error {
		select {
		case <-w.wake:
			return w.check()
		case <-w.tc.Done():
			return context.Cause(w.tc)
		}
	})
}

// Close sends the rest and ends every channel. On error nothing is complete: the readers get the error.
func (w *Writer) Close() (Counters, error) {
	if w.ended {
		return w.n, nil
	}
	err := w.check()
	if err == nil {
		err = w.rows.Flush(w.emit)
		w.account()
	}
	if err == nil {
		err = w.sink.finish()
	}
	if err = w.because(err); err != nil {
		w.Abort(err)
		return w.n, err
	}
	if w.kept != nil {
		w.kept.end(w.refs.allWanted())
	}
	w.ended = true
	w.cleanup()
	return w.n, nil
}

// Kept says, after Close, whether the whole output is kept: see WriterOptions.Keep.
func (w *Writer) Kept() bool { return w.ended && w.kept != nil && w.kept.isWhole() }

// Abort ends every channel as failed. After Close or Abort it does nothing.
func (w *Writer) Abort(err error) {
	if w.ended {
		return
	}
	w.ended = true
	if err == nil {
		err = errors.New("aborted")
	}
	if !errors.Is(err, ErrProducer) {
		err = fmt.Errorf("%w: %s: %w", ErrProducer, w.name(), err)
	}
	w.sink.abort(err)
	if w.kept != nil {
		w.kept.end(false)
	}
	w.cleanup()
}

// name names the producer in errors.
func (w *Writer) name() string { return fmt.Sprintf("task %s on node %s", w.tc.Task, w.s.node.ID()) }

// fail ends the writer from outside: what it waits for will not come.
func (w *Writer) fail(err error) {
	w.failure.CompareAndSwap(nil, &err)
	poke(w.wake)
}

// cleanup frees everything, once.
func (w *Writer) cleanup() {
	w.once.Do(func() {
		w.rows.Release()
		if w.sink != nil {
			w.sink.release()
		}
		w.s.usage.writerHolds(w.held, 0)
		w.s.usage.addWriters(-1)
		w.held = 0
		w.job.mu.Lock()
		_, added := w.job.writers[w]
		delete(w.job.writers, w)
		w.job.mu.Unlock()
		if added {
			w.job.activity.leave(w.tc.Task)
		}
	})
}
