package planner

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/dist"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/split"
)

// footers remembers the row groups of Parquet files, as long as the files stay
// the same. Reading a footer costs more than planning a query.
type footers struct {
	mu    sync.Mutex
	known map[string]dist.File // guarded by mu; by path
}

// maxFooters bounds the memory of files that are not asked for again.
const maxFooters = 100_000

// of returns the row groups of files, in order.
func (f *footers) of(ctx context.Context, conn *kernel.Conn, paths []string) ([]dist.File, error) {
	files := make([]dist.File, len(paths))
	var missing []string
	f.mu.Lock()
	for i, path := range paths {
		file, known := f.known[path]
		if !known || !unchanged(file) {
			missing = append(missing, path)
			continue
		}
		files[i] = file
	}
	f.mu.Unlock()
	if len(missing) == 0 {
		return files, nil
	}
	read, err := readFooters(ctx, conn, missing)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.known == nil || len(f.known)+len(read) > maxFooters {
		f.known = map[string]dist.File{}
	}
	for path, file := range read {
		f.known[path] = file
	}
	for i, path := range paths {
		if files[i].Path == "" {
			files[i] = read[path]
		}
	}
	return files, nil
}

// unchanged reports whether a file is still the one whose footer was read.
func unchanged(f dist.File) bool {
	if remote(f.Path) {
		return false
	}
	info, err := os.Stat(f.Path)
	return err == nil && info.Size() == f.Size && info.ModTime().UnixNano() == f.Mtime
}

// readFooters asks DuckDB for the row groups of files.
func readFooters(ctx context.Context, conn *kernel.Conn, paths []string) (map[string]dist.File, error) {
	quoted := make([]string, len(paths))
	files := map[string]dist.File{}
	for i, path := range paths {
		quoted[i] = plan.Literal(path)
		file := dist.File{Path: path}
		if !remote(path) {
			info, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("planner: %w", err)
			}
			file.Size, file.Mtime = info.Size(), info.ModTime().UnixNano()
		}
		files[path] = file
	}
	rows, err := conn.Query(ctx, "SELECT file_name, row_group_id::BIGINT, any_value(row_group_num_rows)::BIGINT, sum(total_uncompressed_size)::BIGINT"+
		" FROM parquet_metadata(["+strings.Join(quoted, ", ")+"]) GROUP BY ALL ORDER BY ALL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return files, each(rows, func(b batch) error {
		names := b.Column(0).(*array.String)
		groups, bytes := b.Column(2).(*array.Int64), b.Column(3).(*array.Int64)
		for i := range int(b.NumRows()) {
			file, ok := files[names.Value(i)]
			if !ok {
				return fmt.Errorf("planner: DuckDB tells of a file %s that was not asked for", names.Value(i))
			}
			file.Groups = append(file.Groups, split.RowGroup{Rows: groups.Value(i), Bytes: bytes.Value(i)})
			files[file.Path] = file // not the batch's text as the key: it ends with the batch
		}
		return nil
	})
}
