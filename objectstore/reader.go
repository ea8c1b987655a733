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
	o      *Object // a small value, or nil
	e      *entry  // a large one, or nil
	loc    *location
	size   int64
	value  []byte // when it is in memory
	at     int64
	sum    *xxh3.Hasher // of what was read from disk
	closed atomic.Bool
}

// NewReader pins an object for reading as a stream. Close ends the pin. Errors: ErrNotFound, ErrLost.
func (s *Store) NewReader(id ID) (*Reader, error) {
	if id.small() {
		o, err := s.getSmall(id)
		if err != nil {
			return nil, err
		}
		return &Reader{s: s, o: o, size: o.size, value: o.data}, nil
	}
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
	r := &Reader{s: s, e: e, size: e.size, value: e.buf}
	if e.buf == nil {
		r.sum, r.loc = xxh3.New(), e.loc
		r.loc.file.users++
	}
	s.count.gets++
	s.count.bytesGot += e.size
	return r, nil
}

// Size returns the number of bytes of the whole object.
func (r *Reader) Size() int64 { return r.size }

// Read reads on. Bytes from disk are checked as a whole: instead of io.EOF the last Read returns ErrLost when
// they are not what was written.
func (r *Reader) Read(p []byte) (int, error) {
	left := r.size - r.at
	switch {
	case r.closed.Load():
		return 0, ErrClosed
	case left == 0:
		return 0, r.check()
	case int64(len(p)) > left:
		p = p[:left]
	}
	n, err := len(p), error(nil)
	if r.loc == nil {
		copy(p, r.value[r.at:])
	} else if n, err = r.readFile(p); err != nil {
		return n, err
	}
	r.at += int64(n)
	return n, nil
}

// check says how the value ends.
func (r *Reader) check() error {
	if r.loc != nil && r.size > 0 && r.sum.Sum64() != r.loc.sum {
		return fmt.Errorf("object %s: %w", r.e.id, r.loc.corrupt())
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
	n, err := r.loc.file.f.ReadAt(p, r.loc.off+headerSize+r.at)
	if n < len(p) {
		return 0, fmt.Errorf("object %s: %w: read %s: %w", r.e.id, ErrLost, r.loc.file.path, err)
	}
	_, _ = r.sum.Write(p)
	return n, nil
}

// Close ends the pin. Further calls do nothing.
func (r *Reader) Close() error {
	if r.closed.Swap(true) {
		return nil
	}
	if r.o != nil {
		r.o.Release()
		return nil
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	if r.loc != nil && !r.s.closed {
		r.s.disk.leave(r.loc.file)
		kick(r.s.spillKick)
	}
	r.s.unpin(r.e)
	return nil
}
