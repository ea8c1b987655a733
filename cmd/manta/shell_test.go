package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner"
)

func TestShell(t *testing.T) {
	client, err := planner.Connect(context.Background(), planner.Config{CPUs: 1})
	require.NoError(t, err)
	defer client.Close()
	for _, tt := range []struct{ line, want string }{
		{"SELECT 6 * 7 AS answer;", "answer"},
		{"SELECT\n 6 * 7;", "42"},
		{"SELECT nope;", "nope"},
		{".help", "Ctrl-D"},
		{".table t", "give a name and a file"},
		{".shuffle pigeon", "pigeon"},
		{".output xml", "xml"},
		{".explain SELECT 1", "1 task"},
		{".nodes", "alive"},
		{".what", "unknown command .what"},
		{";", ""},
	} {
		var out bytes.Buffer
		s := &shell{client: client, output: "table", out: &out}
		require.False(t, s.do(tt.line), tt.line)
		require.Contains(t, out.String(), tt.want, tt.line)
	}
	s := &shell{client: client, output: "table", out: &bytes.Buffer{}}
	require.False(t, s.do(".shuffle disk"))
	require.Equal(t, "disk", s.options.Shuffle)
	require.False(t, s.do(".table t 'data/*.parquet'"))
	require.Equal(t, absolute("data/*.parquet"), s.options.Tables["t"])
	require.True(t, s.do(".quit"))
}

func TestShellKnowsTheEndOfAQuery(t *testing.T) {
	require.False(t, complete("SELECT 1"))
	require.False(t, complete("SELECT 1;\nUNION"))
	require.True(t, complete("SELECT 1 ; "))
	require.True(t, complete(".help"))
	require.True(t, complete(""))
}
