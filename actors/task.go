package actors

import (
	"context"
)

// TaskFunc is the body of a task. It runs on its own goroutine and holds a slot
// but for the time inside TaskContext.Yield. It must return soon after the
// context has ended. Its result must not change afterwards.
type TaskFunc func(tc *TaskContext, arg []byte) (result []byte, err error)

// TaskContext is what a task knows of itself. The context ends when the task or
// its job is cancelled, or the node closes; its cause says why.
type TaskContext struct {
	context.Context
	Job     JobID
	Task    TaskID
	Attempt int // 0 for the first
	Node    *Node

	slots *slots // nil: there is no slot to give back
	depth int    // of Yield in Yield
}

// Yield gives the slot back while wait runs and takes one again before it
// returns, also when wait fails or panics. If the context ends while it queues
// for a slot it returns at once, without one: the task is to end.
//
// It gives wait's error, or else the context's cause. Call it on the task's own
// goroutine.
func (tc *TaskContext) Yield(wait func() error) (err error) {
	if tc.slots == nil || tc.depth > 0 {
		return wait()
	}
	tc.depth++
	tc.slots.yield(string(tc.Task))
	defer func() {
		tc.depth--
		if serr := tc.slots.acquire(tc, string(tc.Task)); err == nil {
			err = serr
		}
	}()
	return wait()
}
