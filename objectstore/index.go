package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// index is the Badger database of a store: the inline values, and where the spilled ones are. It says what is
// on disk; looking up an object that is in memory does not touch it. Badger is opened at the first write,
// because many a process never makes one, and opening takes longer than all else at start.
type index struct {
	dir   string
	files filesystem

	mu sync.Mutex // held while opening
	db *badger.DB // guarded by mu; nil until opened
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

// opened returns the database, and opens it if need be.
func (x *index) opened() (*badger.DB, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != nil {
		return x.db, nil
	}
	// Everything is sized for a guest in somebody else's memory: at most two tables of 8 MiB being filled or
	// written, no caches (uncompressed blocks are read in place), and two compactors. Values stay in the tree:
	// they are at most inline size, and a value log would need collections of its own to shrink.
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
		WithValueThreshold(1 << 20).
		WithValueLogFileSize(1 << 20).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithNumGoroutines(1)
	db, err := badger.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("open index %s: %w", x.dir, err)
	}
	x.db = db
	return db, nil
}

// write makes all changes, in order. When it fails, some may have been made; making them again does no harm.
// Borrows the values.
func (x *index) write(ops []indexOp) error {
	if free, err := x.files.Free(filepath.Dir(x.dir)); err == nil && free < diskReserve {
		return fmt.Errorf("write index: the disk has only %s left", bytesText(free))
	}
	db, err := x.opened()
	if err != nil {
		return err
	}
	batch := db.NewWriteBatch()
	defer batch.Cancel()
	for i := range ops {
		op := &ops[i]
		if op.inline || op.loc != nil {
			err = batch.Set(indexKey(op.id), op.encode())
		} else {
			err = batch.Delete(indexKey(op.id))
		}
		if err != nil {
			return fmt.Errorf("write index: %w", err)
		}
	}
	if err := batch.Flush(); err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	return nil
}

// read fills dst with an inline value.
func (x *index) read(id ID, dst []byte) error {
	db, err := x.opened()
	if err == nil {
		err = db.View(func(txn *badger.Txn) error {
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
	}
	if err != nil {
		return fmt.Errorf("%w: read index: %w", ErrLost, err)
	}
	return nil
}

func (x *index) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	return x.db.Close()
}
