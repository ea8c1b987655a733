package objectstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// format is the version of what is in a directory. A store reads its own and older ones.
const format = 1

// marker is the file STORE: what must be known before anything else in the directory is read.
type marker struct {
	Format int `json:"format"`
	Shards int `json:"shards"`
}

func markerPath(dir string) string { return filepath.Join(dir, "STORE") }

// openMarker reads the marker, or makes a new one when there is none or what is there is not wanted.
func openMarker(dir string, keep bool, shards int) (m marker, err error) {
	b, err := os.ReadFile(markerPath(dir))
	switch {
	case err == nil:
		if err := json.Unmarshal(b, &m); err != nil || m.Format < 1 || m.Shards < 1 || m.Shards > mostShards || m.Shards&(m.Shards-1) != 0 {
			if keep {
				return m, fmt.Errorf("%w: %s says nothing that makes sense; remove the directory to start empty", ErrCorrupt, markerPath(dir))
			}
			break
		}
		if m.Format > format {
			return m, fmt.Errorf("%w: %s has format %d, and this program reads up to %d", ErrVersion, dir, m.Format, format)
		}
		if keep {
			return m, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("objectstore: %w", err)
	default: // no store was here; what has the names of its folders is not to be emptied
		for _, folder := range []string{indexDir(dir), spillDir(dir)} {
			if _, err := os.Lstat(folder); err == nil {
				return m, fmt.Errorf("%w: %s; choose another directory", ErrForeign, folder)
			}
		}
	}
	m = marker{Format: format, Shards: shards}
	b, err = json.Marshal(m)
	if err == nil {
		err = writeFile(markerPath(dir), append(b, '\n'))
	}
	if err != nil {
		return m, fmt.Errorf("objectstore: %w", err)
	}
	return m, nil
}

// writeFile makes a file whole or not at all.
func writeFile(path string, b []byte) error {
	if err := os.WriteFile(path+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
