package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// ErrBusy is returned by a call on a connection whose last Rows are still open.
var ErrBusy = errors.New("kernel: a result of this connection is still open")

// Conn is a connection, for one goroutine at a time.
type Conn struct {
	db      *DB
	handle  duckdb.Connection
	closed  bool
	rows    *Rows       // the open result, if any
	streams []*inStream // registered and not dropped
	explain bool        // explain_output is set
}

// Close ends the connection: an open result is closed and registered streams are dropped. Later calls do nothing.
func (c *Conn) Close() {
	if c.closed {
		return
	}
	if c.rows != nil {
		c.rows.Close()
	}
	for len(c.streams) > 0 {
		_ = c.streams[len(c.streams)-1].drop()
	}
	c.closed = true
	duckdb.Disconnect(&c.handle)
	c.db.disconnected()
}

// Exec runs statements and discards their results, which should be few rows.
func (c *Conn) Exec(ctx context.Context, sql string) error {
	rows, err := c.begin(ctx, sql, (*Rows).collect)
	if err != nil {
		return err
	}
	rows.end = io.EOF
	rows.Close()
	return nil
}

// ready says whether the connection can start a call.
func (c *Conn) ready(ctx context.Context, sql string) error {
	switch {
	case c.closed:
		return ErrClosed
	case c.rows != nil:
		return ErrBusy
	case strings.IndexByte(sql, 0) >= 0:
		return &Error{Type: "Parser", Message: "the text holds a NUL character", Position: strings.IndexByte(sql, 0) + 1}
	case ctx.Err() != nil:
		return interrupted(ctx)
	}
	return nil
}

// command runs one of the package's own statements, without a context.
func (c *Conn) command(sql string) error {
	var result duckdb.Result
	defer duckdb.DestroyResult(&result)
	if duckdb.Query(c.handle, sql, &result) != duckdb.StateSuccess {
		return newError(duckdb.ResultError(&result))
	}
	return nil
}

// settle ends what is left of the last query in DuckDB's connection. A result that is destroyed early leaves its
// operators, and with them the batches they hold, until the connection is used again; preparing anything uses it.
func (c *Conn) settle() {
	var stmt duckdb.PreparedStatement
	duckdb.Prepare(c.handle, "", &stmt)
	duckdb.DestroyPrepare(&stmt)
}

// failure turns DuckDB's message into the error of a call: what a stream returned, the end of the context, or
// DuckDB's own error, in this order.
func (c *Conn) failure(ctx context.Context, message string) error {
	for _, s := range c.streams {
		if err := s.failed(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return newError(message)
}

// interrupted is the error of a call whose context ended: it wraps the context's error and its cause.
func interrupted(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("kernel: interrupted: %w", cause)
	}
	return fmt.Errorf("kernel: interrupted: %w (%w)", cause, ctx.Err())
}
