package objectstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

var (
	// ErrNotFound says that no object of that id is held by anybody.
	ErrNotFound = errors.New("objectstore: no such object")
	// ErrLost says that an object exists but its bytes cannot be read back as they were written.
	ErrLost = errors.New("objectstore: object lost")
	// ErrFull says that there is no room; the error is a *FullError that says why.
	ErrFull = errors.New("objectstore: full")
	// ErrClosed says that the store is closed or closing.
	ErrClosed = errors.New("objectstore: closed")
	// ErrForeign says that something else than a store has made what is in the directory.
	ErrForeign = errors.New("objectstore: no store has made what is there")
	// ErrLocked says that another store owns the directory.
	ErrLocked = errors.New("objectstore: directory in use")
	// ErrNotHeld says that the holder that releases an object does not hold it.
	ErrNotHeld = errors.New("objectstore: not held by this holder")
	// ErrOwnerEnded says that the owner's objects were released for good and that it can own no more.
	ErrOwnerEnded = errors.New("objectstore: owner has ended")
	// ErrSealed says that a Writer was used after Seal or Abort.
	ErrSealed = errors.New("objectstore: writer is finished")
	// ErrSize says that more or less was written than Create was told.
	ErrSize = errors.New("objectstore: size differs from what was announced")
	// ErrVersion says that the directory was written by a newer program.
	ErrVersion = errors.New("objectstore: newer format")
	// ErrCorrupt says that what an earlier store left in the directory cannot be read.
	ErrCorrupt = errors.New("objectstore: corrupt directory")
	// ErrNoBatch says that an object is something else than a record batch.
	ErrNoBatch = errors.New("objectstore: not a record batch")
	// ErrConfig says that a Config cannot be used.
	ErrConfig = errors.New("objectstore: bad config")
)

// FullError tells what a request for room was up against. It matches ErrFull.
type FullError struct {
	Need     int64 // bytes asked for
	Limit    int64 // the memory limit
	Pinned   int64 // bytes of memory that readers hold in place
	Unsealed int64 // bytes of memory of objects that are being written
	Dirty    int64 // bytes of memory that could go to disk and did not
	Cause    error // why not to disk; nil when nothing was there to go
}

func (e *FullError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: no room for %s in %s of memory (%s pinned, %s unsealed, %s waiting to spill)", ErrFull,
		bytesText(e.Need), bytesText(e.Limit), bytesText(e.Pinned), bytesText(e.Unsealed), bytesText(e.Dirty))
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrFull) true.
func (e *FullError) Is(target error) bool { return target == ErrFull }

func (e *FullError) Unwrap() error { return e.Cause }

func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }
