package actors

import "context"

// TaskFunc is the body of a task that belongs to its node: it may use what the node's services have. It holds a slot but for
// the time inside TaskContext.Yield, and must return soon after the context has ended. Argument and result are bytes that only
// it understands; neither may change afterwards. Its error travels as text, with the registered errors that it wraps.
type TaskFunc func(tc *TaskContext, arg []byte) (result []byte, err error)

// TaskContext is what a TaskFunc knows of its task. The context ends when the task or its job is cancelled, or the node
// closes; its cause says why.
type TaskContext struct {
	context.Context
	Job     JobID
	Task    TaskID
	Attempt int // 0 for the first
	Node    *Node

	attempt *attempt // nil: there is no slot to give back
}

// Yield gives the slot back while wait runs and takes one again before it
// returns, also when wait fails or panics. If the context ends while it queues
// for a slot it returns at once, without one: the task is to end. A Yield inside another changes nothing.
//
// It gives wait's error, or else the context's cause.
func (tc *TaskContext) Yield(wait func() error) (err error) {
	if tc.attempt == nil {
		return wait()
	}
	return tc.attempt.yield(tc, wait)
}

// Leave gives the slot back for good: what is left of the task is waiting, and little work. From then on Yield only waits. It
// is for tasks that start together (Job.SubmitAll); of others it changes nothing.
func (tc *TaskContext) Leave() {
	if tc.attempt != nil {
		tc.attempt.leave()
	}
}
