// Package scheduler decides what runs where and when.
//
// It holds three pure state machines (no clock, goroutine, IO or random source;
// not safe for concurrent use), each fed with events and answering with actions:
//
//   - Slots, one a node: which of the node's tasks may use a CPU now. A task
//     queues, runs while it holds a slot, and waits after it gave the slot back.
//   - Admission, one a cluster: which jobs may start. First come, first served, so
//     many at once.
//   - Placement, one a cluster: which node a task goes to, and which tasks are lost
//     with a node.
//
// Invariants: a slot is held by at most one task; a slot is never free while a
// task queues; queues are in order of arrival; a placed task ends exactly once.
package scheduler
