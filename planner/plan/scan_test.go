package plan_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/planner/plan"
)

// TestRanges reads random parts of files, one fragment for each, and unites what they give: it must be the whole.
func TestRanges(t *testing.T) {
	in := open(t, "")
	dir := t.TempDir()
	ctx := context.Background()
	for f := range 3 { // the middle one has a wider i and no s, so that only union_by_name reads all three
		column := []string{"i::INTEGER AS i, 's' || i % 3 AS s", "i::BIGINT AS i", "'s' || i % 3 AS s, i::INTEGER AS i"}[f]
		require.NoError(t, in.original.Exec(ctx, fmt.Sprintf(
			"COPY (SELECT %s FROM range(%d, %d) r(i)) TO '%s/k=%d.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)", column, f*5000, f*5000+5000, dir, f)))
		require.NoError(t, in.original.Exec(ctx, fmt.Sprintf(
			"COPY (SELECT i, i %% 3 AS j FROM range(%d, %d) r(i)) TO '%s/h%d' (FORMAT parquet, PARTITION_BY (j), ROW_GROUP_SIZE 2048)", f*5000, f*5000+5000, dir, f)))
	}
	queries := []string{
		"SELECT i, s FROM read_parquet('%[1]s/k=0.parquet') WHERE i %% 7 > 1",
		"SELECT count(*) FROM read_parquet('%[1]s/k=*.parquet', union_by_name = true) WHERE s IS NULL OR i < 100",
		"SELECT i, s, filename FROM read_parquet('%[1]s/k=*.parquet', union_by_name = true) WHERE i > 40",
		"SELECT i, s, file_row_number FROM read_parquet('%[1]s/k=*.parquet', union_by_name = true, file_row_number = true)",
		"SELECT i, s, fn FROM read_parquet('%[1]s/k=[02].parquet', filename = 'fn') WHERE fn LIKE '%%2.parquet'",
		"SELECT i, file_row_number FROM read_parquet('%[1]s/k=[02].parquet') WHERE file_row_number %% 3 = 0",
		"SELECT sum(i), j FROM read_parquet('%[1]s/h*/*/*.parquet', hive_partitioning = true) WHERE j <> 1 GROUP BY j",
		"SELECT sum(i), j FROM read_parquet('%[1]s/h*/*/*.parquet', hive_types = {'j': 'VARCHAR'}) GROUP BY j",
		"SELECT count(*) FROM (SELECT * FROM read_parquet('%[1]s/k=0.parquet') a, range(2))",
	}
	rapid.Check(t, func(t *rapid.T) {
		query := fmt.Sprintf(rapid.SampledFrom(queries).Draw(t, "query"), dir)
		want, err := run(ctx, in.original, query)
		require.NoError(t, err)
		text, err := in.planning.Plan(ctx, query)
		require.NoError(t, err)
		root, err := plan.Decode(text)
		require.NoError(t, err)
		whole := plan.Rewrite(root, func(n plan.Node) plan.Node {
			get, ok := n.(*plan.Get)
			if !ok {
				return n
			}
			splittable, why := get.Splittable()
			require.True(t, splittable, why)
			require.True(t, get.RowSplittable())
			tasks := make([]*plan.Get, 3)
			for i := range tasks {
				part := *get
				part.Ranges = []plan.FileRange{}
				tasks[i] = &part
			}
			give := func(r plan.FileRange) {
				to := tasks[rapid.IntRange(0, 2).Draw(t, "task")]
				to.Ranges = append(to.Ranges, r)
			}
			for _, file := range get.Files {
				if rapid.Bool().Draw(t, "whole") {
					give(plan.FileRange{File: file, Last: -1})
					continue
				}
				at := rapid.Int64Range(0, 6000).Draw(t, "at")
				give(plan.FileRange{File: file, First: 0, Last: at})
				give(plan.FileRange{File: file, First: at, Last: -1})
			}
			return &plan.SetOp{Kind: plan.Union, All: true, Inputs: []plan.Node{tasks[0], tasks[1], tasks[2]}, Out: get.Types()}
		})
		sql, err := plan.PrintFragment(whole, nil, nil)
		require.NoError(t, err)
		got, err := run(ctx, in.executing, sql)
		require.NoError(t, err, sql)
		require.Empty(t, difference(want, got, false), sql)
	})
}

