// Package credit is the flow-control protocol of a streaming exchange as pure state machines: no clock, no lock, no
// goroutine, no memory of batches. The same code runs behind queues, behind the network and in the exhaustive check.
//
// # Vocabulary
//
// A channel carries the batches of one producer to one partition. Its [Sender] lives with the producer, its other end
// is a row of the partition's [Receiver] on the consumer's node. Sizes are bytes.
//
//	granted   bytes the sender may have sent since the channel began (a running total, so repeated, lost or
//	          reordered grants do no harm)
//	sent      bytes sent, received: bytes that arrived, consumed: bytes the consumer took from the queue
//	window    granted - consumed at the time of a grant: what the channel may hold
//
// # Rules
//
//   - Nothing is sent before the first grant: a channel whose reader does not exist yet costs nothing.
//   - A batch of n bytes may go when sent+n <= granted, or when the channel is known to be empty (sent == consumed).
//     The second rule lets a row larger than any window pass.
//   - Batches of a channel carry consecutive sequence numbers from 0.
//   - A channel ends once: END(batches, bytes) by the producer, CLOSED by the consumer, FAILED(reason) by either.
//     Whatever arrives after CLOSED or FAILED is discarded and holds nothing.
//   - Every open channel of a live reader holds at least [MinWindow] of credit or queued bytes, whatever the
//     [Budget] says: a channel with nothing to send with could never end.
//
// What a full producer must not wait for says [Jammed]. Counter-measures can be switched off one by one, by the tests that
// show what each is for (hazard.go).
//
// # Invariants
//
// [Receiver.Check] and [Budget] assert, by the numbers used throughout the project's notes on exchanges: I1
// (conservation: consumed <= received <= granted, and granted-consumed is what the budget holds), I2 (no send without
// credit), I5 (a reserve for each), I6 (one end, and END's totals equal what arrived), I7 (sequence), I8 (an ended
// channel holds no credit, a closed one no bytes), I9 (oversize when empty), I12 (the sum of all holdings is the budget's).
package credit
