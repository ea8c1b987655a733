// Package once makes requests over a lossy channel happen at most once.
//
// One sender numbers its requests to one receiver 1, 2, 3, … and may send each
// of them any number of times. The channel may lose, repeat, delay and reorder.
// The receiver runs each number at most once, and answers a repeat with the
// reply that it kept.
//
// What a receiver must remember is bounded without a clock: each request also
// carries the sender's settled mark, below which nobody waits for a reply any
// more. At a new mark the receiver forgets everything below it, and it drops
// whatever arrives from below. A clock may help with memory only: Expire drops
// the replies of requests whose sender has given up, but keeps their numbers.
//
// Both ends are pure state machines: no clock, goroutine, or IO. They are not
// safe for concurrent use.
package once
