package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dgraph-io/badger/v4"

	"manta/objectstore/refcount"
)

// Recovery says what Open found of an earlier store.
type Recovery struct {
	Objects, Bytes int64
	Lost           map[ID]string // what the index has but cannot be read, and why
	FilesRemoved   int           // without an object in them
	TornBytes      int64         // cut off the ends of spill files: written, but not known to the index
}

// Recovery returns what Open found. The caller must not change it.
func (s *Store) Recovery() Recovery { return s.recovery }

// recover takes over what an earlier store left. The index is the truth: what it does not name is removed. Only
// called by start, while the store is nobody else's.
func (s *Store) recover() error {
	s.recovery.Lost = map[ID]string{}
	if err := os.MkdirAll(spillDir(s.cfg.Dir), 0o700); err != nil {
		return fmt.Errorf("objectstore: %w", err)
	}
	var remove []indexOp
	if _, err := os.Stat(indexDir(s.cfg.Dir)); err == nil {
		if err := s.index.use(func(db *badger.DB) error { return s.recoverIndex(db, &remove) }); err != nil {
			return fmt.Errorf("%w: remove %s to start empty: %w", ErrCorrupt, s.cfg.Dir, err)
		}
	}
	if err := s.recoverFiles(); err != nil {
		return fmt.Errorf("objectstore: recover: %w", err)
	}
	if len(remove) > 0 {
		if err := s.index.write(remove); err != nil {
			return fmt.Errorf("objectstore: recover: %w", err)
		}
	}
	return nil
}

// recoverIndex goes over all entries and collects the keys of those that are of no use.
func (s *Store) recoverIndex(db *badger.DB, remove *[]indexOp) error {
	dead := map[string][]byte{} // by segment key without its kind
	files := map[string]*spillFile{}
	return db.View(func(txn *badger.Txn) error {
		each := func(kind byte, do func(key, value []byte) error) error {
			o := badger.DefaultIteratorOptions
			o.Prefix = []byte{kind}
			it := txn.NewIterator(o)
			defer it.Close()
			for it.Rewind(); it.Valid(); it.Next() {
				key := it.Item().KeyCopy(nil)
				if err := it.Item().Value(func(b []byte) error { return do(key, b) }); err != nil {
					return err
				}
			}
			return nil
		}
		err := each('t', func(key, value []byte) error {
			dead[string(key[1:])] = append([]byte(nil), value...)
			return nil
		})
		if err != nil {
			return err
		}
		err = each('s', func(key, value []byte) error {
			name := string(key[1:])
			if !s.recoverSegment(key, value, dead[name]) {
				*remove = append(*remove, indexOp{key: key})
				return nil
			}
			delete(dead, name)
			return nil
		})
		if err != nil {
			return err
		}
		for name := range dead { // of segments that are gone
			*remove = append(*remove, indexOp{key: append([]byte{'t'}, name...)})
		}
		return each('o', func(key, value []byte) error {
			if reason := s.recoverLocation(key, value, files); reason != "" {
				*remove = append(*remove, indexOp{key: key})
				if len(key) == 17 {
					s.recovery.Lost[ID(key[1:])] = reason
				}
			}
			return nil
		})
	})
}

// recoverSegment takes over the values of a segment, and says whether there are any.
func (s *Store) recoverSegment(key, value, dead []byte) bool {
	items, image, err := parseDirectory(value)
	if err != nil || len(key) != 10 || int(key[1]) >= len(s.shards) {
		return false
	}
	gone := map[uint32]bool{}
	for ; len(dead) >= 4; dead = dead[4:] {
		gone[binary.LittleEndian.Uint32(dead)] = true
	}
	sh := s.shards[key[1]]
	seq := binary.BigEndian.Uint64(key[2:])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	seg := &segment{end: image, size: int64(len(value))}
	sh.number(seg)
	sh.seq = max(sh.seq-1, seq) // it has the number of its key, not the next one
	seg.seq = seq
	seconds := 0
	for _, it := range items {
		if gone[it.off] {
			seg.dead = append(seg.dead, it.off)
			continue
		}
		if s.shardOf(it.id) != sh || !it.id.small() {
			s.recovery.Lost[it.id] = "it is in the wrong part of the index"
			continue
		}
		v := spot{segment: seg.num, off: it.off, size: it.size, sum: it.sum}
		if _, err := sh.refs.Add(it.id, it.owner, v); err != nil {
			seg.dead = append(seg.dead, it.off) // a second copy, made by a compaction that was cut short
			seconds++
			continue
		}
		sh.counted(seg, int(it.size))
		s.recovery.Objects++
		s.recovery.Bytes += int64(it.size)
	}
	seg.deadSaid = len(seg.dead) - seconds
	if seconds > 0 {
		sh.graves = append(sh.graves, seg)
	}
	if seg.live == 0 {
		sh.segments[seg.num] = nil
		sh.freeNums = append(sh.freeNums, seg.num)
		return false
	}
	sh.count.puts, sh.count.bytesPut = 0, 0
	sh.enterStore(seg, len(items))
	s.indexed.Add(1)
	return true
}

