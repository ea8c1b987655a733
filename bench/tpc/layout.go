package tpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// ErrNoData is wrapped by errors about a directory that does not hold all tables.
var ErrNoData = errors.New("tpc: no data")

// DefaultDir is where the data of a scale factor is kept: manta/NAME-sfSF in the user's cache directory.
func (s *Suite) DefaultDir(sf float64) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("tpc: no cache directory: %w", err)
	}
	return filepath.Join(cache, "manta", s.Name+"-sf"+strconv.FormatFloat(sf, 'f', -1, 64)), nil
}

// TablesIn returns a glob for each table in dir: DIR/TABLE/*.parquet, or DIR/TABLE.parquet in a directory that was made
// elsewhere.
func (s *Suite) TablesIn(dir string) (map[string]string, error) {
	tables := map[string]string{}
	for _, name := range s.Tables {
		for _, glob := range []string{filepath.Join(dir, name, "*.parquet"), filepath.Join(dir, name+".parquet")} {
			files, err := filepath.Glob(glob)
			if err != nil {
				return nil, fmt.Errorf("tpc: %s: %w", glob, err)
			}
			if len(files) > 0 {
				tables[name] = glob
				break
			}
		}
		if tables[name] == "" {
			return nil, fmt.Errorf("%w: %s has no %s/*.parquet and no %s.parquet", ErrNoData, dir, name, name)
		}
	}
	return tables, nil
}

// ScaleFactor returns the scale factor of a directory that Generate made; ok is false for other directories.
func (s *Suite) ScaleFactor(dir string) (sf float64, ok bool) {
	m, err := s.readMarker(dir)
	return m.ScaleFactor, err == nil
}

// formatVersion changes when the files for the same parameters do.
const formatVersion = 1

// markerName is the file in a directory that says what it holds.
func (s *Suite) markerName() string { return s.Name + ".json" }

// marker says what a directory holds.
type marker struct {
	Format      int     `json:"format"`
	ScaleFactor float64 `json:"scale_factor"`
	Files       int     `json:"files"`
}

func (s *Suite) readMarker(dir string) (marker, error) {
	var m marker
	text, err := os.ReadFile(filepath.Join(dir, s.markerName()))
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

func (s *Suite) writeMarker(m marker, dir string) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.markerName()), append(text, '\n'), 0o644)
}
