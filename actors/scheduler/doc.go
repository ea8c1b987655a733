// Package scheduler decides which jobs run at once, and which of a node's tasks use its CPUs. Where tasks go package core decides.
//
// It holds two pure state machines (no clock, goroutine, IO or random source;
// not safe for concurrent use), each fed with events and answering with actions:
//
//   - Slots, one a node: which of the node's tasks may use a CPU now. A task
//     queues, runs while it holds a slot, and waits after it gave the slot back.
//   - Admission, one a cluster: which jobs may start. First come, first served, so
//     many at once.
//
// Invariants: a slot is held by at most one task; a slot is never free while a
// task queues; queues are in order of arrival.
package scheduler
