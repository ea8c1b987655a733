package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Rows is the result of a query, produced while it is read. It is used by one goroutine at a time.
type Rows struct {
	conn    *Conn
	ctx     context.Context
	watch   *watch
	stmt    duckdb.PreparedStatement
	pending duckdb.PendingResult
	result  duckdb.Result
	options duckdb.ArrowOptions
	schema  *arrow.Schema
	types   []string
	end     error // io.EOF or what went wrong; nil while there may be more
	closed  bool
}

// Query starts a statement and returns when its first rows are ready, or its last ones are known not to come. ctx
// covers the whole life of the result. Of several statements, which DuckDB also makes of some single ones (PIVOT), the
// last gives the result.
func (c *Conn) Query(ctx context.Context, sql string) (*Rows, error) {
	return c.begin(ctx, sql, (*Rows).start)
}

// begin makes a result that start begins.
func (c *Conn) begin(ctx context.Context, sql string, start func(*Rows, string) error) (*Rows, error) {
	if err := c.ready(ctx, sql); err != nil {
		return nil, err
	}
	r := &Rows{conn: c, ctx: ctx}
	c.rows = r
	r.watch = startWatch(ctx, c.handle)
	if err := start(r, sql); err != nil {
		r.end = err
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rows) start(sql string) error {
	c := r.conn
	var all duckdb.ExtractedStatements
	defer duckdb.DestroyExtracted(&all)
	n := duckdb.ExtractStatements(c.handle, sql, &all)
	if n == 0 {
		if message := duckdb.ExtractStatementsError(all); message != "" {
			return c.failure(r.ctx, message)
		}
		return &Error{Type: "Parser", Message: "the text holds no statement"}
	}
	for i := range n - 1 {
		if err := c.runExtracted(r.ctx, all, i); err != nil {
			return err
		}
	}
	if duckdb.PrepareExtractedStatement(c.handle, all, n-1, &r.stmt) != duckdb.StateSuccess {
		return c.failure(r.ctx, duckdb.PrepareError(r.stmt))
	}
	if duckdb.PendingPreparedStreaming(r.stmt, &r.pending) != duckdb.StateSuccess {
		return c.failure(r.ctx, duckdb.PendingError(r.pending))
	}
	if duckdb.ExecutePending(r.pending, &r.result) != duckdb.StateSuccess {
		return c.failure(r.ctx, duckdb.ResultError(&r.result))
	}
	return r.started()
}

// collect runs statements to their end, for results of a few rows. What is prepared and reads files DuckDB plans twice.
func (r *Rows) collect(sql string) error {
	if duckdb.Query(r.conn.handle, sql, &r.result) != duckdb.StateSuccess {
		return r.conn.failure(r.ctx, duckdb.ResultError(&r.result))
	}
	return r.started()
}

// started takes the result's schema.
func (r *Rows) started() error {
	r.options = duckdb.ResultGetArrowOptions(&r.result)
	var err error
	r.schema, r.types, err = resultSchema(&r.result, r.options)
	return err
}

// runExtracted runs a statement whose result nobody wants.
func (c *Conn) runExtracted(ctx context.Context, all duckdb.ExtractedStatements, i duckdb.IdxT) error {
	var stmt duckdb.PreparedStatement
	defer duckdb.DestroyPrepare(&stmt)
	if duckdb.PrepareExtractedStatement(c.handle, all, i, &stmt) != duckdb.StateSuccess {
		return c.failure(ctx, duckdb.PrepareError(stmt))
	}
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.ExecutePrepared(stmt, &result) != duckdb.StateSuccess {
		return c.failure(ctx, duckdb.ResultError(&result))
	}
	return nil
}

// Schema is that of all batches. Types that Arrow does not have are in the storage type that DuckDB gives them,
// with the extension's name in the field's metadata.
func (r *Rows) Schema() *arrow.Schema { return r.schema }

// Types returns DuckDB's names of the columns' types, as DESCRIBE would show them.
func (r *Rows) Types() []string { return r.types }

// Next returns the next batch, retained, of at most 2,048 rows; io.EOF at the end. After an error it returns the
// same error again.
func (r *Rows) Next() (arrow.RecordBatch, error) {
	if r.closed && r.end == nil {
		return nil, ErrClosed
	}
	if r.end != nil {
		return nil, r.end
	}
	batch, err := r.fetch()
	if err != nil {
		r.end = err
	}
	return batch, err
}

func (r *Rows) fetch() (arrow.RecordBatch, error) {
	if r.ctx.Err() != nil {
		return nil, r.conn.failure(r.ctx, "")
	}
	for {
		chunk := duckdb.FetchChunk(r.result)
		if chunk.Ptr == nil {
			// An error found while streaming shows only here.
			if message := duckdb.ResultError(&r.result); message != "" {
				return nil, r.conn.failure(r.ctx, message)
			}
			return nil, io.EOF
		}
		if duckdb.DataChunkGetSize(chunk) > 0 {
			return r.toArrow(chunk)
		}
		duckdb.DestroyDataChunk(&chunk)
	}
}

// toArrow takes the chunk and returns its rows, retained.
func (r *Rows) toArrow(chunk duckdb.DataChunk) (arrow.RecordBatch, error) {
	defer duckdb.DestroyDataChunk(&chunk)
	var out C.struct_ArrowArray
	if failed := C.duckdb_data_chunk_to_arrow(C.manta_handle(r.options.Ptr), C.manta_handle(chunk.Ptr), &out); failed != nil {
		return nil, arrowError(failed)
	}
	batch, err := cdata.ImportCRecordBatchWithSchema(arrayOf(&out), r.schema)
	if err != nil {
		return nil, fmt.Errorf("kernel: result batch: %w", err)
	}
	return batch, nil
}

// Close ends the query, whether or not all of it was read, and frees the connection for the next. Later calls do
// nothing. Batches that were returned stay valid.
func (r *Rows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	r.watch.end()
	if r.options.Ptr != nil {
		duckdb.DestroyArrowOptions(&r.options)
	}
	duckdb.DestroyResult(&r.result)
	duckdb.DestroyPending(&r.pending)
	duckdb.DestroyPrepare(&r.stmt)
	r.conn.rows = nil
	if r.end == nil || !errors.Is(r.end, io.EOF) {
		r.conn.settle()
	}
}
