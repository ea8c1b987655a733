package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// uncache writes the files of a folder to disk and has the system forget what it keeps of them in memory.
func uncache(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreGone(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return ignoreGone(err)
		}
		defer f.Close()
		if err := f.Sync(); err != nil {
			return err
		}
		_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) // advice
		return nil
	})
}

// ignoreGone is err, unless a file went meanwhile.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
