// Package core decides for the typed runtime: which task runs where and when, who holds which value, what is run
// again after a loss, in which order an actor gets its calls, how far a stream may run ahead.
//
// It is a pure state machine: messages from nodes go in ([Core.Handle], [Core.NodeUp], [Core.NodeDown], …), messages
// to nodes come out ([Core.Take]). It has no clock, goroutine, lock, file or random source; the same messages in the
// same order give the same ones back. Package actors carries the messages and keeps it on the head under a mutex.
//
// # Vocabulary
//
//   - An object is a value that somebody refers to: a task's result, what Put stored, an actor's handle, a stream.
//   - A hold is a node's interest in an object: the node has handles of it. A node holds an object or does not;
//     how many handles it has is its own business.
//   - A pin keeps an object as well: it is an argument of an open task, or is referred to by a value that is kept.
//   - Lineage is the task that made an object, kept with its arguments' lineage for as long as the object could
//     be lost.
//   - A class is the queued tasks of one job that want the same: what holds for one of them holds for all.
//
// # Invariants
//
//   - An object without hold and pin has no value, here or in a store. It is forgotten with the last lineage that
//     names it.
//   - A task ends once; the end of an attempt that is not the current one changes nothing.
//   - A node's use of a resource is the sum over the tasks and actors that are on it, and is within what it has, but
//     for CPU that a task gave back while it waits and for the few tasks that are sent ahead to be run next.
//   - Calls of one caller begin in the order in which they were made, also when the actor is restarted. A call that is made again
//     for its own sake (its argument or its result was lost, or its error is to be tried again) begins when it can.
//   - A stream's item is delivered again until its reader has consumed it, and never after.
//
// # Holds need no protocol
//
// A node tells of new holds before it gives up what it learned of them from (a held object, an argument of a task that
// runs, an item not yet consumed), on the same ordered link. So the pin behind is still there when the hold comes. holds_test.go tries
// what can happen to three nodes and three objects; who holds and pins one is counted by package refcount.
package core
