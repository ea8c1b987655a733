package objectstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTempDirsOfTheDeadAreRemoved(t *testing.T) {
	if !locksFiles {
		t.Skip("nobody knows who is dead")
	}
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	names := func() (names []string) {
		entries, err := os.ReadDir(parent)
		require.NoError(t, err)
		for _, e := range entries {
			names = append(names, filepath.Join(parent, e.Name()))
		}
		return names
	}
	foreign := filepath.Join(parent, "manta-12") // not made here
	require.NoError(t, os.Mkdir(foreign, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, lockName), nil, 0o600))
	alive, err := MakeTempDir()
	require.NoError(t, err)
	dead, err := MakeTempDir()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(dead.Path, "store", "spill"), 0o700))
	require.ElementsMatch(t, []string{foreign, alive.Path, dead.Path}, names())
	require.NoError(t, dead.lock.Close()) // as the system does for a process that ends
	next, err := MakeTempDir()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{foreign, alive.Path, next.Path}, names())
	require.NoError(t, next.Remove())
	require.NoError(t, alive.Remove())
	require.Equal(t, []string{foreign}, names())
}
