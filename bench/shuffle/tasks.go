package shuffle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/bench/limits"
	exchange "manta/shuffle"
)

// worker is what a node's tasks share.
type worker struct {
	exchange *exchange.Service

	mu      sync.Mutex
	inputs  map[string]*input // guarded by mu; by shape and producer
	before  limits.Process    // guarded by mu, as is spilled; at the begin of the run
	spilled int64             // by the object store
}

// run is the argument of a task.
type run struct {
	Shape shape
	Edge  []byte
	Index int   // of the producer, or the partition
	Rows  int64 // that a producer writes

	Slow slow // of a reader
}

// slow bounds what a reader takes, for some time from its start; then it takes the rest as fast as it can, so that a run ends.
type slow struct {
	Rate int64 // bytes a second; 0: all it can
	For  time.Duration
}

// pause is how long a reader waits after n bytes.
func (s slow) pause(n int64, start time.Time) time.Duration {
	left := s.For - time.Since(start)
	if s.Rate == 0 || left <= 0 {
		return 0
	}
	return min(left, time.Duration(float64(n)/float64(s.Rate)*float64(time.Second)))
}

// done is the result of one.
type done struct {
	Rows, Sum int64
	Counters  exchange.Counters
	Process   limits.Process
	Stats     exchange.Stats
	Spilled   int64 // by the object store
	Took      time.Duration
}

// tasks are the functions that nodes run.
func (w *worker) tasks() map[string]actors.TaskFunc {
	task := func(do func(*actors.TaskContext, *run) (*done, error)) actors.TaskFunc {
		return func(tc *actors.TaskContext, arg []byte) ([]byte, error) {
			var r run
			if err := json.Unmarshal(arg, &r); err != nil {
				return nil, err
			}
			d, err := do(tc, &r)
			if err != nil {
				return nil, err
			}
			return json.Marshal(d)
		}
	}
	return map[string]actors.TaskFunc{
		"begin": task(w.begin), "prepare": task(w.prepare), "produce": task(w.produce), "consume": task(w.consume), "end": task(w.end),
	}
}

// prepare makes a producer's input, unless it is there.
func (w *worker) prepare(_ *actors.TaskContext, r *run) (*done, error) {
	w.input(r)
	return &done{}, nil
}

func (w *worker) input(r *run) *input {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(r.Shape, r.Index)
	in := w.inputs[key]
	if in == nil {
		in = makeInput(r.Shape, uint64(r.Index))
		w.inputs[key] = in
	}
	return in
}

func (w *worker) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, in := range w.inputs {
		in.release()
	}
	clear(w.inputs)
}

// begin starts the process's peak and time.
func (w *worker) begin(tc *actors.TaskContext, _ *run) (*done, error) {
	limits.ResetPeak()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = limits.ThisProcess()
	w.spilled = tc.Node.Store().Stats().BytesSpilled
	return &done{}, nil
}

// end tells what the process used since.
func (w *worker) end(tc *actors.TaskContext, _ *run) (*done, error) {
	p := limits.ThisProcess()
	w.mu.Lock()
	defer w.mu.Unlock()
	p.CPU -= w.before.CPU
	return &done{Process: p, Stats: w.exchange.Stats(), Spilled: tc.Node.Store().Stats().BytesSpilled - w.spilled}, nil
}

func (w *worker) produce(tc *actors.TaskContext, r *run) (*done, error) {
	var e exchange.Edge
	if err := e.UnmarshalBinary(r.Edge); err != nil {
		return nil, err
	}
	out, err := w.exchange.Writer(tc, &e, r.Index, exchange.WriterOptions{
		Columns: r.Shape.Columns, Schema: r.Shape.schema(),
		Route: exchange.Route{Kind: exchange.ByColumn, Column: r.Shape.Columns},
	})
	if err != nil {
		return nil, err
	}
	sum, err := w.input(r).each(r.Rows, func(b arrow.RecordBatch) error { return out.Write(b) })
	if err != nil {
		out.Abort(err)
		return nil, err
	}
	n, err := out.Close()
	return &done{Rows: r.Rows, Sum: sum, Counters: n}, err
}

// sleep waits without a slot, as a reader would that is slow because of something else than its core.
func sleep(tc *actors.TaskContext, d time.Duration) error {
	if d == 0 {
		return nil
	}
	return tc.Yield(func() error {
		select {
		case <-time.After(d):
			return nil
		case <-tc.Done():
			return context.Cause(tc)
		}
	})
}

func (w *worker) consume(tc *actors.TaskContext, r *run) (*done, error) {
	var e exchange.Edge
	if err := e.UnmarshalBinary(r.Edge); err != nil {
		return nil, err
	}
	in, err := w.exchange.Reader(tc, &e, r.Index, r.Shape.schema())
	if err != nil {
		return nil, err
	}
	d := &done{}
	start := time.Now()
	for {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			in.Close()
			return nil, err
		}
		d.Rows += b.NumRows()
		d.Sum += sumFirst(b)
		pause := r.Slow.pause(b.NumRows()*r.Shape.width(), start)
		b.Release()
		if err := sleep(tc, pause); err != nil {
			in.Close()
			return nil, err
		}
	}
	d.Took = time.Since(start)
	d.Counters = in.Close()
	return d, nil
}