// TestRangesPrune destroys all row groups but the one that a range lies in: a reader that skips them does not notice.
func TestRangesPrune(t *testing.T) {
	in := open(t, "")
	file := filepath.Join(t.TempDir(), "t.parquet")
	ctx := context.Background()
	require.NoError(t, in.original.Exec(ctx, "COPY (SELECT i, i % 10 AS k FROM range(1000000) r(i)) TO '"+file+"' (FORMAT parquet, ROW_GROUP_SIZE 100000)"))
	text, err := in.planning.Plan(ctx, "SELECT max(i), count(*) FROM '"+file+"' WHERE k < 3")
	require.NoError(t, err)
	root, err := plan.Decode(text)
	require.NoError(t, err)
	sql := func(ranges []plan.FileRange) string {
		n := plan.Rewrite(root, func(n plan.Node) plan.Node {
			if get, ok := n.(*plan.Get); ok {
				part := *get
				part.Ranges = ranges
				return &part
			}
			return n
		})
		sql, err := plan.PrintFragment(n, nil, nil)
		require.NoError(t, err)
		return sql
	}
	part := sql([]plan.FileRange{{File: file, First: 250000, Last: 290000}})
	want, err := run(ctx, in.original, part)
	require.NoError(t, err)
	require.Equal(t, []string{"289992 | 12000"}, want.rows)

	groups, err := run(ctx, in.original, "SELECT min(coalesce(dictionary_page_offset, data_page_offset)) FROM parquet_metadata('"+file+"') GROUP BY row_group_id ORDER BY row_group_id")
	require.NoError(t, err)
	footer, err := run(ctx, in.original, "SELECT footer_size FROM parquet_file_metadata('"+file+"')")
	require.NoError(t, err)
	at := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		require.NoError(t, err)
		return n
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	size, err := f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	destroy := func(from, to int64) {
		_, err := f.WriteAt(bytes.Repeat([]byte{0xff}, int(to-from)), from)
		require.NoError(t, err)
	}
	destroy(at(groups.rows[0]), at(groups.rows[2]))
	destroy(at(groups.rows[3]), size-8-at(footer.rows[0]))
	require.NoError(t, f.Close())

	got, err := run(ctx, in.executing, part)
	require.NoError(t, err)
	require.Equal(t, want, got)
	_, err = run(ctx, in.executing, sql(nil))
	require.Error(t, err, "the destroyed row groups cannot be read")
}

func TestNotSplittable(t *testing.T) {
	in := open(t, "")
	dir := t.TempDir()
	ctx := context.Background()
	require.NoError(t, in.original.Exec(ctx, "COPY (SELECT 1 AS file_row_number, 2 AS x) TO '"+dir+"/t.parquet' (FORMAT parquet)"))
	for query, want := range map[string][2]bool{
		"SELECT x, file_index FROM '%s/t.parquet'":       {false, false},
		"SELECT x, file_row_number FROM '%s/t.parquet'":  {true, false},
		"SELECT x + 1 FROM '%s/t.parquet' WHERE x < 100": {true, false},
	} {
		text, err := in.planning.Plan(ctx, fmt.Sprintf(query, dir))
		require.NoError(t, err)
		root, err := plan.Decode(text)
		require.NoError(t, err)
		plan.Walk(root, func(n plan.Node) bool {
			if get, ok := n.(*plan.Get); ok {
				files, _ := get.Splittable()
				require.Equal(t, want, [2]bool{files, get.RowSplittable()}, query)
			}
			return true
		})
	}
}
