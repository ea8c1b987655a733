package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// A spill file is a row of records, each a header and then the value's bytes:
//
//	0  magic      8 bytes
//	8  id        16
//	24 length     8, of the value
//	32 checksum   8, XXH3 of the value
//	40 reserved  16, zero
//	56 checksum   8, XXH3 of the header before this field
//
// Numbers are little endian. A store at work finds records by the locations that it keeps; the header makes a
// file readable without them.
const headerSize = 64

const recordMagic = "MANTASP1"

func recordSize(n int64) int64 { return headerSize + n }

func header(id ID, size int64, sum uint64) []byte {
	h := make([]byte, headerSize)
	copy(h, recordMagic)
	copy(h[8:], id[:])
	binary.LittleEndian.PutUint64(h[24:], uint64(size))
	binary.LittleEndian.PutUint64(h[32:], sum)
	binary.LittleEndian.PutUint64(h[56:], xxh3.Hash(h[:56]))
	return h
}

// pieceBytes is how much is read or written at a time, and has its checksum taken while it is in the cache.
const pieceBytes = 1 << 20

// writeRecord writes a whole record at off and returns the value's checksum. It adds to moved as it gets on.
func writeRecord(f file, off int64, id ID, value []byte, moved *atomic.Int64) (uint64, error) {
	sum := xxh3.New()
	for at := 0; at < len(value); at += pieceBytes {
		p := value[at:min(at+pieceBytes, len(value))]
		_, _ = sum.Write(p)
		if err := writeFull(f, p, off+headerSize+int64(at)); err != nil {
			return 0, err
		}
		moved.Add(int64(len(p)))
	}
	return sum.Sum64(), writeFull(f, header(id, int64(len(value)), sum.Sum64()), off)
}

// checkHeader says what is wrong with a record's header. It does not read the value.
func checkHeader(f file, off int64, id ID, size int64, sum uint64) error {
	total, err := f.Size()
	if err != nil {
		return err
	}
	if off < 0 || size < 0 || off+recordSize(size) > total {
		return fmt.Errorf("the file ends at %d", total)
	}
	h := make([]byte, headerSize)
	if n, err := f.ReadAt(h, off); n < len(h) {
		return err
	}
	if string(h) != string(header(id, size, sum)) {
		return errors.New("another record, or none")
	}
	return nil
}

// writeFull is WriteAt that takes a short write for the error it is, whatever the file says.
func writeFull(f file, p []byte, off int64) error {
	n, err := f.WriteAt(p, off)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// piecesAhead is how many pieces of a value are read at a time: a disk is faster when it knows what comes next, and
// the checksum is taken meanwhile.
const (
	piecesAhead   = 4
	piecesAdvised = 8 // that the system is told of at a time
)

// readValue fills dst with the value at loc. Anything but exactly what was written is ErrLost. It adds to moved as
// it gets on.
func readValue(loc *location, dst []byte, moved *atomic.Int64) error {
	piece := func(i int) []byte { return dst[i*pieceBytes : min((i+1)*pieceBytes, len(dst))] }
	read := func(i int) error {
		p := piece(i)
		if n, err := loc.file.f.ReadAt(p, loc.off+headerSize+int64(i*pieceBytes)); n < len(p) {
			return fmt.Errorf("%w: read %s at %d: %w", ErrLost, loc.file.path, loc.off, err)
		}
		return nil
	}
	pieces := (len(dst) + pieceBytes - 1) / pieceBytes
	var coming [piecesAhead]chan error
	started := 0
	start := func() {
		if started == pieces {
			return
		}
		i, c := started, make(chan error, 1)
		if i%piecesAdvised == 0 {
			loc.file.f.Ahead(loc.off+headerSize+int64(i*pieceBytes), min(piecesAdvised*pieceBytes, int64(len(dst)-i*pieceBytes)))
		}
		coming[i%piecesAhead] = c
		started++
		if pieces == 1 {
			c <- read(i)
		} else {
			go func() { c <- read(i) }()
		}
	}
	for range piecesAhead {
		start()
	}
	sum, failed := xxh3.New(), error(nil)
	for i := 0; i < started; i++ { // all of them: dst is the caller's again when this returns
		if err := <-coming[i%piecesAhead]; failed == nil {
			failed = err
		}
		if failed != nil {
			continue
		}
		start()
		_, _ = sum.Write(piece(i))
		moved.Add(int64(len(piece(i))))
	}
	if failed != nil {
		return failed
	}
	if sum.Sum64() != loc.sum {
		return loc.corrupt()
	}
	return nil
}

func (l *location) corrupt() error {
	return fmt.Errorf("%w: wrong checksum in %s at %d", ErrLost, l.file.path, l.off)
}
