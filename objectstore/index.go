package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// index is the Badger database of a store: the inline values, and where the spilled ones are. It says what is
// on disk; looking up an object that is in memory does not touch it. Badger is opened at the first write,
// because many a process never makes one, and opening takes longer than all else at start.
type index struct {
	dir   string
	files filesystem

	mu      sync.RWMutex // held for reading while db is used; taken before the store's mutex
	db      *badger.DB   // guarded by mu; nil until opened
	written atomic.Int64 // bytes since it was opened
}

// Badger maps its files at their full length, which on a full disk ends in a fault instead of an error. So
// nothing is written with less than this left.
const diskReserve = 64 << 20

// indexOp is one change: an inline value, the location of a spilled one, or (neither) a removal.
type indexOp struct {
	id    ID
	owner string
	value []byte // inline, when inline is set
	loc   *location
	size  int64

	inline bool
}

// Kinds of index values, their first byte.
const (
	kindInline  = 1 // owner, value
	kindSpilled = 2 // owner, size, offset, checksum, file path
)

func indexKey(id ID) []byte { return append([]byte{'o'}, id[:]...) }

func (op *indexOp) encode() []byte {
	kind, room := byte(kindSpilled), 64
	if op.inline {
		kind, room = kindInline, len(op.value)
	}
	b := make([]byte, 1, 1+binary.MaxVarintLen64+len(op.owner)+room)
	b[0] = kind
	b = binary.AppendUvarint(b, uint64(len(op.owner)))
	b = append(b, op.owner...)
	if op.inline {
		return append(b, op.value...)
	}
	b = binary.AppendUvarint(b, uint64(op.size))
	b = binary.AppendUvarint(b, uint64(op.loc.off))
	b = binary.LittleEndian.AppendUint64(b, op.loc.sum)
	return append(b, op.loc.file.path...)
}

// inlineValue returns the value within an encoded entry.
func inlineValue(b []byte) ([]byte, error) {
	if len(b) > 0 && b[0] == kindInline {
		n, w := binary.Uvarint(b[1:])
		if w > 0 && n <= uint64(len(b)-1-w) {
			return b[1+w+int(n):], nil
		}
	}
	return nil, errors.New("malformed index entry")
}

// use calls do with the database, and opens it if need be.
func (x *index) use(do func(*badger.DB) error) error {
	x.mu.RLock()
	for x.db == nil {
		x.mu.RUnlock()
		if err := x.open(); err != nil {
			return err
		}
		x.mu.RLock()
	}
	defer x.mu.RUnlock()
	return do(x.db)
}

func (x *index) open() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != nil {
		return nil
	}
	// Everything is sized for a guest in somebody else's memory: at most two tables of 8 MiB being filled or
	// written, no caches (uncompressed blocks are read in place), and two compactors. Values above 1 KiB go to
	// the value log: in the tree each would be written again by compactions, at a fifth of the speed.
	opt := badger.DefaultOptions(x.dir).
		WithLogger(nil).
		WithMetricsEnabled(false).
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithNumCompactors(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(8).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithCompression(options.None).
		WithValueThreshold(1 << 10).
		WithValueLogFileSize(64 << 20).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithNumGoroutines(1)
	db, err := badger.Open(opt)
	if err != nil {
		return fmt.Errorf("open index %s: %w", x.dir, err)
	}
	x.db = db
	return nil
}

// write makes all changes, in order. When it fails, some may have been made; making them again does no harm.
// Borrows the values.
func (x *index) write(ops []indexOp) error {
	if free, err := x.files.Free(filepath.Dir(x.dir)); err == nil && free < diskReserve {
		return fmt.Errorf("write index: the disk has only %s left", bytesText(free))
	}
	err := x.use(func(db *badger.DB) error {
		batch := db.NewWriteBatch()
		defer batch.Cancel()
		for i := range ops {
			op := &ops[i]
			var err error
			if op.inline || op.loc != nil {
				value := op.encode()
				x.written.Add(int64(len(value)))
				err = batch.Set(indexKey(op.id), value)
			} else {
				err = batch.Delete(indexKey(op.id))
			}
			if err != nil {
				return err
			}
		}
		return batch.Flush()
	})
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// read fills dst with an inline value.
func (x *index) read(id ID, dst []byte) error {
	err := x.use(func(db *badger.DB) error {
		return db.View(func(txn *badger.Txn) error {
			item, err := txn.Get(indexKey(id))
			if err != nil {
				return err
			}
			return item.Value(func(b []byte) error {
				value, err := inlineValue(b)
				if err == nil && len(value) != len(dst) {
					err = fmt.Errorf("%d bytes instead of %d", len(value), len(dst))
				}
				copy(dst, value)
				return err
			})
		})
	})
	if err != nil {
		return fmt.Errorf("%w: read index: %w", ErrLost, err)
	}
	return nil
}

// resetAfter is how much must have been written before an index without live entries is started anew.
const resetAfter = 32 << 20

// reset removes the database when nothing in it is needed, which is faster than any collection and returns all
// of its memory and disk. unneeded is asked while nobody can write; it must not use the index.
func (x *index) reset(unneeded func() bool) error {
	if x.written.Load() < resetAfter {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil || !unneeded() {
		return nil
	}
	err := errors.Join(x.db.Close(), os.RemoveAll(x.dir))
	x.db = nil
	x.written.Store(0)
	return err
}

func (x *index) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	return x.db.Close()
}
