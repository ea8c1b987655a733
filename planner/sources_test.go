package planner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/plan"
)

// writeTables makes tables of text files in a folder, and gives their globs.
func writeTables(t *testing.T, o *oracle, dir string) map[string]string {
	t.Helper()
	copies := func(name, ending, options, columns string, files int) string {
		for i := range files {
			path := filepath.Join(dir, fmt.Sprintf("%s-%d.%s", name, i, ending))
			require.NoError(t, o.conn.Exec(context.Background(), fmt.Sprintf("COPY (SELECT %s FROM range(%d, %d) r(i)) TO %s (%s)",
				columns, i*500, (i+1)*500, plan.Literal(path), options)))
		}
		return filepath.Join(dir, name+"-*."+ending)
	}
	columns := "i, 'name, \"' || i % 7 AS s, CASE WHEN i % 5 > 0 THEN i / 8.0 END AS d, DATE '2020-01-01' + i::INTEGER AS dt, i % 2 = 0 AS b"
	tables := map[string]string{
		"comma":  copies("comma", "csv", "HEADER", columns, 5),
		"tabs":   copies("tabs", "tsv", "HEADER, DELIMITER '\t'", columns, 3),
		"bare":   copies("bare", "csv", "HEADER false, DELIMITER ';'", "i, i % 3, 'x' || i", 2),
		"packed": copies("packed", "csv.gz", "HEADER", columns, 2),
		"lines":  copies("lines", "jsonl", "FORMAT json", "i, 's' || i % 7 AS s, {'a': i, 'b': [i, NULL]} AS n", 4),
		"array":  copies("array", "json", "FORMAT json, ARRAY true", "i, i / 4 AS d", 2),
		"dates":  copies("dates", "json", "FORMAT json", "i, DATE '2020-01-01' + i::INTEGER AS dt", 2),
	}
	write := func(name string, texts ...string) {
		for i, text := range texts {
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.csv", name, i)), []byte(text), 0o600))
		}
		tables[name] = filepath.Join(dir, name+"-*.csv")
	}
	write("dialects", "i,s\n1,a\n2,b\n", "i;s\n3;c\n")
	write("widths", "i,s\n1,a\n2,b\n", "i,s\n1.5,c\n")
	write("orders", "i,s\n1,a\n2,b\n", "s,i\nc,3\n")
	write("headed", "i,s\n")
	return tables
}

// TestTextFiles: tables of CSV and JSON files are read in parts, as DuckDB reads
// them whole. What differs from file to file is left to one call.
func TestTextFiles(t *testing.T) {
	o := newOracle(t)
	tables := writeTables(t, o, t.TempDir())
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	for name := range tables {
		views, err := tableViews(map[string]string{name: tables[name]})
		require.NoError(t, err)
		require.NoError(t, makeTables(context.Background(), o.conn, views))
	}
	shared := 0
	for _, name := range tableNames(tables) {
		for _, sql := range []string{
			"SELECT * FROM " + name,
			"SELECT count(*) FROM " + name,
			"SELECT columns(*)::VARCHAR AS v, count(*) FROM " + name + " GROUP BY ALL",
		} {
			if _, err := o.conn.Describe(context.Background(), sql); err != nil {
				_, err := c.Query(context.Background(), sql, Options{Tables: map[string]string{name: tables[name]}})
				require.Error(t, err, sql)
				continue
			}
			rows, err := o.conn.Query(context.Background(), sql)
			if err == nil {
				err = each(rows, func(batch) error { return nil })
				rows.Close()
			}
			if err != nil { // DuckDB in one process can't read these files, and so can't we
				r, err := c.Query(context.Background(), sql, Options{Tables: map[string]string{name: tables[name]}})
				if err == nil {
					for r.Next() {
					}
					err = r.Err()
					r.Release()
				}
				require.Error(t, err, sql)
				continue
			}
			want := o.answer(t, sql)
			got, stats := query(t, c, sql, Options{Tables: map[string]string{name: tables[name]}, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
			requireSame(t, want, got, false, sql)
			if stats.Distributed && stats.ParallelScan == 1 {
				shared++
			}
		}
	}
	require.GreaterOrEqual(t, shared, 15)
}

// A column of the data may have the name by which files are divided.
func TestDataNamedLikeRowNumbers(t *testing.T) {
	o := newOracle(t)
	path := filepath.Join(t.TempDir(), "t.parquet")
	require.NoError(t, o.conn.Exec(context.Background(), "COPY (SELECT 7 AS file_row_number, i FROM range(9000) r(i)) TO "+plan.Literal(path)+" (ROW_GROUP_SIZE 2048)"))
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 512 << 20})
	got, stats := query(t, c, "SELECT count(*), sum(i), min(file_row_number) FROM t", Options{Tables: map[string]string{"t": path}, ReplicateBytes: bytesOf(0)})
	require.Equal(t, []string{"9000|40495500|7"}, got.rows)
	require.True(t, stats.Distributed, stats.Fallback)
}
