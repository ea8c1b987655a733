package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

// index is the Badger database of a store: the small values, and where the spilled ones are. It says what is
// on disk; looking up an object that is in memory does not touch it. Badger is opened at the first write,
// because many a process never makes one, and opening takes longer than all else at start.
type index struct {
	dir          string
	files        filesystem
	logFile      int64 // size of a file of the log
	collectAfter int64 // bytes to be written before the log is looked at again

	mu        sync.RWMutex // held for reading while db is used; taken before the store's mutex
	db        *badger.DB   // guarded by mu; nil until opened
	written   atomic.Int64 // bytes since it was opened
	collected atomic.Int64 // written when the log was last collected
	touched   atomic.Int64 // bytes of mapped files that were read or written since the pages were handed back
}

// Badger maps its files at their full length, which on a full disk ends in a fault instead of an error. So
// nothing is written with less than this left.
const diskReserve = 64 << 20

// indexOp is one change: a new value, or none for a removal. The first byte of a key says what it is about:
//
//	s  a segment of small values
//	t  the list of those values of a segment that are gone
//	o  where a large value is
type indexOp struct{ key, value []byte }

func locationKey(id ID) []byte { return append([]byte{'o'}, id[:]...) }

// spilled is what the index says about a large value.
type spilled struct {
	owner string
	size  int64
	off   int64
	sum   uint64
	file  string // name within the spill directory
}

func (l *spilled) encode() []byte {
	b := make([]byte, 0, 40+len(l.owner)+len(l.file))
	b = binary.AppendUvarint(b, uint64(len(l.owner)))
	b = append(b, l.owner...)
	b = binary.AppendUvarint(b, uint64(l.size))
	b = binary.AppendUvarint(b, uint64(l.off))
	b = binary.LittleEndian.AppendUint64(b, l.sum)
	return append(b, l.file...)
}

var errLocation = errors.New("malformed location")

func parseSpilled(b []byte) (l spilled, err error) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return l, errLocation
	}
	l.owner, b = string(b[w:w+int(n)]), b[w+int(n):]
	for _, field := range []*int64{&l.size, &l.off} {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > math.MaxInt64/2 {
			return l, errLocation
		}
		*field, b = int64(n), b[w:]
	}
	if len(b) < 8 {
		return l, errLocation
	}
	l.sum, l.file = binary.LittleEndian.Uint64(b), string(b[8:])
	return l, nil
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
		WithValueLogFileSize(x.logFile).
		WithSyncWrites(false).
		WithDetectConflicts(false).
		WithNumGoroutines(1).
		WithCompactL0OnClose(true) // for collect
	if err := removeEmptyLogs(x.dir); err != nil {
		return fmt.Errorf("open index %s: %w", x.dir, err)
	}
	db, err := badger.Open(opt)
	if err != nil {
		return fmt.Errorf("open index %s: %w", x.dir, err)
	}
	x.db = db
	return nil
}

// removeEmptyLogs removes logs of no length: a process that is killed while Badger makes one leaves it so, and
// Badger takes it for damage.
func removeEmptyLogs(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".vlog" && ext != ".mem" {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Size() == 0 {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write makes all changes, in order. When it fails, some may have been made; making them again does no harm.
// Borrows the values.
func (x *index) write(ops []indexOp) error {
	if free, _, err := x.files.Space(filepath.Dir(x.dir)); err == nil && free < diskReserve {
		return fmt.Errorf("write index: the disk has only %s left", bytesText(free))
	}
	err := x.use(func(db *badger.DB) error {
		batch := db.NewWriteBatch()
		defer batch.Cancel()
		for i := range ops {
			op := &ops[i]
			var err error
			if op.value != nil {
				x.written.Add(int64(len(op.value)))
				x.touched.Add(int64(len(op.value)))
				err = batch.Set(op.key, op.value)
			} else {
				err = batch.Delete(op.key)
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
	x.handBack()
	return nil
}

// read calls do with the value of a key, which must not be kept. Any failure is ErrLost.
func (x *index) read(key []byte, do func([]byte) error) error {
	err := x.use(func(db *badger.DB) error {
		return db.View(func(txn *badger.Txn) error {
			item, err := txn.Get(key)
			if err != nil {
				return err
			}
			return item.Value(do)
		})
	})
	if err != nil {
		return fmt.Errorf("%w: read index: %w", ErrLost, err)
	}
	x.touched.Add(readTouches / 8) // neighbours are often read together
	x.handBack()
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
