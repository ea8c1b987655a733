// Package shuffle moves record batches between the tasks of a job, from M producers to N partitions, in one of four
// modes behind one interface.
//
// # Vocabulary
//
// An [Edge] is one exchange: its job, a number, a mode, the node of each producer and of each partition's reader. A
// [Writer] is one producer's end, a [Reader] one partition's. A channel is what one producer sends to one partition.
// Rows go where a UINT32 column, the hash of key columns or the range that keys are in sends them, in turn to all partitions,
// to one, or to all (see [Route]; package keys says which keys are equal and how they are ordered). The example shows a
// program that shuffles between its own tasks.
//
// # Modes, a file each
//
//	streaming     batches, directly, under credits; nothing enters the store        streaming.go
//	object-store  blocks of about BatchBytes in the producer's store; references    objectstore.go
//	              go to the partition's queue actor, the reader fetches
//	concat        a producer's whole output for a partition as one object           concat.go
//	disk          one file for each producer, sorted by partition in runs; the      disk.go
//	              reader fetches ranges once the producer has ended
//
// All but streaming store blocks on the producer's node and hand out references: they share refwriter.go and
// refsource.go and never make a producer wait for a reader.
//
// # Streaming
//
// A queue for each (exchange, partition) lives on the reader's node and owns a credit.Receiver. Readers that are still to come
// count as if they were there when memory is shared (due.go): of a thousand, the first ones would take it all. Within the node
// a batch is handed over as it is. Between nodes it crosses a TCP connection, one for each pair of nodes and direction, as one
// frame (wire.go): the bare buffers of the batch go to the system as they lie, and come from it straight to where the reader
// finds them. Both ends know the schema, so it does not cross, but a fingerprint of its types at the opening; what package flat
// has no layout for (dictionaries, views, unions, run-end encoding) crosses as an Arrow IPC block (format.go). The receiving
// loop waits for nothing but bytes, since only what was granted is sent. Grants and CLOSED come back on the other direction,
// where no data is in their way. A link has a goroutine to send and one to receive at each end, so no task waits for the
// network with its slot; a channel costs no goroutine. A writer waits for a reader that takes nothing only while no other
// reader of it waits for rows: else it parks them on disk (parking.go), so that readers need not read in step. Should a job
// stand still all the same, the watchdog counts it, and has its full writers park too, the smallest first (watchdog.go); on
// planned edges its counter stays 0.
//
// # Kept outputs
//
// A writer of these modes may ask that its output be kept beyond its reading (kept.go): until the job ends, or its node's
// store is short of memory and it was read. Adopt hands what is whole over to another job, and Serve hands it out there
// (adopt.go), to readers that may be elsewhere. Each reader has a hold of its own on an object, the job another one. Such a
// writer goes on when a reader fails or its node dies, to store its output for the readers of the next job, unless rows are
// left out of it, for another reader had enough. What no task of that one reads (Spare) is the first to go when memory is
// short.
//
// # Invariants
//
//   - The memory of queues, granted credit, fetched blocks and writers' buffers stays within Config.MemoryLimit, but for a
//     small reserve of each open channel (credit.MinWindow and one batch in its writer) and rows larger than a window. In
//     concat mode a writer holds its whole output instead, by its nature.
//   - Every block that crosses has a checksum, verified before its rows are seen: of streaming the batch's, with that of all of
//     them in END; of an object each of its parts', made when it is sent; of a file its range's, made when it was written.
//   - A channel ends once: by its producer (complete), closed by its reader, or failed. A reader never sees io.EOF unless
//     every producer of the edge ended and all its batches were returned.
//   - After JobEnded nothing of the job is left: no batch, file, channel or goroutine. Later traffic of it is refused.
//
// # Concurrency
//
// A Service is for any number of goroutines; a Writer or Reader is for one at a time. Locks are taken in the order
// Service, queue, memory; no lock is held while something is sent, while a channel is told something, or while waiting.
//
// # Failure
//
// A producer that fails or a node that dies fails the reader with an error that names it. A reader that leaves early makes
// producers discard its rows; once all have left, Write returns [ErrClosed]. One that says that it failed (Reader.Abort), or
// whose node dies, fails its producers, unless they keep what they store.
package shuffle
