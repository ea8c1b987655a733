package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain makes the test binary the command manta where it is called by that
// name: by the scripts, and by the tests of clusters of processes.
func TestMain(m *testing.M) {
	testscript.Main(leakless{m}, map[string]func(){"manta": main})
}

// leakless fails a run that leaves a goroutine behind, and removes what the tests share.
type leakless struct{ m *testing.M }

func (l leakless) Run() int {
	code := l.m.Run()
	if dataDir != "" {
		if err := os.RemoveAll(dataDir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

var (
	dataDir  string // set by makeData
	makeData = sync.OnceValue(func() error {
		dir, err := os.MkdirTemp("", "manta-test-data-")
		if err != nil {
			return err
		}
		dataDir = dir
		// Several files, for work on all nodes of a cluster.
		root := newRoot()
		root.SetArgs([]string{"gen", "tpch", "--sf", "0.01", "--files", "4", "--out", filepath.Join(dir, "tpch")})
		root.SetOut(io.Discard)
		return root.Execute()
	})
)

// data is a folder with the tables of TPC-H at scale factor 0.01, for all tests, made by the first that asks.
func data(t testing.TB) string {
	t.Helper()
	require.NoError(t, makeData())
	return filepath.Join(dataDir, "tpch")
}
