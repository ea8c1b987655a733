//go:build !linux

package objectstore

import "os"

func adviseHuge([]byte) {}

func adviseAhead(*os.File, int64, int64) {}

// reserveFile gives a new file n bytes that are there, or fails: by writing them, where nothing better is known.
func reserveFile(f *os.File, n int64) error {
	zeros := make([]byte, 1<<20)
	for at := int64(0); at < n; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(n-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	return nil
}

func dropMappedPages(folder, suffix string) {}
