package objectstore

import (
	"fmt"
	"path/filepath"
	"time"
)

// retryAfter is how long the store leaves a disk alone that has just refused a write.
const retryAfter = 200 * time.Millisecond

// location says where a value is on disk. Immutable.
type location struct {
	file *spillFile
	off  int64 // of the record's header
	sum  uint64
}

// spillFile holds the records of several values and goes when none of them is alive.
type spillFile struct {
	path string
	f    file  // owned by its one writer until the first location in it is known
	size int64 // where the next record goes
	live int
	made bool // exists on disk
	busy bool // is being written
	gone bool // given up: in garbage, or removed
}

// disk keeps the books on spill files: which there are, how large, and with how many live values. It does no
// I/O itself. Guarded by the store's mutex.
type disk struct {
	files    filesystem
	dir      string
	limit    int64 // 0: none
	fileSize int64

	seq     int
	all     map[*spillFile]struct{} // until removed
	current *spillFile              // the spill loop appends here
	garbage []*spillFile            // to be removed
	bytes   int64                   // of all files, with what is being written
	trouble error                   // why the last write failed; nil after one that did not
	retryAt time.Time
}

// newFile returns a file that does not exist yet. No name is ever used twice by a store.
func (d *disk) newFile() *spillFile {
	d.seq++
	sf := &spillFile{path: filepath.Join(d.dir, fmt.Sprintf("%08d.spill", d.seq))}
	if d.all == nil {
		d.all = map[*spillFile]struct{}{}
	}
	d.all[sf] = struct{}{}
	return sf
}

// take counts n further bytes, or says that the limit forbids them.
func (d *disk) take(n int64) error {
	if d.limit > 0 && d.bytes+n > d.limit {
		return fmt.Errorf("spill files have %s of at most %s", bytesText(d.bytes), bytesText(d.limit))
	}
	d.bytes += n
	return nil
}

// release takes a live value off a file.
func (d *disk) release(loc *location) {
	loc.file.live--
	d.settle(loc.file)
}

// settle retires a file that is full and gives up one that nobody needs.
func (d *disk) settle(sf *spillFile) {
	if sf.busy {
		return // the writer settles it
	}
	if sf == d.current && (sf.size >= d.fileSize || sf.live == 0) {
		d.current = nil
	}
	if sf != d.current && sf.live == 0 && !sf.gone {
		sf.gone = true
		d.garbage = append(d.garbage, sf)
	}
}

// forget strikes a removed file, or one that was never made, off the books.
func (d *disk) forget(sf *spillFile) {
	d.bytes -= sf.size
	delete(d.all, sf)
	d.retryAt = time.Time{}
}

// close closes all files; the caller removes the directory.
func (d *disk) close() error {
	var first error
	for sf := range d.all {
		if sf.f == nil {
			continue
		}
		if err := sf.f.Close(); err != nil && first == nil {
			first = err
		}
	}
	d.all, d.current, d.garbage, d.bytes = nil, nil, nil, 0
	return first
}
