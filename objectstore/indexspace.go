package objectstore

import (
	"errors"
	"fmt"
	"os"

	"github.com/dgraph-io/badger/v4"
)

// This file keeps small what Badger takes: the pages of its log that are mapped here, and the log itself.

const (
	handBackAfter = 32 << 20
	// readTouches is what the system maps around a place that is read.
	readTouches = 64 << 10
)

// handBack takes the pages of Badger's value log out of this process, which maps it as a whole: what was written
// or read once would count as our memory until the system is short of it. The pages stay in the system's cache.
func (x *index) handBack() {
	if x.touched.Load() < handBackAfter {
		return
	}
	x.mu.Lock() // nobody uses the log now, so that its maps stay what they are
	defer x.mu.Unlock()
	if x.db != nil && x.touched.Swap(0) >= handBackAfter {
		dropMappedPages(x.dir, ".vlog")
	}
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
	x.touched.Store(0)
	x.collected.Store(0)
	return err
}

// collectRatio is the part of a log file that must be dead for the rest to be moved.
const collectRatio = 0.5

// collect has Badger move what is alive out of the files of its log that are mostly dead, if the log is much
// larger than the live bytes that the caller knows of. It takes a while.
func (x *index) collect(live int64) error {
	if x.written.Load()-x.collected.Load() < x.collectAfter || x.size() < 2*live+x.collectAfter {
		return nil
	}
	x.collected.Store(x.written.Load())
	// Badger learns what is dead when it compacts tables, which it is told to do when it closes.
	x.mu.Lock()
	if x.db == nil {
		x.mu.Unlock()
		return nil
	}
	err := x.db.Close()
	x.db = nil
	x.mu.Unlock()
	if err != nil {
		return fmt.Errorf("collect index: %w", err)
	}
	err = x.use(func(db *badger.DB) error {
		for {
			if err := db.RunValueLogGC(collectRatio); err != nil {
				if errors.Is(err, badger.ErrNoRewrite) {
					return nil
				}
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("collect index: %w", err)
	}
	return nil
}

// size returns the bytes of the database's files.
func (x *index) size() (n int64) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.db == nil {
		return 0
	}
	entries, _ := os.ReadDir(x.dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			n += fileBytes(info)
		}
	}
	return n
}
