package objectstore

import (
	stdlist "container/list"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"manta/objectstore/refcount"
)

// Store is one node's object store. All methods may be called from any goroutine.
type Store struct {
	cfg   Config // immutable after Open
	lock  *os.File
	index *index

	shards   []*shard // small values; immutable after Open
	labels   labels   // of small values
	pageSize int

	mu       sync.Mutex // guards all below up to count, and what the fields point to
	closed   bool
	refs     *refcount.Table[ID, *entry] // of large values
	writers  map[*Writer]struct{}        // unsealed
	mem      budget
	pool     buffers
	relaxing bool // what the pool keeps is looked at every now and then
	disk     disk

	// An entry in memory that nobody reads stands in one of these.
	clean          list         // also on disk; dropped when room is needed
	dirtyLarge     list         // to be spilled when memory gets short
	cleanPages     stdlist.List // of pages
	cleanPageBytes int64
	turn           uint64 // counts what became clean
	unsealed       int64
	spilling       int64     // bytes of memory of values that are being written
	changes        []indexOp // of the index, not written yet
	changed        uint64    // how many there ever were
	settled        uint64    // how many of them are on disk
	indexTrouble   error     // why the last write of the index failed
	count          counters

	indexed    atomic.Int64 // entries in Badger, with those about to be: while any, it must stay
	badgerLive atomic.Int64 // bytes of segments that are alive
	moved      atomic.Int64 // bytes of large values that were written or read, counted as it goes on
	awaited    atomic.Int64 // calls of Wait
	arrivals   arrivals
	recovery   Recovery // immutable after Open

	ops       sync.WaitGroup // calls inside; Add only while not closed
	done      chan struct{}  // closed by Close
	spillKick chan struct{}
	flushKick chan struct{}
	pressKick chan struct{} // memory is short: flush at once
	loops     sync.WaitGroup
}

// Open makes the store in its directory. What an earlier store left there is removed; with Config.Recover what
// is whole comes back instead: values that were on disk, each held by its owner alone, whoever held it before.
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
	s := newStore(cfg, lock)
	if err := s.start(); err != nil {
		_ = s.index.close()
		_ = s.disk.close()
		_ = s.closeShared()
		lock.Close()
		return nil, err
	}
	s.loops.Add(1 + cfg.SpillWriters)
	go s.flushLoop()
	for range cfg.SpillWriters {
		w := &spiller{s: s}
		go w.loop()
	}
	return s, nil
}

func newStore(cfg Config, lock *os.File) *Store {
	return &Store{
		cfg:       cfg,
		lock:      lock,
		index:     &index{dir: indexDir(realPath(cfg.Dir)), files: cfg.files, logFile: cfg.logFile, collectAfter: cfg.logFile},
		refs:      refcount.New[ID, *entry](hashID, refcount.Memory{}),
		writers:   map[*Writer]struct{}{},
		mem:       budget{limit: cfg.MemoryLimit},
		pool:      buffers{limit: cfg.MemoryLimit, free: map[int64][][]byte{}},
		pageSize:  pageSizeFor(cfg.MemoryLimit),
		disk:      disk{files: cfg.files, dir: spillDir(cfg.Dir), limit: cfg.DiskLimit, fileSize: cfg.SpillFile, all: map[*spillFile]struct{}{}},
		done:      make(chan struct{}),
		spillKick: make(chan struct{}, 1),
		flushKick: make(chan struct{}, 1),
		pressKick: make(chan struct{}, 1),
	}
}

// start makes the directory what the config asks for, and takes over what is in it.
func (s *Store) start() error {
	shards := 1
	if s.cfg.MemoryLimit >= shardedAbove {
		shards = mostShards
	}
	m, err := openMarker(s.cfg.Dir, s.cfg.Recover, shards)
	if err != nil {
		return err
	}
	for i := range m.Shards {
		s.shards = append(s.shards, newShard(s, i))
	}
	if s.cfg.Shared {
		if s.pool.shared, err = openShared(s.cfg.sharedIn); err != nil {
			return fmt.Errorf("objectstore: shared memory: %w", err)
		}
		s.pool.names = map[*byte]string{}
	}
	if s.cfg.Recover {
		return s.recover()
	}
	if err := sweep(s.cfg.Dir); err != nil {
		return fmt.Errorf("objectstore: %w", err)
	}
	return nil
}

// closeShared removes the files of shared memory. What is still mapped stays until it is released.
func (s *Store) closeShared() error {
	if s.pool.shared == nil {
		return nil
	}
	return s.pool.shared.close()
}

// realPath is how the system calls a directory, when it can be told.
func realPath(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			return real
		}
	}
	return dir
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

// Close refuses new calls, ends waiting ones with ErrClosed, waits for the rest and removes what is on disk; with
// Config.Recover it writes there what is only in memory, as far as that is possible, and leaves it.
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
	var errs []error
	if s.cfg.Recover {
		errs = append(errs, s.save())
	}
	errs = append(errs, s.index.close())
	for _, sh := range s.shards {
		sh.shut()
	}

	s.mu.Lock()
	s.refs.All(1, -1, func(slot refcount.Slot) {
		if e := *s.refs.Value(slot); !e.pinned {
			s.dropMemory(e)
		}
	})
	s.pool.limit = 0 // what pinned objects give back goes straight to the system
	s.pool.trim(0)
	errs = append(errs, s.disk.close(), s.closeShared())
	s.mu.Unlock()

	if !s.cfg.Recover {
		errs = append(errs, sweep(s.cfg.Dir), os.Remove(spillDir(s.cfg.Dir)), os.Remove(markerPath(s.cfg.Dir)))
	}
	errs = append(errs, s.lock.Close())
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
