package kernel

/*
#include "kernel.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"unsafe"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// ErrClosed is returned by calls on a closed DB or Conn.
var ErrClosed = errors.New("kernel: closed")

// DB is one DuckDB instance in memory. Its methods may be called from several goroutines.
type DB struct {
	handle duckdb.Database

	mu     sync.Mutex
	idle   *sync.Cond
	conns  int  // guarded by mu
	closed bool // guarded by mu
}

// Open starts an instance. It takes a few milliseconds and starts Config.Threads - 1 threads.
func Open(c Config) (*DB, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var config duckdb.Config
	duckdb.CreateConfig(&config)
	defer duckdb.DestroyConfig(&config)
	for name, value := range c.settings() {
		if duckdb.SetConfig(config, name, value) != duckdb.StateSuccess {
			return nil, fmt.Errorf("%w: DuckDB refuses %s = %q", ErrConfig, name, value)
		}
	}
	db := &DB{}
	db.idle = sync.NewCond(&db.mu)
	var message string
	if duckdb.OpenExt("", &db.handle, config, &message) != duckdb.StateSuccess {
		return nil, fmt.Errorf("kernel: open: %w", newError(message))
	}
	settings := maps.Clone(c.Settings)
	if c.MaxTempBytes > 0 {
		// Given at the opening, DuckDB shows this one and does not heed it.
		if settings == nil {
			settings = map[string]string{}
		}
		settings["max_temp_directory_size"] = bytesText(c.MaxTempBytes)
	}
	if err := db.prepare(settings); err != nil {
		duckdb.Close(&db.handle)
		return nil, err
	}
	return db, nil
}

// Version is DuckDB's version, such as "v1.5.6".
func Version() string { return duckdb.LibraryVersion() }

// Connect opens a connection. The caller closes it.
func (db *DB) Connect() (*Conn, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil, ErrClosed
	}
	c := &Conn{db: db}
	if duckdb.Connect(db.handle, &c.handle) != duckdb.StateSuccess {
		return nil, errors.New("kernel: DuckDB refuses another connection")
	}
	// Errors then come with their exact type and position, and without a quotation of the text.
	if err := c.command("SET errors_as_json = true"); err != nil {
		duckdb.Disconnect(&c.handle)
		return nil, err
	}
	db.conns++
	return c, nil
}

func (db *DB) disconnected() {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.conns--; db.conns == 0 {
		db.idle.Broadcast()
	}
}

// Close waits until every connection is closed and ends the instance. Later calls return nil at once.
func (db *DB) Close() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return nil
	}
	db.closed = true
	for db.conns > 0 {
		db.idle.Wait()
	}
	duckdb.Close(&db.handle)
	return nil
}

// prepare registers the package's functions and applies settings.
func (db *DB) prepare(settings map[string]string) error {
	c := &Conn{db: db}
	if duckdb.Connect(db.handle, &c.handle) != duckdb.StateSuccess {
		return errors.New("kernel: DuckDB refuses a connection")
	}
	defer duckdb.Disconnect(&c.handle)
	handle := C.manta_handle(c.handle.Ptr)
	if C.manta_register_functions(handle) != 0 || C.manta_register_stream_function(handle) != 0 ||
		C.manta_register_source_function(handle) != 0 {
		return errors.New("kernel: DuckDB refuses a function")
	}
	for name, value := range settings {
		if err := c.command("SET GLOBAL " + QuoteIdent(name) + " = " + QuoteString(value)); err != nil {
			return fmt.Errorf("%w: %s = %q: %w", ErrConfig, name, value, err)
		}
	}
	return nil
}

// SetMemoryLimit changes Config.MemoryLimit. It fails when the instance holds more than that and can neither drop nor
// spill it.
func (db *DB) SetMemoryLimit(bytes int64) error {
	c, err := db.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	return c.command("SET GLOBAL memory_limit = " + QuoteString(bytesText(bytes)))
}

// Handle is DuckDB's duckdb_database, for code that links an extension into it. It is valid until Close.
func (db *DB) Handle() unsafe.Pointer { return db.handle.Ptr }
