package objectstore

import (
	"io"
	"os"
)

// filesystem is what spilling needs from the system, so that tests can make it fail.
type filesystem interface {
	Create(path string) (file, error) // fails when the file exists
	Remove(path string) error
	Open(path string) (file, error)                  // one that exists
	Space(dir string) (free, total int64, err error) // bytes that can still be written, and that there are
}

type file interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Size() (int64, error)
	Ahead(off, n int64) // these bytes will be read
	Close() error
}

type osFiles struct{}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

func (f osFile) Ahead(off, n int64) { adviseAhead(f.File, off, n) }

func (osFiles) Create(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err // not the *os.File: a nil one in an interface is not nil
	}
	return osFile{f}, nil
}

func (osFiles) Remove(path string) error { return os.Remove(path) }

func (osFiles) Open(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFiles) Space(dir string) (free, total int64, err error) { return diskSpace(dir) }
