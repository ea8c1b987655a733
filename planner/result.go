package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"google.golang.org/grpc"

	"manta/planner/wire"
)

// Result is a query's rows as they arrive: an array.RecordReader. One goroutine
// reads it; Cancel and Progress may be called from others. After Next has
// returned false, Err tells whether the rows are complete: a result without an
// error is never a short one.
type Result struct {
	ctx     context.Context
	stream  grpc.ServerStreamingClient[wire.QueryEvent]
	cancel  context.CancelCauseFunc
	refs    atomic.Int64
	job     string
	types   []string
	schema  *arrow.Schema
	part    []byte              // the beginning of a block
	pending []arrow.RecordBatch // retained
	current arrow.RecordBatch   // retained, or nil
	stats   QueryStats
	explain string // of ExplainAnalyze
	err     error
	ended   bool

	tasks, tasksDone atomic.Int64
}

var _ array.RecordReader = (*Result)(nil)

// errReleased is why the rest of a query is cancelled when its result is released early.
var errReleased = errors.New("planner: the result was released before its end")

// ErrCancelled is the error of a query that was cancelled by its client.
var ErrCancelled = errors.New("planner: query cancelled")

// newResult waits for the event that tells the columns.
func newResult(ctx context.Context, stream grpc.ServerStreamingClient[wire.QueryEvent], cancel context.CancelCauseFunc) (*Result, error) {
	r := &Result{ctx: ctx, stream: stream, cancel: cancel}
	r.refs.Store(1)
	for r.schema == nil {
		event, err := stream.Recv()
		if err == io.EOF {
			return nil, errors.New("planner: the head ended the query without an answer")
		}
		if err != nil {
			return nil, r.reason(err)
		}
		if err := r.take(event); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Job is the id of the query's job on the cluster; it changes, as Next finds out, when the query loses a node and
// starts again.
func (r *Result) Job() string { return r.job }

// Schema is the Arrow schema of the rows.
func (r *Result) Schema() *arrow.Schema { return r.schema }

// Types are DuckDB's names of the columns' types.
func (r *Result) Types() []string { return r.types }

// Next moves to the next batch. It returns false at the end and after an error.
func (r *Result) Next() bool {
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	for len(r.pending) == 0 {
		if r.ended {
			return false
		}
		event, err := r.stream.Recv()
		switch {
		case err == io.EOF:
			r.fail(errors.New("planner: the head broke off the result"))
		case err != nil:
			r.fail(r.reason(err))
		default:
			if err := r.take(event); err != nil {
				r.fail(err)
			}
		}
	}
	r.current, r.pending = r.pending[0], r.pending[1:]
	return true
}

// RecordBatch is the current batch; it is valid until the next call of Next.
func (r *Result) RecordBatch() arrow.RecordBatch { return r.current }

// Record is RecordBatch under its former name, which the interface still asks for.
func (r *Result) Record() arrow.RecordBatch { return r.current }

// Err is the query's error, once Next has returned false.
func (r *Result) Err() error { return r.err }

// Stats tells what the query did. It is complete once Next has returned false without an error.
func (r *Result) Stats() QueryStats { return r.stats }

// Progress tells how many of the query's tasks have ended.
func (r *Result) Progress() (done, total int) {
	return int(r.tasksDone.Load()), int(r.tasks.Load())
}

// Cancel ends the query on every node. The reader then sees ErrCancelled.
func (r *Result) Cancel() { r.cancel(ErrCancelled) }

// Retain adds a holder.
func (r *Result) Retain() { r.refs.Add(1) }

// Release drops a holder; with the last one the result's memory is freed, and
// the query is cancelled if it has not ended.
func (r *Result) Release() {
	if r.refs.Add(-1) != 0 {
		return
	}
	r.cancel(errReleased)
	if r.current != nil {
		r.current.Release()
		r.current = nil
	}
	for _, b := range r.pending {
		b.Release()
	}
	r.pending = nil
}

func (r *Result) fail(err error) {
	r.err, r.ended = err, true
	r.cancel(err)
}

// reason prefers why this side ended the call over what the RPC says of it.
func (r *Result) reason(err error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return remoteError(err)
}

// take applies one event.
func (r *Result) take(event *wire.QueryEvent) error {
	switch e := event.Event.(type) {
	case *wire.QueryEvent_Started:
		reader, err := ipc.NewReader(bytes.NewReader(e.Started.Schema))
		if err != nil {
			return fmt.Errorf("planner: schema of the result: %w", err)
		}
		defer reader.Release()
		r.job = e.Started.Job
		if r.schema == nil { // else the query starts again, with the same columns
			r.types, r.schema = e.Started.Types, reader.Schema()
		}
	case *wire.QueryEvent_Progress:
		r.tasks.Store(int64(e.Progress.Tasks))
		r.tasksDone.Store(int64(e.Progress.TasksDone))
	case *wire.QueryEvent_Part:
		r.part = append(r.part, e.Part...)
	case *wire.QueryEvent_Block:
		block := e.Block
		if r.part != nil {
			block, r.part = append(r.part, block...), nil
		}
		return r.takeBlock(block)
	case *wire.QueryEvent_Finished:
		r.stats, r.explain, r.ended = statsFromWire(e.Finished.Stats), e.Finished.Explain, true
	}
	return nil
}

// takeBlock decodes an IPC stream into pending batches.
func (r *Result) takeBlock(block []byte) error {
	reader, err := ipc.NewReader(bytes.NewReader(block))
	if err != nil {
		return fmt.Errorf("planner: rows of the result: %w", err)
	}
	defer reader.Release()
	for reader.Next() {
		b := reader.RecordBatch()
		b.Retain()
		r.pending = append(r.pending, b)
	}
	return reader.Err()
}
