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
// time that it waits inside TaskContext.Yield. A gang is tasks that start together, because they wait for one another.
//
// The typed runtime is what a Go program uses. A task is declared from a function ([NewTask]) and called; an actor from a constructor
// and methods ([NewActor], [Method]). A call gives a [Ref] at once. A generator ([NewGenerator]) or a sender ([Open]) fills a [Stream]. A
// [Client] is a job's driver, or what a running task has ([From]). [Main] makes a program driver or node.
//
//	var Square = actors.NewTask("square", func(ctx context.Context, x int) (int, error) { return x * x, nil })
//
//	a := Square.Call(ctx, client, actors.Val(3))
//	b := Square.Call(ctx, client, a)
//	n, err := b.Get(ctx)
//
// # Who decides
//
//	Ref, Handle, Stream ─► engine ═══ link ═══► brain ─► core     (on the head)
//	      (of a process)   (of a node)                    │
//	                       engine ◄══ link ═══════════════┘
//
// Package core decides everything about typed tasks, actors, references and streams, for all jobs, on the head. A job's objects are owned
// there and not by the process that made them, so that no other process's death loses an owner. An engine is a node's part: it has the
// handles of its process, runs what it is told to run, and keeps values. On the head itself messages are handed over as they are.
//
// A value of up to 100 KiB travels inside messages, and the head keeps it. A larger one, and every Arrow batch, stays on the node that made
// it and is fetched from there by who needs it, once for a node, which keeps a copy in its store for a while; on the value's node a batch
// is read where it lies in the store, which keeps it in memory until it is released. If the node dies the value is made again by what made
// it, and that of what it needs, within their retries; what Put made is lost. A Go value is encoded by CBOR, but within a process one
// without pointers is just copied.
//
// A call of an actor goes by the head, or straight: once a node that has a handle was told where the actor lives, plain calls (small
// values as arguments, no retries) go from the caller's node to the actor's and back, and the head does not hear of them. Package route
// decides which way each goes, so that order is kept. The result is known to the caller's node only, until a reference of it travels or
// it turns out to be large, or to have references itself: then it is put at the head. Actors that have a name or a bound of pending calls
// are called by the head, and so is what the head's own node calls.
//
// A handle keeps its object until it is released or collected. A node holds what it has handles of; package core says why nothing more is
// needed when they travel.
//
// # How messages travel
//
// The typed runtime's messages travel over links of their own: package link makes them ordered, each once, over a gRPC stream for
// each direction (or the Hub). Frames carry as many as are there, so that small tasks are cheap. Everything else is asked:
//
//	Ask ─► control actor ═══ Envelope ═══► control actor ─► named actor
//	        (numbers it,      (≤ 64 KiB,    (right incarnation? seen
//	         sends it again)   may be lost)  before? which actor?)
//
// Control messages between processes go by protoactor remoting on a port of its
// own, between nodes of one process through a Hub. Either may lose, repeat and
// reorder them. A request is sent again until it is answered or its deadline is
// over, and package once makes it run at most once. Bulk never goes this way: it
// has the gRPC server (Node.Conn), byte streams to the same address for services that move rows (Node.Stream), and the object store.
//
// With a token all of these ways are TLS between holders of the token, else plain and within this machine: see package internal/trust.
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
//   - A typed call's function runs once, or as often as its retries allow, and its result is settled once.
//   - A stream's items reach each of its readers in order, each consumed once.
//   - After a job's Finish no node runs a task of the job, and each has dropped what
//     it held for it (Service.JobEnded, the store's objects); one that was out of reach does once its heartbeats come through again.
//
// # Concurrency
//
// Decisions are made by pure state machines in packages of their own: membership,
// scheduler, once, core, link, route. The types here feed them under a mutex, and act on what they
// say after they have released it. Locks are taken in this order, if more than
// one: applying, head.mu or jobs.mu, direct.mu, engine.mu, brain.mu, runner.mu, slots.mu, control.mu, links.mu, linkPeer.mu, peers.mu. No
// service and no handler is called under a lock.
//
// A task has a goroutine for its function, since that may stay in C for long. A named actor handles one message at a time.
//
// # Failure
//
// A node that is silent for Config.Lease is dead, for good: tasks on it fail with
// ErrNodeDead, jobs that use it see their context end, services hear of it, and
// requests to it fail at once. Typed tasks on it are tried again elsewhere, three times by default; actors are made again if they have
// restarts left, and calls that they had are made again if those have retries, in their order, or else fail with ErrActorDead. The node
// itself, when it cannot reach the head for that long or learns that it was declared dead, cancels its tasks and stops
// (Node.Done, Node.Err). It does not join again by itself: a process that starts a
// new node has nothing old to clear up. If the head is lost, so is the cluster.
//
// A panic in a task or a handler is an error of that task or request.
package actors
