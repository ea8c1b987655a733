// Package route decides for one node which way its calls of actors go: by the head, which can do everything, or straight to the
// actor's node, which is quicker.
//
// # Rules
//
//   - A call may go straight if it is plain, which its caller's package says, and the head has told where the actor lives.
//   - Calls of one caller (a task, or the driver of a job) to one actor begin in the order in which they were made, whichever way they
//     went. While the head has one that is not answered, those after it go to the head too. After calls that went straight one goes to
//     the head only when the actor's node has them, which a fence asks: a number that comes back on the same ordered way. What is made
//     meanwhile waits in line.
//   - A call runs at most once. The actor's node takes one only for the incarnation of the actor that it was meant for, or says that the
//     actor is not there: then the call has not run, and goes by the head unless it was cancelled. When the node dies the calls that it
//     had fail.
//   - Every call ends: it is answered, comes back, fails with its node, or is with the head.
//
// [Router] is a pure state machine: no clock, lock, goroutine or IO. It relies on ways between nodes that keep order and lose nothing
// while both nodes live, as package link makes them.
package route
