package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"manta/planner"
)

// What is written in a columnar format reads back as the same rows.
func TestColumnarOutput(t *testing.T) {
	ctx := context.Background()
	client, err := planner.Connect(ctx, planner.Config{CPUs: 1})
	require.NoError(t, err)
	defer client.Close()
	show := func(sql string) string {
		var out bytes.Buffer
		w, err := newRowWriter("csv", &out)
		require.NoError(t, err)
		require.NoError(t, runQuery(ctx, client, sql, planner.Options{}, w))
		return out.String()
	}
	const sql = "SELECT i, i::DECIMAL(9,2) AS d, 'n' || i AS s, DATE '2020-01-01' + i::INTEGER AS day, [i, NULL] AS l, NULL::DOUBLE AS f FROM range(3000) t(i)"
	var file bytes.Buffer
	w, err := newRowWriter("parquet", &file)
	require.NoError(t, err)
	require.NoError(t, runQuery(ctx, client, sql, planner.Options{}, w))
	path := filepath.Join(t.TempDir(), "out.parquet")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	require.Equal(t, show(sql), show("SELECT * FROM '"+path+"'"))

	var stream bytes.Buffer
	w, err = newRowWriter("arrow", &stream)
	require.NoError(t, err)
	require.NoError(t, runQuery(ctx, client, sql, planner.Options{}, w))
	reader, err := ipc.NewReader(&stream)
	require.NoError(t, err)
	defer reader.Release()
	rows := int64(0)
	for reader.Next() {
		rows += reader.RecordBatch().NumRows()
	}
	require.NoError(t, reader.Err())
	require.Equal(t, int64(3000), rows)
}
