package objectstore

import (
	"time"

	"manta/objectstore/refcount"
)

// entry is one large sealed object. Guarded by the store's mutex, except that the bytes of buf may be read by whoever
// has a pin or set busy.
type entry struct {
	id    ID
	slot  refcount.Slot
	owner string
	label string // who made it, for people
	size  int64

	// buf is the value in memory, nil when it is only on disk. In memory and on disk at once it is clean: it
	// can be dropped from memory at no cost.
	buf []byte
	loc *location // in a spill file, nil when it is not on disk

	secondary bool // a copy of what another store keeps: it may be dropped altogether

	pinned  bool  // somebody reads it
	busy    bool  // is being written to disk: buf must stay
	dropped bool  // nobody holds or reads it; one that is busy is reclaimed when the writing ends
	load    *load // is being read back

	list       *list // where it stands, nil when pinned, busy, or not in memory
	prev, next *entry
	turn       uint64    // when it became clean
	born       time.Time // when it was sealed
}

// load lets everybody who wants the same value wait for the one who reads it.
type load struct {
	done chan struct{}
	err  error // valid once done is closed
}

// charge is what the value costs in the memory budget.
func (e *entry) charge() int64 { return int64(cap(e.buf)) }

// list is a queue of entries, oldest first, that knows how much memory they take.
type list struct {
	first, last *entry
	bytes       int64
	count       int
}

func (l *list) pushBack(e *entry) {
	e.list, e.prev, e.next = l, l.last, nil
	if l.last != nil {
		l.last.next = e
	} else {
		l.first = e
	}
	l.last = e
	l.count++
	l.bytes += e.charge()
}

func (l *list) pushFront(e *entry) {
	e.list, e.prev, e.next = l, nil, l.first
	if l.first != nil {
		l.first.prev = e
	} else {
		l.last = e
	}
	l.first = e
	l.count++
	l.bytes += e.charge()
}

// unlist takes the entry out of the list it stands in, if any. buf must be as it was when it was listed.
func (e *entry) unlist() {
	l := e.list
	if l == nil {
		return
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.first = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.last = e.prev
	}
	l.count--
	l.bytes -= e.charge()
	e.list, e.prev, e.next = nil, nil, nil
}
