// Package actors is Manta's runtime: it joins processes into a cluster, runs
// tasks on their nodes, and lets named actors answer each other.
//
// # Vocabulary
//
// A node is one incarnation of a process (or one of several in an embedded
// cluster) with a gRPC server, an object store, slots, and the services that
// other packages attach to it. The head is the node that keeps the cluster's
// state: members, jobs, placement. A job owns tasks and whatever they put into
// stores. A slot is the right to work on one CPU: a task holds one but for the
// time that it waits inside TaskContext.Yield.
//
// # How messages travel
//
//	Ask ─► control actor ═══ Envelope ═══► control actor ─► named actor
//	        (numbers it,      (≤ 64 KiB,    (right incarnation? seen
//	         sends it again)   may be lost)  before? which actor?)
//
// Control messages between processes go by protoactor remoting on a port of its
// own, between nodes of one process through a Hub. Either may lose, repeat and
// reorder them. A request is sent again until it is answered or its deadline is
// over, and package once makes it run at most once. Bulk never goes this way: it
// has the gRPC server (Node.Conn), and the object store.
//
// Membership has gRPC calls of its own (Join, Heartbeat, Leave), so that a
// backlog of control messages cannot kill a node.
//
// # Invariants
//
//   - A node id is never used twice; messages to another incarnation are dropped.
//   - A handler runs at most once for each Ask.
//   - A task ends exactly once for its owner, also when its node is lost.
//   - A slot is held by at most one task, and none is free while a task queues.
//   - After a job's Finish no node runs a task of the job, and each has dropped what
//     it held for it (Service.JobEnded, the store's objects).
//
// # Concurrency
//
// Decisions are made by pure state machines in packages of their own: membership,
// scheduler, once. The types here feed them under a mutex, and act on what they
// say after they have released it. Locks are taken in this order, if more than
// one: applying, head.mu or jobs.mu, runner.mu, slots.mu, control.mu, peers.mu. No
// service and no handler is called under a lock.
//
// A task is an actor with a goroutine for its function, since that may stay in C
// for long. A named actor handles one message at a time.
//
// # Failure
//
// A node that is silent for Config.Lease is dead, for good: tasks on it fail with
// ErrNodeDead, jobs that use it see their context end, services hear of it, and
// requests to it fail at once. The node itself, when it cannot reach the head for
// that long or learns that it was declared dead, cancels its tasks and stops
// (Node.Done, Node.Err). It does not join again by itself: a process that starts a
// new node has nothing old to clear up. If the head is lost, so is the cluster.
//
// A panic in a task or a handler is an error of that task or request.
package actors
