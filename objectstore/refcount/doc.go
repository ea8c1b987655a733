// Package refcount decides when a stored object may be freed.
//
// It is a pure state machine: events go in, the objects to free come out. There is no clock, no I/O, no
// goroutine and no lock inside; the caller serializes the events.
//
// # Vocabulary
//
//   - An object has one owner, the job on whose behalf it was made, for its whole life.
//   - A holder is a name that keeps the object alive. Holders form a set: the same name holding twice is one
//     hold, so a repeated message does no harm. The owner is the first holder.
//   - A pin says that somebody is reading the bytes now. Pins are counted, because readers have no names.
//
// # Rules
//
//   - An object is live while it has a holder. Only a live object can be held or pinned.
//   - An object without holders is doomed: it can no longer be reached, and goes when its last pin does.
//   - Every object is reported for freeing exactly once, at the event that made it both unheld and unpinned.
//   - Ending an owner drops every hold on all of its objects, whoever the holders are. The owner's name is
//     remembered for a while, so that an object which arrives after the end is refused and not leaked.
package refcount
