package objectstore

import (
	"fmt"
	"path/filepath"
	"time"
)

const (
	// retryAfter is how long the store leaves a disk alone that has just refused a write.
	retryAfter = 200 * time.Millisecond
	// diskFull is the use of the disk, in percent, from which nothing new is written: others need what is left,
	// and many a file system gets slow.
	diskFull = 95
	// spaceEvery is how long an answer about the disk's space is good.
	spaceEvery = 100 * time.Millisecond
	// fileRecords is how many values a spill file has at most.
	fileRecords = 2000
)

// location says where a value is on disk. Immutable.
type location struct {
	file *spillFile
	off  int64 // of the record's header
	sum  uint64
}

// spillFile holds the records of several values and goes when none of them is alive.
type spillFile struct {
	path    string
	f       file  // owned by its one writer until the first location in it is known
	size    int64 // where the next record goes
	records int
	live    map[*entry]struct{}
	bytes   int64  // of live records
	users   int    // calls that read it
	after   uint64 // number of the last change of the index that must be on disk before the file may go
	made    bool   // exists on disk
	busy    bool   // is being written
	filling bool   // more will be written
	stuck   bool   // could not be compacted
	gone    bool   // given up: in garbage, or removed
}

const spillSuffix = ".spill"

func (sf *spillFile) name() string { return filepath.Base(sf.path) }

// disk keeps the books on spill files: which there are, how large, and with what live values. It does no I/O of
// its own but asking how full the disk is. Guarded by the store's mutex.
type disk struct {
	files    filesystem
	dir      string
	limit    int64 // 0: none
	fileSize int64

	seq     int
	all     map[*spillFile]struct{} // until removed
	garbage []*spillFile            // to be removed
	bytes   int64                   // of all files, with what is being written
	dead    int64                   // of them, records that nobody needs
	trouble error                   // why the last write failed; nil after one that did not
	retryAt time.Time

	asked time.Time // when the disk was last asked for its space
	used  int       // its answer, in percent
}

// newFile returns a file that does not exist yet. No name is ever used twice in a directory.
func (d *disk) newFile() *spillFile {
	d.seq++
	return d.addFile(fmt.Sprintf("%08d%s", d.seq, spillSuffix))
}

func (d *disk) addFile(name string) *spillFile {
	sf := &spillFile{path: filepath.Join(d.dir, name), live: map[*entry]struct{}{}}
	d.all[sf] = struct{}{}
	return sf
}

// take counts n further bytes, or says what forbids them.
func (d *disk) take(n int64) error {
	if d.limit > 0 && d.bytes+n > d.limit {
		return fmt.Errorf("spill files have %s of at most %s", bytesText(d.bytes), bytesText(d.limit))
	}
	if err := d.space(); err != nil {
		return err
	}
	d.bytes += n
	return nil
}

// space says whether the disk is too full to write to.
func (d *disk) space() error {
	if now := time.Now(); now.Sub(d.asked) > spaceEvery {
		if free, total, err := d.files.Space(d.dir); err == nil && total > 0 {
			d.asked, d.used = now, int(100-free*100/total)
		}
	}
	if d.used > diskFull {
		return fmt.Errorf("the disk of %s is %d %% full, and nothing is written above %d %%", d.dir, d.used, diskFull)
	}
	return nil
}

// adopt puts a live value into a file.
func (d *disk) adopt(e *entry, loc *location) {
	e.loc = loc
	loc.file.live[e] = struct{}{}
	loc.file.bytes += recordSize(e.size)
}

// release takes a live value off its file.
func (d *disk) release(e *entry, loc *location) {
	delete(loc.file.live, e)
	loc.file.bytes -= recordSize(e.size)
	d.dead += recordSize(e.size)
	d.settle(loc.file)
}

// leave ends the use of a file by a call that read it.
func (d *disk) leave(sf *spillFile) {
	sf.users--
	d.settle(sf)
}

// settle retires a file that is full and gives up one that nobody needs.
func (d *disk) settle(sf *spillFile) {
	if sf.busy {
		return // the writer settles it
	}
	if sf.filling && (sf.size >= d.fileSize || sf.records >= fileRecords || len(sf.live) == 0) {
		sf.filling = false
	}
	if !sf.filling && len(sf.live) == 0 && sf.users == 0 && !sf.gone {
		sf.gone = true
		d.garbage = append(d.garbage, sf)
	}
}

// forget strikes a removed file, or one that was never made, off the books.
func (d *disk) forget(sf *spillFile) {
	d.bytes -= sf.size
	d.dead -= sf.size - sf.bytes
	delete(d.all, sf)
	d.retryAt = time.Time{}
}

// victim returns a file that is worth compacting, or nil: most of it is dead, and dead records are so many
// that they matter.
func (d *disk) victim() *spillFile {
	if d.dead < d.fileSize || d.dead*2 < d.bytes {
		return nil
	}
	var best *spillFile
	for sf := range d.all {
		if sf.busy || sf.filling || sf.gone || sf.stuck || sf.bytes*2 > sf.size || len(sf.live) == 0 {
			continue
		}
		if best == nil || sf.bytes*best.size < best.bytes*sf.size {
			best = sf
		}
	}
	return best
}

// close closes all files.
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
	d.all, d.garbage, d.bytes = nil, nil, 0
	return first
}
