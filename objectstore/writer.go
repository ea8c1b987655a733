package objectstore

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
)

// Writer fills one object. It is for one goroutine, but may be ended from another: when the owner ends or the
// store closes, an unsealed object goes and its space returns, and the writer's calls fail with that reason.
type Writer struct {
	s         *Store
	id        ID
	owner     string
	label     string
	size      int64
	secondary bool

	mu      sync.Mutex // held while the bytes are touched; taken before the store's mutex
	err     error      // why the writer takes no more
	written int64
	buf     []byte // nil for a direct writer; of the Go heap for a small value, which is put in its place by Seal
	direct  *spillFile
	sum     *xxh3.Hasher // of a direct writer
}

// Create starts an object of exactly size bytes. It waits for room in memory. A value that can never fit there,
// and one that finds no room in time, is written straight to disk. The error is ErrFull when that fails too.
func (s *Store) Create(owner string, size int64) (*Writer, error) {
	small := size <= int64(s.cfg.InlineMax)
	return s.create(&Writer{s: s, id: newID(small), owner: owner, size: size})
}

// CreateCopy starts a copy of an object that another store keeps, under the same id. When room is needed it is
// not spilled but goes as a whole, and its id is unknown then. A small value is kept as any other is.
func (s *Store) CreateCopy(owner string, id ID, size int64) (*Writer, error) {
	if id.small() != (size <= int64(s.cfg.InlineMax)) {
		return nil, fmt.Errorf("%w: %d bytes do not go with the id %s", ErrSize, size, id)
	}
	return s.create(&Writer{s: s, id: id, owner: owner, size: size, secondary: true})
}

func (s *Store) create(w *Writer) (*Writer, error) {
	if w.size < 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrSize, w.size)
	}
	if w.id.small() {
		w.buf = make([]byte, w.size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if s.refs.Ended(w.owner) {
		return nil, fmt.Errorf("%w: %s", ErrOwnerEnded, w.owner)
	}
	if !w.id.small() {
		if err := s.prepare(w); err != nil {
			return nil, err
		}
	}
	// The lock may have been let go: look again before the writer counts.
	err := error(nil)
	if s.closed {
		err = ErrClosed
	} else if s.refs.Ended(w.owner) {
		err = fmt.Errorf("%w: %s", ErrOwnerEnded, w.owner)
	}
	if err != nil {
		s.giveUp(w)
		return nil, err
	}
	if !w.id.small() {
		s.unsealed += int64(cap(w.buf))
	}
	s.writers[w] = struct{}{}
	return w, nil
}

// Label says in a few words what makes the object, for those who look at what a store has. It is kept until the
// store is closed, of a small value its first 64 bytes, and is best one of few. To be called before Seal.
func (w *Writer) Label(text string) { w.label = text }

// ID returns the id that the object will have. It names nothing before Seal.
func (w *Writer) ID() ID { return w.id }

// prepare gives a large value its place: memory, or a file. mu held; may be let go.
func (s *Store) prepare(w *Writer) error {
	need := capacityFor(w.size, s.mem.limit)
	err := s.reserve(need, w.owner)
	if err == nil {
		w.buf, err = s.allocate(w.size, need)
	}
	if full := (*FullError)(nil); errors.As(err, &full) && !w.secondary {
		if direct := s.openDirect(w); direct != nil {
			full.Cause = direct
			return full
		}
		return nil
	}
	return err
}

// openDirect gives the writer a file of its own. mu held; let go meanwhile.
func (s *Store) openDirect(w *Writer) error {
	if err := s.disk.take(recordSize(w.size)); err != nil {
		return err
	}
	sf := s.disk.newFile()
	sf.size, sf.busy = recordSize(w.size), true
	s.mu.Unlock()
	f, err := s.disk.files.Create(sf.path)
	s.mu.Lock()
	if err != nil {
		s.disk.dead += sf.size
		s.disk.forget(sf)
		return fmt.Errorf("write to disk: %w", err)
	}
	sf.f, sf.made = f, true
	w.direct, w.sum = sf, xxh3.New()
	return nil
}

// Write appends p. It copies p into its place and is done with it. When it fails the object is given up.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.size-w.written {
		w.stop(fmt.Errorf("%w: more than %d bytes", ErrSize, w.size))
		return 0, w.err
	}
	if w.direct == nil {
		copy(w.buf[w.written:], p)
	} else {
		if err := writeFull(w.direct.f, p, headerSize+w.written); err != nil {
			w.stop(w.diskFull(err))
			return 0, w.err
		}
		_, _ = w.sum.Write(p)
	}
	w.written += int64(len(p))
	return len(p), nil
}

