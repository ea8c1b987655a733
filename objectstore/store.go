package objectstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"manta/objectstore/refcount"
)

// Store is one node's object store. All methods may be called from any goroutine.
type Store struct {
	cfg   Config // immutable after Open
	lock  *os.File
	index *index

	mu      sync.Mutex // guards all below, and what the fields point to
	closed  bool
	refs    *refcount.Table[ID]
	entries map[ID]*entry
	writers map[*Writer]struct{} // unsealed
	mem     budget
	pool    buffers
	idle    bool // the store became empty: what it keeps mapped is to be looked at
	disk    disk

	// An entry in memory that nobody reads stands in one of these.
	clean        list // also on disk; dropped when room is needed
	dirtyLarge   list // to be spilled when memory gets short
	dirtySmall   list // to be written to Badger soon; pinned ones stand here too
	unsealed     int64
	indexed      int       // objects on disk, with those about to be: while any, the index must stay
	flushing     bool      // a batch is being written to Badger
	changes      []indexOp // of the index, not written yet
	indexTrouble error     // why the last write of the index failed

	count counters

	ops       sync.WaitGroup // calls inside; Add only while not closed
	done      chan struct{}  // closed by Close
	spillKick chan struct{}
	flushKick chan struct{}
	loops     sync.WaitGroup
}

// Open makes the store in its directory. What an earlier store left there is removed: objects do not outlive
// the process that made them.
func Open(cfg Config) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("objectstore: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	if err := sweep(cfg.Dir); err != nil {
		lock.Close()
		return nil, fmt.Errorf("objectstore: %w", err)
	}
	s := &Store{
		cfg:       cfg,
		lock:      lock,
		index:     &index{dir: indexDir(cfg.Dir), files: cfg.files},
		refs:      refcount.New[ID](),
		entries:   map[ID]*entry{},
		writers:   map[*Writer]struct{}{},
		mem:       budget{limit: cfg.MemoryLimit},
		pool:      buffers{limit: cfg.MemoryLimit, free: map[int64][][]byte{}},
		disk:      disk{files: cfg.files, dir: spillDir(cfg.Dir), limit: cfg.DiskLimit, fileSize: cfg.SpillFile},
		done:      make(chan struct{}),
		spillKick: make(chan struct{}, 1),
		flushKick: make(chan struct{}, 1),
	}
	s.loops.Add(2)
	go s.spillLoop()
	go s.flushLoop()
	return s, nil
}

func indexDir(dir string) string { return filepath.Join(dir, "index") }
func spillDir(dir string) string { return filepath.Join(dir, "spill") }

// sweep empties the directory of a store that is not open.
func sweep(dir string) error {
	if err := os.RemoveAll(indexDir(dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(spillDir(dir)); err != nil {
		return err
	}
	return os.Mkdir(spillDir(dir), 0o700)
}

// Close refuses new calls, ends waiting ones with ErrClosed, waits for the rest and removes what is on disk.
// Objects that are still pinned keep their bytes until they are released.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	s.mem.fail(func(*waiter) bool { return true }, ErrClosed)
	writers := s.openWriters(func(*Writer) bool { return true })
	s.mu.Unlock()

	for _, w := range writers {
		w.end(ErrClosed)
	}
	s.ops.Wait()
	s.loops.Wait()
	errs := []error{s.index.close()}

	s.mu.Lock()
	s.idle = true // nobody is left to be told
	for _, e := range s.entries {
		if !e.pinned {
			s.dropMemory(e)
		}
	}
	s.pool.limit = 0 // what pinned objects give back goes straight to the system
	s.pool.trim(0)
	errs = append(errs, s.disk.close())
	s.mu.Unlock()

	errs = append(errs, sweep(s.cfg.Dir), os.Remove(spillDir(s.cfg.Dir)), s.lock.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("objectstore: close: %w", err)
	}
	return nil
}

// begin lets a call in; end must follow. mu held.
func (s *Store) begin() error {
	if s.closed {
		return ErrClosed
	}
	s.ops.Add(1)
	return nil
}

func (s *Store) end() { s.ops.Done() }

// kick wakes a loop; one that is awake looks again before it sleeps.
func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
