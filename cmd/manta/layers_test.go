package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists the top-level folders from the highest to the lowest. A package
// may import packages of its own folder and of the folders after it, no other.
var layers = []string{"cmd", "bench", "planner", "shuffle", "actors", "objectstore"}

// TestImportsPointOneWay walks every Go file of the module, tests included.
func TestImportsPointOneWay(t *testing.T) {
	const root = "../.."
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if strings.HasPrefix(entry.Name(), ".") && rel != "." || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		folder, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		own := slices.Index(layers, folder)
		if own < 0 {
			t.Errorf("%s: the folder %q is none of %v", rel, folder, layers)
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			inside, ok := strings.CutPrefix(imported, "manta/")
			if !ok {
				continue
			}
			other, _, _ := strings.Cut(inside, "/")
			if at := slices.Index(layers, other); at < own {
				t.Errorf("%s imports %s, which stands above it", rel, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d files seen: the walk did not reach the module", files)
	}
}
