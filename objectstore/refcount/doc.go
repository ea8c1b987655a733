// Package refcount decides when a stored object may be freed.
//
// Everything in it is pure: events go in, what is to be freed comes out. There is no clock, no I/O, no goroutine and no
// lock inside; the caller serializes the events. Table has the records of a store's objects, packed for ten million of
// them. Refs is the same for one object, as a field of somebody else's record: the head of a cluster counts so which
// nodes hold an object.
//
// # Vocabulary
//
//   - An object has one owner, the job on whose behalf it was made. It may be moved to another one.
//   - A holder is a name that keeps the object alive. Holders form a set: the same name holding twice is one
//     hold, so a repeated message does no harm. The owner is the first holder.
//   - A pin says that somebody is reading the bytes now. Pins are counted, because readers have no names.
//   - A slot is an object's place in a table.
//
// # Rules
//
//   - An object is live while it has a holder. Only a live object can be held or pinned.
//   - An object without holders is doomed: it can no longer be reached, and goes when its last pin does.
//   - Every object is reported for freeing exactly once, at the event that made it both unheld and unpinned.
//   - Ending an owner drops every hold on all of its objects, whoever the holders are. The owner's name is
//     remembered for a while, so that an object which arrives after the end is refused and not leaked.
//
// What holds a reference on its way from process to process, or inside a value, is decided by who carries it: a pin for
// as long as the message or the value is there (package actors/core).
//
// # Cost
//
// Ten million objects are the aim. A record has no pointer and can be outside the Go heap; for a key of 16 bytes and
// a value of 16 it takes 52, and 5 to 10 more in the index. Only objects with further holders than the owner have
// names of their own.
package refcount
