package objectstore

import (
	"io"
	"os"
)

// filesystem is what spilling needs from the system, so that tests can make it fail.
type filesystem interface {
	Create(path string) (file, error) // fails when the file exists
	Remove(path string) error
	Free(dir string) (int64, error) // bytes that can still be written
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Close() error
}

type osFiles struct{}

func (osFiles) Create(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err // not the *os.File: a nil one in an interface is not nil
	}
	return f, nil
}

func (osFiles) Remove(path string) error { return os.Remove(path) }

func (osFiles) Free(dir string) (int64, error) { return freeDisk(dir) }
