package planner

import (
	"context"
	"errors"

	"manta/actors"
	"manta/shuffle"
)

// firstFailure is the error that tells most of why a query failed: what happened
// in a task, rather than what others saw of it. That the job was stopped comes
// before all: who did so wants no more of the query.
func (r *run) firstFailure(err error) error {
	best := err
	worse := func(err error) {
		if err != nil && (best == nil || severity(err) > severity(best)) {
			best = err
		}
	}
	for _, t := range r.tasks {
		worse(t.err)
	}
	if best == nil {
		return nil
	}
	if err := r.job.Stopped(); err != nil {
		return err
	}
	worse(context.Cause(r.job.Context()))
	worse(r.survivors.why())
	return best
}

// Severities of errors: consequences of an end below its causes.
const (
	ended     = iota + 1
	cancelled // because of another one, or by the client
	echo      // what others saw of one
	lostTouch // of two nodes; one of them may be dead
	ofItsOwn  // no other one has led to it
	nodeDead
)

func severity(err error) int {
	switch {
	case errors.Is(err, actors.ErrNodeDead):
		return nodeDead
	case errors.Is(err, actors.ErrJobEnded), errors.Is(err, shuffle.ErrJobEnded), errors.Is(err, shuffle.ErrClosed):
		return ended
	case errors.Is(err, context.Canceled):
		return cancelled
	case errors.Is(err, shuffle.ErrPeer):
		return lostTouch
	case errors.Is(err, shuffle.ErrProducer), errors.Is(err, shuffle.ErrReader):
		return echo
	}
	return ofItsOwn
}
