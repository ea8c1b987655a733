package tpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/kernel"
)

const (
	generatorMemory = 1 << 30 // bytes for DuckDB while generating; a generator itself takes some 0.3 GB a scale factor more
	minFileRows     = 10_000  // a file holds at least this many rows, unless its table has fewer
	staleAfter      = 24 * time.Hour
)

// generating is held while a generator runs: they keep their state in global variables.
var generating sync.Mutex

// Generate makes the data of scale factor sf in dir, each table in up to files Parquet files of DuckDB's default row
// groups. A directory that holds exactly this already is left alone; one that an earlier Generate made with other
// parameters is replaced; any other that is not empty is an error.
func (s *Suite) Generate(ctx context.Context, dir string, sf float64, files int) error {
	if sf <= 0 || math.IsInf(sf, 0) || math.IsNaN(sf) {
		return fmt.Errorf("tpc: scale factor %v is not a positive number", sf)
	}
	if sf < s.minScale {
		return fmt.Errorf("tpc: scale factor %v of %s; give at least %v", sf, s.Title, s.minScale)
	}
	if files < 1 {
		return fmt.Errorf("tpc: %d files a table", files)
	}
	want := marker{Format: formatVersion, ScaleFactor: sf, Files: files}
	generating.Lock()
	defer generating.Unlock()
	if done, err := s.holds(dir, want); done || err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("tpc: %w", err)
	}
	sweep(dir)
	tmp, err := os.MkdirTemp(parent, unfinished(dir))
	if err != nil {
		return fmt.Errorf("tpc: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	data := filepath.Join(tmp, "data")
	if err := s.write(ctx, data, filepath.Join(tmp, "work"), sf, files); err != nil {
		return fmt.Errorf("tpc: generating scale factor %v: %w", sf, err)
	}
	if err := s.writeMarker(want, data); err != nil {
		return fmt.Errorf("tpc: %w", err)
	}
	return s.publish(data, filepath.Join(tmp, "old"), dir, want)
}

// holds says whether dir is what Generate would make. It fails when dir must not be touched.
func (s *Suite) holds(dir string, want marker) (bool, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("tpc: %w", err)
	}
	have, err := s.readMarker(dir)
	if err != nil {
		return false, fmt.Errorf("tpc: %s is not empty and was not made by this generator", dir)
	}
	if have != want {
		return false, nil
	}
	_, err = s.TablesIn(dir)
	return err == nil, nil
}

// publish gives the finished data its name. Of several processes that get here, one wins and the others find its work.
func (s *Suite) publish(data, old, dir string, want marker) error {
	var err error
	for range 3 {
		if err = os.Rename(data, dir); err == nil { // replaces an empty directory
			return nil
		}
		if done, err := s.holds(dir, want); done || err != nil {
			return err
		}
		// An earlier Generate's data with other parameters goes out of the way, then again.
		if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("tpc: %w", err)
		}
		_ = os.RemoveAll(old)
	}
	return fmt.Errorf("tpc: %w", err)
}

func unfinished(dir string) string { return "." + filepath.Base(dir) + ".unfinished-*" }

// sweep removes what a killed Generate left.
func sweep(dir string) {
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), unfinished(dir)))
	for _, path := range left {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.RemoveAll(path)
		}
	}
}

// write generates into a database file in work, which it removes, and copies the tables to data from there.
func (s *Suite) write(ctx context.Context, data, work string, sf float64, files int) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	db, err := openGenerator(kernel.Config{MemoryLimit: generatorMemory, TempDir: filepath.Join(work, "spill"), Threads: runtime.NumCPU()})
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	c, err := db.Connect()
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Exec(ctx, "ATTACH "+kernel.QuoteString(filepath.Join(work, "tpc.db"))+" AS tpc"); err != nil {
		return err
	}
	if err := s.generate(ctx, c, "tpc", sf, s.steps(sf)); err != nil {
		return err
	}
	for _, table := range s.Tables {
		if err := export(ctx, c, table, filepath.Join(data, table), files); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	return nil
}

// steps is the number of steps in which data of a scale factor is generated.
func (s *Suite) steps(sf float64) int {
	if s.stepScale == 0 {
		return 1
	}
	return int(math.Ceil(sf / float64(s.stepScale)))
}

// generate fills the tables of a catalog. Several steps take longer than one, because each runs through the random
// numbers of those before, but need less memory.
func (s *Suite) generate(ctx context.Context, c *kernel.Conn, catalog string, sf float64, steps int) error {
	for step := range steps {
		call := fmt.Sprintf("CALL %s(sf = %v, catalog = %s", s.generator, sf, kernel.QuoteString(catalog))
		if steps > 1 {
			call += fmt.Sprintf(", children = %d, step = %d", steps, step)
		}
		if err := c.Exec(ctx, call+")"); err != nil {
			return err
		}
	}
	return nil
}

// export writes a table as files of equal numbers of rows, in the table's order.
func export(ctx context.Context, c *kernel.Conn, table, dir string, files int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	rows, err := count(ctx, c, "tpc."+table)
	if err != nil {
		return err
	}
	n := max(1, min(int64(files), rows/minFileRows))
	for i := range n {
		from, to := rows*i/n, rows*(i+1)/n
		sql := fmt.Sprintf("COPY (SELECT * FROM tpc.%s WHERE rowid >= %d AND rowid < %d) TO %s (FORMAT parquet)",
			table, from, to, kernel.QuoteString(filepath.Join(dir, fmt.Sprintf("%s-%d.parquet", table, i))))
		if err := c.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func count(ctx context.Context, c *kernel.Conn, table string) (int64, error) {
	rows, err := c.Query(ctx, "SELECT count(*) FROM "+table)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	batch, err := rows.Next()
	if err == io.EOF {
		return 0, errors.New("no count")
	}
	if err != nil {
		return 0, err
	}
	defer batch.Release()
	return batch.Column(0).(*array.Int64).Value(0), nil
}
