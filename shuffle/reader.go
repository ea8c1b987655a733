package shuffle

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/actors"
	"manta/objectstore/block"
	"manta/shuffle/rows"
)

// source is a mode's side of a Reader, on the reader's goroutine.
type source interface {
	// next returns a batch (retained), or blocks of several through a block.Reader, or neither when there is nothing yet.
	next() (arrow.RecordBatch, *block.Reader, error)
	// ready is signalled when next may have something.
	ready() <-chan struct{}
	// fail says that its reader failed, before close.
	fail(err error)
	// close ends it, early or late, and adds what it counted.
	close(n *Counters)
}

// Reader is one partition's end of an edge. It is for one goroutine. End it with Close.
type Reader struct {
	s      *Service
	tc     *actors.TaskContext
	job    *job
	schema *arrow.Schema
	src    source
	block  *block.Reader // being read
	err    error         // sticky, io.EOF included
	closed bool
	once   sync.Once
	n      Counters
}

// Reader opens a partition's end of the edge, which there is one of. Its batches have the schema; batches of other types are an
// error. The task must run on the node that the edge names for the partition.
func (s *Service) Reader(tc *actors.TaskContext, e *Edge, partition int, schema *arrow.Schema) (*Reader, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}
	if partition < 0 || partition >= len(e.Consumers) || e.Consumers[partition] != s.node.ID() {
		return nil, fmt.Errorf("%w: %s has no partition %d on node %s", ErrEdge, e, partition, s.node.ID())
	}
	if schema == nil {
		return nil, fmt.Errorf("%w: no schema", ErrEdge)
	}
	j, err := s.job(e.Job)
	if err != nil {
		return nil, err
	}
	r := &Reader{s: s, tc: tc, job: j, schema: schema}
	if e.Mode == Streaming {
		r.src, err = newStreamSource(r, e, partition)
	} else {
		r.src, err = newRefSource(r, e, partition)
	}
	if err != nil {
		return nil, err
	}
	s.readers.Add(1)
	j.activity.enter(tc.Task)
	return r, nil
}

// Next returns the next batch, retained, or io.EOF once every producer has ended. It waits inside tc.Yield. A producer's
// failure comes at once, whatever is queued.
func (r *Reader) Next() (arrow.RecordBatch, error) {
	for r.err == nil {
		b, err := r.try()
		if err != nil {
			r.err = err
			break
		}
		if b != nil {
			r.job.activity.moved.Add(1)
			r.n.Rows += b.NumRows()
			r.n.Bytes += rows.Size(b)
			r.n.Batches++
			return b, nil
		}
	}
	return nil, r.err
}

// try makes one step: a batch, or nil after a wait or between blocks.
func (r *Reader) try() (arrow.RecordBatch, error) {
	if r.closed {
		return nil, io.EOF
	}
	if r.block != nil {
		b, err := r.block.Next()
		if err == io.EOF {
			r.block.Close()
			r.block = nil
			return nil, nil
		}
		return b, err
	}
	if err := context.Cause(r.tc); err != nil {
		return nil, err
	}
	b, blk, err := r.src.next()
	if err != nil {
		return nil, err
	}
	switch {
	case blk != nil:
		r.block = blk
	case b == nil:
		return nil, r.wait()
	}
	return b, nil
}

// wait gives the slot back until there may be input.
func (r *Reader) wait() error {
	start := time.Now()
	r.job.activity.waits.Add(1)
	defer func() {
		r.job.activity.waits.Add(-1)
		r.n.InputWait += time.Since(start)
	}()
	return yield(r.tc, func() error {
		select {
		case <-r.src.ready():
			return nil
		case <-r.tc.Done():
			return context.Cause(r.tc)
		case <-r.job.ctx.Done():
			return context.Cause(r.job.ctx)
		}
	})
}

// Close ends reading; before io.EOF it tells the producers to stop. Batches that were returned stay valid.
func (r *Reader) Close() Counters {
	r.once.Do(func() {
		r.closed = true
		if r.block != nil {
			r.block.Close()
			r.block = nil
		}
		r.src.close(&r.n)
		r.s.readers.Add(-1)
		r.job.activity.leave(r.tc.Task)
	})
	return r.n
}

// Abort is Close for a reader whose task failed: it did not have enough. A producer that keeps what it stores goes on for the
// sake of that; another one fails.
func (r *Reader) Abort(err error) Counters {
	if !r.closed {
		r.src.fail(err)
	}
	return r.Close()
}

// conform gives a batch (taken) the reader's schema.
func (r *Reader) conform(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if b.Schema() == r.schema {
		return b, nil
	}
	defer b.Release()
	if int(b.NumCols()) != r.schema.NumFields() {
		return nil, fmt.Errorf("%w: %d columns where %d are due", block.ErrSchema, b.NumCols(), r.schema.NumFields())
	}
	for i, c := range b.Columns() {
		if f := r.schema.Field(i); !arrow.TypeEqual(c.DataType(), f.Type) {
			return nil, fmt.Errorf("%w: column %d (%s) has type %s where %s is due", block.ErrSchema, i, f.Name, c.DataType(), f.Type)
		}
	}
	return array.NewRecordBatch(r.schema, b.Columns(), b.NumRows()), nil
}

// yield gives a task's slot back while wait runs.
func yield(tc *actors.TaskContext, wait func() error) error {
	if without(fewSlots) {
		return wait()
	}
	return tc.Yield(wait)
}