func (w *Writer) diskFull(err error) error {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	full := w.s.full(w.size)
	full.Cause = fmt.Errorf("write to %s: %w", w.direct.path, err)
	return full
}

// Seal makes the object visible, with the owner's hold on it, and ends the writer.
func (w *Writer) Seal() (ID, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return ID{}, w.err
	}
	if w.written != w.size {
		w.stop(fmt.Errorf("%w: %d of %d bytes", ErrSize, w.written, w.size))
		return ID{}, w.err
	}
	if err := w.finish(); err != nil {
		w.stop(err)
		return ID{}, err
	}
	w.err = ErrSealed
	w.s.arrived(w.id)
	return w.id, nil
}

// finish puts a complete value where it belongs and makes it an object. w.mu held.
func (w *Writer) finish() error {
	s := w.s
	if w.id.small() {
		if err := s.putSmall(w.id, w.owner, w.label, len(w.buf), [][]byte{w.buf}); err != nil {
			return err
		}
		w.buf = nil
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.writers, w)
		return nil
	}
	if w.direct != nil {
		if err := writeFull(w.direct.f, header(w.id, w.size, w.sum.Sum64()), 0); err != nil {
			return w.diskFull(err)
		}
	}
	return s.seal(w)
}

// seal turns a complete writer into an entry.
func (s *Store) seal(w *Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	e := &entry{id: w.id, owner: w.owner, label: w.label, size: w.size, secondary: w.secondary, born: time.Now()}
	slot, err := s.refs.Add(w.id, w.owner, e)
	if err != nil {
		return holdError(err, w.id, w.owner)
	}
	e.slot = slot
	s.count.large.add(e)
	delete(s.writers, w)
	s.count.puts++
	s.count.bytesPut += w.size
	if w.direct != nil {
		w.direct.busy = false
		s.spilled(e, &location{file: w.direct, sum: w.sum.Sum64()})
		s.wakeSpill()
	} else {
		s.unsealed -= int64(cap(w.buf))
		s.setMemory(e, w.buf)
		s.place(e)
	}
	w.buf, w.direct = nil, nil
	return nil
}

// Abort gives the object up. After Seal, and again, it does nothing.
func (w *Writer) Abort() { w.end(ErrSealed) }

// end stops the writer from outside with a reason.
func (w *Writer) end(reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.stop(reason)
	}
}

// stop gives the writer's space back. w.mu held.
func (w *Writer) stop(reason error) {
	w.err = reason
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.id.small() {
		s.unsealed -= int64(cap(w.buf))
	}
	s.giveUp(w)
	delete(s.writers, w)
}

// giveUp returns what prepare took. mu held.
func (s *Store) giveUp(w *Writer) {
	if w.buf != nil && !w.id.small() {
		s.free(w.buf)
		s.makeRoom()
	}
	if w.direct != nil {
		w.direct.busy = false
		s.disk.dead += w.direct.size
		s.disk.settle(w.direct)
		kick(s.spillKick)
	}
	w.buf, w.direct = nil, nil
}

// openWriters returns the unsealed writers that match. mu held.
func (s *Store) openWriters(match func(*Writer) bool) (found []*Writer) {
	for w := range s.writers {
		if match(w) {
			found = append(found, w)
		}
	}
	return found
}
