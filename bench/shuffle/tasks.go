package shuffle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

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
}

// done is the result of one.
type done struct {
	Rows, Sum int64
	Counters  exchange.Counters
	Process   limits.Process
	Stats     exchange.Stats
	Spilled   int64 // by the object store
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
		b.Release()
	}
	d.Counters = in.Close()
	return d, nil
}
