package planner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/kernel"
)

// Files of text that the query itself names are read in parts, too.
func TestDirectTextFiles(t *testing.T) {
	o := newOracle(t)
	dir := t.TempDir()
	tables := writeTables(t, o, dir)
	c := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 2 << 30})
	comma, lines := "'"+tables["comma"]+"'", "'"+tables["lines"]+"'"
	for sql, shared := range map[string]bool{
		"SELECT * FROM " + comma: true,
		"SELECT s, count(*), sum(d) FROM read_csv(" + comma + ") WHERE i > 5 GROUP BY s":                                                                  true,
		"SELECT count(*) FROM read_csv_auto( " + comma + ") JOIN " + lines + " USING (i)":                                                                 true,
		"SELECT t.i, u.n FROM " + comma + " t, " + lines + " AS u WHERE t.i = u.i":                                                                        true,
		"SELECT sum(i) FROM read_json(" + lines + ")":                                                                                                     true,
		"SELECT sum(read_json.i) FROM read_json(" + lines + ")":                                                                                           false,
		"SELECT * FROM read_csv(" + comma + ", header = true)":                                                                                            true,
		"SELECT s, count(*) FROM read_csv([" + comma + "], delim = ',', nullstr = ['', '3'], sample_size = -1) GROUP BY s":                                true,
		"SELECT * FROM read_csv('" + tables["bare"] + "', sep := ';', names => ['a', 'b', 'c'], types = {'a': 'DOUBLE'})":                                 true,
		"SELECT * FROM read_csv('" + tables["bare"] + "', delim=';', header=false, columns={'a': 'INTEGER', 'b': 'VARCHAR', 'c': 'VARCHAR'}) WHERE a > 7": true,
		"SELECT * FROM read_csv(" + comma + ", all_varchar = true, ignore_errors = true, quote = '\"')":                                                   true,
		"SELECT * FROM read_csv(" + comma + ", filename = true)":                                                                                          false,
		"SELECT sum(i) FROM read_ndjson(" + lines + ")":                                                                                                   true,
		"SELECT i, n.a FROM read_json(" + lines + ", format = 'newline_delimited', columns = {i: 'INTEGER', n: 'STRUCT(a BIGINT)'})":                      true,
		"SELECT dt FROM read_json('" + tables["dates"] + "', columns = {dt: 'DATE'})":                                                                     true,
		"SELECT count(*) FROM read_csv(" + comma + ", header = true) a JOIN read_csv(" + comma + ", skip = 1, header = false) b ON a.i = b.column0":       true,
		"SELECT * FROM read_json_auto('" + tables["dates"] + "')":                                                                                         false,
		"SELECT i, " + comma + " AS name FROM " + comma:                                                                                                   true,
	} {
		want := o.answer(t, sql)
		got, stats := query(t, c, sql, Options{ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)})
		requireSame(t, want, got, false, sql)
		require.Equal(t, shared, stats.Distributed && stats.ParallelScan == 1, "%s: %s", sql, stats.Fallback)
	}
	err := fails(c, "SELECT nothing_such FROM read_csv("+comma+")", Options{})
	require.ErrorContains(t, err, `"nothing_such" not found`)
	text, err := c.Explain(context.Background(), "SELECT sum(i) FROM read_json("+lines+")", Options{ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	require.Contains(t, text, "split in 2 by whole files")
}

// A query may read more files of text than planning has room for the buffers of.
func TestManyDirectTextFiles(t *testing.T) {
	dir := t.TempDir()
	c := cluster(t, Config{Nodes: 1, CPUs: 1})
	var terms []string
	for i := range 12 {
		path := filepath.Join(dir, fmt.Sprintf("f%d.csv", i))
		require.NoError(t, os.WriteFile(path, []byte("k,v\n1,2\n3,4\n"), 0o600))
		terms = append(terms, "(SELECT sum(v) FROM "+[]string{"'" + path + "'", "read_csv('" + path + "', delim = ',')"}[i%2]+")")
	}
	sql := "SELECT " + strings.Join(terms, " + ") + " AS s"
	for _, how := range []string{"auto", "always"} {
		got, stats := query(t, c, sql, Options{Distribute: how})
		require.Equal(t, []string{"72"}, got.rows)
		require.Equal(t, []string{"s"}, got.names)
		require.Equal(t, how == "always", stats.Distributed, stats.Fallback)
	}
}

func TestDirectFiles(t *testing.T) {
	named, calls := directFiles(`SELECT 'a.csv', x FROM read_csv_auto( 'b.csv' ) JOIN "c.json" ON 'd.csv' = x, read_csv(['e.csv', 'f.csv'], HEADER := [1, 2])`)
	require.Equal(t, `SELECT 'a.csv', x FROM "b.csv"                  JOIN "c.json" ON 'd.csv' = x, "@2"                                          `, named)
	require.Equal(t, map[string]textCall{
		"b.csv":  {function: readCSV, paths: []string{"b.csv"}},
		"c.json": {function: readJSON, paths: []string{"c.json"}},
		"@2":     {function: readCSV, paths: []string{"e.csv", "f.csv"}, options: []readerOption{{"header", "[1, 2]"}}},
	}, calls)
}

// A relative path begins at the client's folder, wherever the nodes are.
func TestRelativePaths(t *testing.T) {
	ctx := context.Background()
	db, err := kernel.Open(kernel.Config{})
	require.NoError(t, err)
	conn, err := db.Connect()
	require.NoError(t, err)
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		require.NoError(t, conn.Exec(ctx, "COPY (FROM range(5000)) TO '"+filepath.Join(dir, name+".parquet")+"' (ROW_GROUP_SIZE 2048)"))
	}
	conn.Close()
	require.NoError(t, db.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "c.csv"), []byte("i\n1\n2\n"), 0o600))
	nodes := cluster(t, Config{Nodes: 2, CPUs: 1, Memory: 256 << 20})
	t.Chdir(dir) // the nodes do not notice: they are told of it
	c, err := Connect(ctx, Config{Head: nodes.Embedded().Nodes[0].Address()})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	require.Equal(t, dir, c.folder)
	t.Chdir(t.TempDir())
	for _, o := range []Options{{}, {ReplicateBytes: bytesOf(0)}} {
		for sql, want := range map[string]string{
			"SELECT count(*) FROM '*.parquet'":                                  "10000",
			"SELECT sum(range) FROM read_parquet(['a.parquet', './b.parquet'])": "24995000",
			"SELECT sum(i) FROM 'c.csv'":                                        "3",
			"SELECT sum(i) FROM read_csv('c.csv', header = true)":               "3",
		} {
			got, _ := query(t, c, sql, o)
			require.Equal(t, []string{want}, got.rows, sql)
		}
	}
	c.folder = "" // as if the cluster was elsewhere
	require.ErrorContains(t, fails(c, "FROM 'a.parquet'", Options{}), "give the whole path")
	require.NotContains(t, fails(c, "FROM '/a.parquet'", Options{}).Error(), "give the whole path")
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:7070": true, "localhost:1": true, "[::1]:1": true, "10.0.0.1:7070": false, "host:1": false, "": false} {
		require.Equal(t, want, loopback(address), address)
	}
}

// What only an extension could read is an error that says which, and where to put it.
func TestMissingExtension(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // no extension is installed there
	c := cluster(t, Config{CPUs: 1, Memory: 256 << 20})
	require.ErrorContains(t, fails(c, "SELECT count(*) FROM 's3://bucket/x.parquet'", Options{}), "DuckDB's extension httpfs is needed")
	require.ErrorContains(t, fails(c, "SELECT count(*) FROM t", Options{Tables: map[string]string{"t": "https://localhost:1/x.csv"}}), "DuckDB's extension httpfs is needed")
}