// recoverLocation takes over a large value, or says why it cannot.
func (s *Store) recoverLocation(key, value []byte, files map[string]*spillFile) (reason string) {
	l, err := parseSpilled(value)
	if err != nil || len(key) != 17 || l.file != filepath.Base(l.file) || !strings.HasSuffix(l.file, spillSuffix) {
		return errLocation.Error()
	}
	id := ID(key[1:])
	sf, ok := files[l.file]
	if !ok {
		if sf, err = s.openSpillFile(l.file); err != nil {
			return err.Error()
		}
		files[l.file] = sf
	}
	if err := checkHeader(sf.f, l.off, id, l.size, l.sum); err != nil {
		return fmt.Sprintf("%s at %d: %v", l.file, l.off, err)
	}
	e := &entry{id: id, owner: l.owner, size: l.size, born: time.Now()}
	if e.slot, err = s.refs.Add(id, l.owner, e); err != nil {
		return err.Error()
	}
	s.disk.adopt(e, &location{file: sf, off: l.off, sum: l.sum})
	sf.size = max(sf.size, l.off+recordSize(l.size))
	sf.records++
	s.count.large.add(e)
	s.indexed.Add(1)
	s.recovery.Objects++
	s.recovery.Bytes += l.size
	return ""
}

func (s *Store) openSpillFile(name string) (*spillFile, error) {
	f, err := s.cfg.files.Open(filepath.Join(s.disk.dir, name))
	if err != nil {
		return nil, err
	}
	sf := s.disk.addFile(name)
	sf.f, sf.made = f, true
	return sf, nil
}

// recoverFiles cuts what stands behind the last record of each file, and removes files without one.
func (s *Store) recoverFiles() error {
	entries, err := os.ReadDir(s.disk.dir)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for sf := range s.disk.all {
		if len(sf.live) == 0 {
			_ = sf.f.Close()
			delete(s.disk.all, sf)
			continue
		}
		kept[sf.name()] = true
		size, err := sf.f.Size()
		if err == nil && size > sf.size {
			s.recovery.TornBytes += size - sf.size
			err = sf.f.Truncate(sf.size)
		}
		if err != nil {
			return err
		}
		s.disk.bytes += sf.size
		s.disk.dead += sf.size - sf.bytes
	}
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscanf(e.Name(), "%d.spill", &n); err == nil {
			s.disk.seq = max(s.disk.seq, n)
		}
		if kept[e.Name()] {
			continue
		}
		s.recovery.FilesRemoved++
		if err := os.RemoveAll(filepath.Join(s.disk.dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// save writes to disk what is only in memory. Only called by Close, when nobody else is at work.
func (s *Store) save() error {
	var errs []error
	s.mu.Lock()
	s.refs.All(1, -1, func(slot refcount.Slot) {
		e := *s.refs.Value(slot)
		if e.loc != nil && !s.refs.Live(slot) {
			s.changes = append(s.changes, indexOp{key: locationKey(e.id)}) // only a reader kept it
			s.changed++
		}
		if e.loc == nil && e.buf != nil && e.list == nil && !e.secondary && s.refs.Live(slot) {
			s.dirtyLarge.pushBack(e) // it is pinned; its bytes can be read all the same
		}
	})
	w := &spiller{s: s}
	s.disk.retryAt = time.Time{}
	for s.dirtyLarge.count > 0 && time.Until(s.disk.retryAt) <= 0 {
		w.spillOne()
	}
	if s.dirtyLarge.count > 0 {
		errs = append(errs, s.disk.trouble)
	}
	s.mu.Unlock()
	if err := s.disk.space(); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for more, err := true, error(nil); more; {
		if more, err = s.flushChanges(); err != nil {
			errs, more = append(errs, err), false
		}
	}
	for _, sh := range s.shards {
		sh.giveUpDoomed()
		for more, err := true, error(nil); more; {
			if more, err = sh.flush(true); err != nil {
				errs, more = append(errs, err), false
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeGarbage()
	return errors.Join(errs...)
}

// giveUpDoomed has the index forget values on disk that only a reader keeps. mu not held.
func (sh *shard) giveUpDoomed() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.refs.All(1, -1, func(slot refcount.Slot) {
		v := sh.refs.Value(slot)
		if seg := sh.segments[v.segment]; !sh.refs.Live(slot) && seg.stored {
			seg.dead = append(seg.dead, v.off-uint32(seg.base))
			sh.graves = append(sh.graves, seg)
		}
	})
}
