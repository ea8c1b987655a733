package objectstore

import (
	"errors"

	"github.com/zeebo/xxh3"
)

// copyBytes is how much of a value is in memory at once while it moves from file to file. It is not counted in
// the memory limit: each spiller has one.
const copyBytes = 1 << 20

// compact moves the live values of a file to the one that is being filled, so that the space of the dead ones
// returns, and says whether it got on. mu held; let go meanwhile.
func (w *spiller) compact(from *spillFile) bool {
	s := w.s
	moved := false
	from.users++
	for e := range from.live {
		if s.closed || s.mustSpill() {
			break
		}
		if e.busy || e.dropped {
			continue
		}
		if err := w.move(e); err != nil {
			from.stuck = errors.Is(err, ErrLost)
			break
		}
		moved = true
	}
	if !moved {
		from.stuck = true // pinned or unreadable; it goes when it is empty
	}
	s.disk.leave(from)
	return moved
}

// move writes a value that is on disk to another file. Readers go on with the old one. mu held; let go meanwhile.
func (w *spiller) move(e *entry) error {
	s := w.s
	need := recordSize(e.size)
	if err := s.disk.take(need); err != nil {
		s.diskFailed(err)
		return err
	}
	e.unlist()
	e.busy = true
	old, sf := e.loc, w.file()
	off := sf.size
	s.mu.Unlock()

	err := sf.make(s.disk.files)
	if err == nil {
		err = w.copyRecord(sf, e, old)
	}
	if err != nil && sf.f != nil {
		_ = sf.f.Truncate(off)
	}

	s.mu.Lock()
	sf.busy, e.busy = false, false
	if err == nil {
		sf.size += need
		sf.records++
		s.count.compacted += e.size
		s.disk.adopt(e, &location{file: sf, off: off, sum: old.sum})
		s.noteLocation(e)
		old.file.after = s.changed
		s.disk.release(e, old)
	} else {
		s.disk.bytes -= need
		if !errors.Is(err, ErrLost) {
			s.diskFailed(err)
		}
	}
	s.written(e, sf)
	return err
}

// copyRecord copies a record and checks it on the way.
func (w *spiller) copyRecord(to *spillFile, e *entry, from *location) error {
	if w.copyBuf == nil {
		w.copyBuf = make([]byte, copyBytes)
	}
	if err := writeFull(to.f, header(e.id, e.size, from.sum), to.size); err != nil {
		return err
	}
	sum := xxh3.New()
	for at := int64(0); at < e.size; {
		b := w.copyBuf[:min(copyBytes, e.size-at)]
		if n, err := from.file.f.ReadAt(b, from.off+headerSize+at); n < len(b) {
			return errors.Join(ErrLost, err)
		}
		_, _ = sum.Write(b)
		if err := writeFull(to.f, b, to.size+headerSize+at); err != nil {
			return err
		}
		at += int64(len(b))
	}
	if sum.Sum64() != from.sum {
		return from.corrupt()
	}
	return nil
}
