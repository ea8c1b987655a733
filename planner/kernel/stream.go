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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Stream is a source of batches for a query.
type Stream interface {
	// Schema is that of all batches; it is asked for once.
	Schema() *arrow.Schema
	// Next returns the next batch, retained for the caller, or io.EOF. It may wait; it runs on the query's own
	// thread. It is not called again after an error.
	Next() (arrow.RecordBatch, error)
	// Close ends the stream. It is called once, by drop or by Conn.Close, and never during Next.
	Close()
}

// ErrReadTwice is the error of a query that scans a stream's view a second time: its rows can be handed out once.
var ErrReadTwice = errors.New("kernel: the view of a stream was read twice")

// inStream is a registered stream. mu orders the calls of DuckDB's threads (with Threads > 1) and their outcome.
type inStream struct {
	conn   *Conn
	name   string
	src    Stream
	schema *arrow.Schema // immutable
	id     uintptr
	c      *C.struct_manta_stream

	mu     sync.Mutex
	pieces *splitter // guarded by mu
	opened bool      // guarded by mu
	end    error     // guarded by mu; io.EOF or the error of Next
}

// RegisterStream makes s readable as the view name, once, by one query on this connection; other connections don't
// see it. drop removes the view and closes the stream; call it after the Rows that read the view are closed.
// Conn.Close drops what is left. RegisterStream takes s, also when it fails.
func (c *Conn) RegisterStream(name string, s Stream) (drop func(), err error) {
	if err := c.ready(context.Background(), name); err != nil {
		s.Close()
		return nil, err
	}
	in := &inStream{conn: c, name: name, src: s, schema: storageSchema(s.Schema()), id: uintptr(nextStream.Add(1))}
	in.pieces = newSplitter(in.schema)
	in.c = C.manta_stream_new(C.uintptr_t(in.id), C.uint64_t(in.schema.NumFields()))
	streams.Store(in.id, in)
	for i := range in.schema.NumFields() {
		if err := in.setColumn(i); err != nil {
			in.free()
			return nil, fmt.Errorf("kernel: stream %s: column %q: %w", name, in.schema.Field(i).Name, err)
		}
	}
	if err := c.command(fmt.Sprintf("CREATE TEMP VIEW %s AS FROM manta_stream(%d)", QuoteIdent(name), in.id)); err != nil {
		in.free()
		return nil, fmt.Errorf("kernel: stream %s: %w", name, err)
	}
	c.streams = append(c.streams, in)
	return sync.OnceFunc(func() { _ = in.drop() }), nil
}

// setColumn tells DuckDB how to read a column.
func (s *inStream) setColumn(i int) (err error) {
	defer func() { // Arrow panics on types that its C interface does not have
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	field := s.schema.Field(i)
	if what := cannotTravel(field.Type); what != "" {
		return errors.New(what)
	}
	empty := array.MakeArrayOfNull(memory.DefaultAllocator, field.Type, 0)
	defer empty.Release()
	one := arrow.NewSchema([]arrow.Field{field}, nil)
	batch := array.NewRecordBatch(one, []arrow.Array{empty}, 0)
	defer batch.Release()
	var schema C.struct_ArrowSchema
	var rows C.struct_ArrowArray
	cdata.ExportArrowSchema(one, schemaOf(&schema))
	cdata.ExportArrowRecordBatch(batch, arrayOf(&rows), nil)
	name := C.CString(field.Name)
	defer C.free(unsafe.Pointer(name))
	if failed := C.manta_stream_column(s.c, C.manta_handle(s.conn.handle.Ptr), C.uint64_t(i), name, &schema, &rows); failed != nil {
		return arrowError(failed)
	}
	return nil
}

// cannotTravel says why a type can't be read, if so. ExchangeType is the same rule for DuckDB's types.
func cannotTravel(t arrow.DataType) string {
	switch t.ID() {
	case arrow.DICTIONARY: // DuckDB frees the dictionary of an imported vector before the vector
		return "a dictionary does not travel, cast it (ENUM to VARCHAR) before"
	case arrow.SPARSE_UNION, arrow.DENSE_UNION: // Arrow can't gather their values
		return "a union does not travel"
	}
	if nested, ok := t.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if what := cannotTravel(f.Type); what != "" {
				return what
			}
		}
	}
	return ""
}

// drop removes the view and frees the stream. Removing the view also ends what the connection still holds of a
// query that read it.
func (s *inStream) drop() error {
	c := s.conn
	at := slices.Index(c.streams, s)
	if at < 0 {
		return nil // Conn.Close was first
	}
	c.streams = slices.Delete(c.streams, at, at+1)
	if c.rows != nil {
		c.rows.Close()
	}
	err := c.command("DROP VIEW IF EXISTS " + QuoteIdent(s.name))
	s.free()
	return err
}

func (s *inStream) free() {
	streams.Delete(s.id)
	C.manta_stream_free(s.c)
	s.pieces.release()
	s.src.Close()
}

// failed returns the error that Next returned, if it did.
func (s *inStream) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == io.EOF {
		return nil
	}
	return s.end
}

// open is called by every scan of the view; only the first may read it.
func (s *inStream) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened {
		s.end = fmt.Errorf("%w: %s", ErrReadTwice, s.name)
		return s.end
	}
	s.opened = true
	return nil
}

// next writes the next batch to out; nothing at the end of the stream.
func (s *inStream) next(out *C.struct_ArrowArray) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		return s.end
	}
	batch, err := s.pull()
	if err != nil {
		s.end = err
		return err
	}
	defer batch.Release()
	cdata.ExportArrowRecordBatch(batch, arrayOf(out), nil) // retains
	return nil
}

// pull returns the next batch for DuckDB, retained, and never an empty one, which would be the end.
func (s *inStream) pull() (batch arrow.RecordBatch, err error) {
	// A panic must not unwind through DuckDB's frames.
	defer func() {
		if p := recover(); p != nil {
			batch, err = nil, fmt.Errorf("kernel: stream %s: panic: %v", s.name, p)
		}
	}()
	for {
		if piece, err := s.pieces.next(); piece != nil || err != nil {
			return piece, err
		}
		batch, err := s.src.Next()
		if err != nil {
			return nil, err
		}
		stored, ok := toStorage(batch, s.schema)
		if !ok {
			return nil, fmt.Errorf("kernel: stream %s: a batch of %v in a stream of %v", s.name, batch.Schema(), s.schema)
		}
		s.pieces.put(stored)
	}
}

// streams finds a registered stream by the id that its C side holds.
var (
	streams    sync.Map // uintptr -> *inStream
	nextStream atomic.Uint64
)

func findStream(id C.uintptr_t) *inStream {
	if s, ok := streams.Load(uintptr(id)); ok {
		return s.(*inStream)
	}
	return nil
}

//export mantaStreamFind
func mantaStreamFind(id C.uintptr_t) *C.struct_manta_stream {
	if s := findStream(id); s != nil {
		return s.c
	}
	return nil
}

//export mantaStreamOpen
func mantaStreamOpen(id C.uintptr_t) C.int {
	if s := findStream(id); s == nil || s.open() != nil {
		return 1
	}
	return 0
}

//export mantaStreamNext
func mantaStreamNext(id C.uintptr_t, out *C.struct_ArrowArray) C.int {
	s := findStream(id)
	if s == nil {
		return 1
	}
	if err := s.next(out); err != nil && err != io.EOF {
		return 1
	}
	return 0
}

// QuoteIdent returns name as an SQL identifier.
func QuoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// QuoteString returns s as an SQL string literal.
func QuoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
