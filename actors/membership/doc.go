// Package membership decides which nodes belong to a cluster.
//
// The head holds one Table. A node joins under an id that it chose at random for
// this one life of its process (an incarnation), and keeps its lease by
// heartbeats. Silence makes it unreachable, longer silence dead. Unreachable is a
// suspicion that the next heartbeat takes back; dead is final: that incarnation
// never comes back, and a restarted process joins under another id.
//
//	          join              silence ≥ Suspect            silence ≥ Lease
//	(unknown) ───────► alive ─────────────────► unreachable ─────────────────► dead
//	                     ▲  └──── leave, replaced ───┼──────────────────────────►│
//	                     └──────── heartbeat ────────┘
//
// A Table is a pure state machine: time comes in as an argument, events go out as
// results; it has no clock, goroutine, or IO, and is not safe for concurrent use.
//
// Invariants:
//   - A dead member stays dead; its heartbeats are refused.
//   - At most one member that is not dead has a given address.
//   - Version rises with every event, and only then.
//   - A member that the head keeps (Pinned, the head itself) only dies by Leave.
package membership
