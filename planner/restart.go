package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"manta/actors"
	"manta/shuffle"
)

// maxRestarts is how often a query that loses a node starts again.
const maxRestarts = 3

// loss is why an attempt ended that lost a node, and what of the plan ran in the next one.
type loss struct {
	err      error
	ran, all int // tasks; 0: it ran from the beginning
}

// again says whether the query, an attempt of which has ended with err, starts again: with the next attempt if so, else its
// error.
//
// A restart is another job: the old one is ended everywhere, its traffic is refused, and the ids of its exchanges mean
// nothing in the new one, which has only what was handed over to it; see takeOver. It happens only while the client has
// seen no row.
func (r *run) again(ctx context.Context, err error) (*attempt, error) {
	if ctx.Err() == nil && r.secondLook(err) {
		r.out.drop()
		r.asWritten = err
		return &attempt{}, nil
	}
	if errors.Is(err, actors.ErrJobStopped) { // while others of its tasks went on, perhaps
		return nil, err
	}
	lost := r.lostNodes(ctx, err)
	switch {
	case r.asWritten != nil && !dataError.MatchString(err.Error()) && len(lost) == 0 && ctx.Err() == nil:
		return nil, r.withHistory(r.asWritten) // as it is written the query could not be run
	case ctx.Err() != nil || len(lost) == 0 && !brokenStream(err):
		return nil, r.withHistory(err)
	case r.out.opened.Load():
		return nil, fmt.Errorf("planner: %sthe query cannot start again, for a part of its result was sent already; run it again: %w", nodesLost(lost), err)
	case len(r.lost) == maxRestarts:
		return nil, fmt.Errorf("planner: %sthe query is given up after %d restarts: %w", nodesLost(lost), maxRestarts, err)
	}
	r.out.drop()
	r.lost = append(r.lost, loss{err: err})
	next := r.takeOver(ctx)
	if r.job != nil {
		if err := r.job.Stopped(); err != nil { // while it was found out what is left
			next.giveUp(err)
			return nil, err
		}
	}
	last := &r.lost[len(r.lost)-1]
	if next.takenOver != nil {
		last.ran, last.all = len(next.decision.Run), r.graph().plan.Tasks()
	}
	r.service.config.log.Warn("query starts again", "job", r.jobID(), "restart", len(r.lost), "tasks", last.ran, "of", last.all, "error", err)
	return next, nil
}

// giveUp ends an attempt that has not begun.
func (a *attempt) giveUp(err error) {
	if a.job != nil {
		a.job.Finish(err)
		a.cancel(nil)
	}
}

// jobID is the attempt's job, if it has one.
func (r *run) jobID() actors.JobID {
	if r.job == nil {
		return ""
	}
	return r.job.ID()
}

// restartAfter is what an error of an attempt has before the reason for the restart.
const restartAfter = " (in a restart, after: "

// withHistory is an error of an attempt with the reason for the restart before it, if there was one.
func (r *run) withHistory(err error) error {
	if len(r.lost) == 0 || errors.Is(err, context.Canceled) || errors.Is(err, actors.ErrJobStopped) {
		return err
	}
	return fmt.Errorf("%w%s%v)", err, restartAfter, r.lost[len(r.lost)-1].err)
}

// restartsText tells EXPLAIN ANALYZE of the attempts before the last one.
func (r *run) restartsText() string {
	var b strings.Builder
	if r.asWritten != nil {
		fmt.Fprintf(&b, "Run as it is written, after: %s.\n", strings.Split(message(r.asWritten, r.req.Sql), "\n")[0])
	}
	for _, l := range r.lost {
		what := "all of it"
		if l.all > 0 {
			what = fmt.Sprintf("%d of %s", l.ran, counted(l.all, "task"))
		}
		fmt.Fprintf(&b, "Started again, %s: %s.\n", what, message(l.err, r.req.Sql))
	}
	return b.String()
}

// nodesLost begins an error.
func nodesLost(nodes []actors.NodeInfo) string {
	if len(nodes) == 0 {
		return ""
	}
	var names []string
	for _, n := range nodes {
		names = append(names, fmt.Sprintf("%s (%s)", n.ID, n.Reason))
	}
	what := "node "
	if len(nodes) > 1 {
		what = "nodes "
	}
	return what + strings.Join(names, ", ") + " lost; "
}

// brokenStream says that an attempt failed because two nodes lost touch, be it only for a moment.
func brokenStream(err error) bool {
	return errors.Is(err, shuffle.ErrPeer) || errors.Is(err, actors.ErrNodeDead)
}

// Bounds of settle.
const (
	settleFor   = 10 * time.Second
	settleEvery = 20 * time.Millisecond
)

// lostNodes are the nodes of an attempt that have died. When its error may come from a node that is gone, but not known to
// be, it waits until every one has been heard of again or is dead.
func (r *run) lostNodes(ctx context.Context, err error) []actors.NodeInfo {
	since := time.Now()
	unsure := brokenStream(err) || errors.Is(err, actors.ErrTimeout) || errors.Is(err, actors.ErrUnreachable)
	for {
		lost, silent := r.census(since)
		if !unsure || len(lost) > 0 || !silent || time.Since(since) > settleFor {
			return lost
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(settleEvery):
		}
	}
}

// census gives the attempt's nodes that are dead, and whether others have been silent since a time.
func (r *run) census(since time.Time) (lost []actors.NodeInfo, silent bool) {
	now := map[actors.NodeID]actors.NodeInfo{}
	for _, n := range r.service.node.Nodes() {
		now[n.ID] = n
	}
	for _, used := range r.nodes {
		switch n, known := now[used.ID]; {
		case !known:
			lost = append(lost, used)
		case n.State == actors.NodeDead:
			lost = append(lost, n)
		case n.ID != r.service.node.ID() && n.LastSeen.Before(since):
			silent = true
		}
	}
	return lost, silent
}
