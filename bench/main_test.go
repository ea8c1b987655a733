package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"manta/bench/tpc"
)

func TestMain(m *testing.M) {
	code := m.Run()
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
	os.Exit(code)
}

// sf is the scale factor of the tests' data, one with official answers.
const sf = 0.01

var (
	dataDir  string // set by makeData
	makeData = sync.OnceValue(func() error {
		dir, err := os.MkdirTemp("", "bench-test-")
		if err != nil {
			return err
		}
		dataDir = dir
		return tpc.H.Generate(context.Background(), filepath.Join(dir, "tpch"), sf, 2)
	})
)

// data is a folder with the tables of TPC-H, for all tests, made by the first that asks.
func data(t *testing.T) string {
	t.Helper()
	require.NoError(t, makeData())
	return filepath.Join(dataDir, "tpch")
}
