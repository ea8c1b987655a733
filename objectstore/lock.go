package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const lockName = "LOCK"

var errLockHeld = errors.New("lock is held")

// lockDir makes this store the only one in dir until the file is closed.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("objectstore: %w", err)
	}
	if err := lockFile(f); err != nil {
		defer f.Close()
		if errors.Is(err, errLockHeld) {
			who, _ := os.ReadFile(path) // for the message only
			return nil, fmt.Errorf("%w: %s belongs to the store of process %s", ErrLocked, dir, strings.TrimSpace(string(who)))
		}
		return nil, fmt.Errorf("objectstore: lock %s: %w", path, err)
	}
	// The content only helps the reader of the message above; failing to write it harms nothing.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	return f, nil
}
