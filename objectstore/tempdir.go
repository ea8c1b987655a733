package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// TempDir is a folder in the system's folder for temporary files, for a store and what is beside it. It is to be
// removed when it is not needed any more. What a process left that was killed the next one removes.
type TempDir struct {
	Path string
	lock *os.File // held as long as the folder is in use
}

// MakeTempDir makes one.
func MakeTempDir() (*TempDir, error) {
	sweepUnused(filepath.Join(os.TempDir(), tempPrefix+"[0-9]*"))
	path, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("objectstore: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &TempDir{path, lock}, nil
}

const tempPrefix = "manta-"

// Remove removes the folder.
func (d *TempDir) Remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close())
}

// sweepUnused removes the folders of a pattern that have a lock that nobody holds: their process is gone. Those of
// other users are left alone: their locks cannot be opened.
func sweepUnused(pattern string) {
	if !locksFiles {
		return
	}
	folders, _ := filepath.Glob(pattern)
	for _, folder := range folders {
		who, err := os.ReadFile(filepath.Join(folder, lockName))
		if _, number := strconv.Atoi(strings.TrimSpace(string(who))); err != nil || number != nil {
			continue // it is being made, or removed, or somebody else's
		}
		if lock, err := lockDir(folder); err == nil {
			_ = os.RemoveAll(folder)
			lock.Close()
		}
	}
}
