package objectstore

import (
	"fmt"
	"io"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// Reader reads an object from start to end without taking memory for it, wherever it is: a way to send a spilled
// value elsewhere, and the only way to read one that is larger than the memory limit. It is for one goroutine.
type Reader struct {
	s      *Store
	e      *entry
	value  []byte // when it is in memory
	at     int64
	sum    *xxh3.Hasher // of what was read from disk
	closed atomic.Bool
}

// NewReader pins an object for reading as a stream. Close ends the pin. Errors: ErrNotFound, ErrLost.
func (s *Store) NewReader(id ID) (*Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	e, err := s.pin(id)
	if err != nil {
		return nil, err
	}
	r := &Reader{s: s, e: e, value: e.buf, sum: xxh3.New()}
	if e.buf == nil && e.loc == nil { // inline, in Badger
		if r.value, err = s.resident(e); err != nil {
			s.unpin(e)
			return nil, fmt.Errorf("object %s: %w", id, err)
		}
	}
	s.count.gets++
	s.count.bytesGot += e.size
	return r, nil
}

// Size returns the number of bytes of the whole object.
func (r *Reader) Size() int64 { return r.e.size }

// Read reads on. Bytes from disk are checked as a whole: instead of io.EOF the last Read returns ErrLost when
// they are not what was written.
func (r *Reader) Read(p []byte) (int, error) {
	left := r.e.size - r.at
	switch {
	case r.closed.Load():
		return 0, ErrClosed
	case left == 0:
		return 0, r.check()
	case int64(len(p)) > left:
		p = p[:left]
	}
	n, err := len(p), error(nil)
	if r.value != nil {
		copy(p, r.value[r.at:])
	} else if n, err = r.readFile(p); err != nil {
		return n, err
	}
	r.at += int64(n)
	return n, nil
}

// check says how the value ends.
func (r *Reader) check() error {
	if r.value == nil && r.e.size > 0 && r.sum.Sum64() != r.e.loc.sum {
		return fmt.Errorf("object %s: %w", r.e.id, r.e.loc.corrupt())
	}
	return io.EOF
}

func (r *Reader) readFile(p []byte) (int, error) {
	s := r.s
	s.mu.Lock()
	err := s.begin()
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	defer s.end()
	loc := r.e.loc // set before the pin was, and kept as long as it
	n, err := loc.file.f.ReadAt(p, loc.off+headerSize+r.at)
	if n < len(p) {
		return 0, fmt.Errorf("object %s: %w: read %s: %w", r.e.id, ErrLost, loc.file.path, err)
	}
	_, _ = r.sum.Write(p)
	return n, nil
}

// Close ends the pin. Further calls do nothing.
func (r *Reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.unpin(r.e)
	return nil
}
