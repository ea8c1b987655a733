package tpc

import (
	"context"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/planner/kernel"
)

// Result is a whole result.
type Result struct {
	Schema  *arrow.Schema
	Types   []string // DuckDB's names
	Batches []arrow.RecordBatch
}

// Rows is the number of rows.
func (r *Result) Rows() int64 {
	n := int64(0)
	for _, b := range r.Batches {
		n += b.NumRows()
	}
	return n
}

// Release releases the batches.
func (r *Result) Release() {
	for _, b := range r.Batches {
		b.Release()
	}
	r.Batches = nil
}

// DuckDB runs queries in one DuckDB process over the files that Manta reads: the baseline of every comparison. It is
// used by one goroutine at a time.
type DuckDB struct {
	suite  *Suite
	tables map[string]string
	db     *kernel.DB
	conn   *kernel.Conn
}

// OpenDuckDB opens an instance of that many threads with a view for each table of dir. c gives the rest.
func (s *Suite) OpenDuckDB(ctx context.Context, dir string, threads int, c kernel.Config) (*DuckDB, error) {
	tables, err := s.TablesIn(dir)
	if err != nil {
		return nil, err
	}
	c.Threads, c.LosslessArrow = threads, true
	db, err := kernel.Open(c)
	if err != nil {
		return nil, err
	}
	d := &DuckDB{suite: s, tables: tables, db: db}
	if d.conn, err = db.Connect(); err != nil {
		_ = db.Close()
		return nil, err
	}
	if err := makeViews(ctx, d.conn, tables); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func makeViews(ctx context.Context, c *kernel.Conn, tables map[string]string) error {
	for name, glob := range tables {
		sql := fmt.Sprintf("CREATE VIEW %s AS FROM read_parquet(%s)", kernel.QuoteIdent(name), kernel.QuoteString(glob))
		if err := c.Exec(ctx, sql); err != nil {
			return fmt.Errorf("tpc: %s: %w", name, err)
		}
	}
	return nil
}

// Run runs a query and returns its result, which the caller releases.
func (d *DuckDB) Run(ctx context.Context, sql string) (*Result, error) {
	rows, err := d.conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r := &Result{Schema: kernel.FromLosslessSchema(rows.Schema()), Types: rows.Types()}
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return r, nil
		}
		if err == nil {
			err = r.add(b)
		}
		if err != nil {
			r.Release()
			return nil, err
		}
	}
}

// add takes a batch in DuckDB's lossless form.
func (r *Result) add(b arrow.RecordBatch) error {
	defer b.Release()
	plain, err := kernel.FromLossless(b)
	if err != nil {
		return err
	}
	r.Batches = append(r.Batches, plain)
	return nil
}

// Close ends the instance.
func (d *DuckDB) Close() error {
	d.conn.Close()
	return d.db.Close()
}
