package actors

import (
	"fmt"
	"sync"
	"time"

	"manta/actors/internal/wire"
)

const (
	// jobsActor receives the head's orders about jobs.
	jobsActor = "@jobs"
	// endWait is how long the end of a job waits for tasks that were cancelled.
	endWait = 10 * time.Second
	// keepEnded is how many ended jobs are remembered, to refuse late orders.
	keepEnded = 4096
)

// runner ends jobs on this node, and has the slots that bound how many of its tasks work at a time.
type runner struct {
	n     *Node
	slots *slots
	live  group // jobs that are being ended

	mu    sync.Mutex
	ended map[JobID]*endedJob // guarded by mu
	order []JobID             // guarded by mu; of ended
}

// endedJob is a job that gets no more tasks here.
type endedJob struct {
	cause   error // for new tasks
	dropped bool  // what the job held was released; tasks that end now release again
}

func newRunner(n *Node) *runner {
	return &runner{n: n, slots: newSlots(n.cfg.CPUs), ended: make(map[JobID]*endedJob)}
}

func (r *runner) counts() (running, waiting int) { return r.slots.counts() }

// receive answers the orders of the head, in the jobs actor.
func (r *runner) receive(_ *Actor, d *delivery) {
	m, ok := d.msg.(*wire.EndJob)
	if !ok {
		d.reply(nil, fmt.Errorf("actors: %T is no order about jobs", d.msg))
		return
	}
	ok = r.live.goRun(func() {
		r.endJob(JobID(m.Job))
		d.reply(&wire.Ack{}, nil)
	})
	if !ok {
		d.reply(nil, ErrClosed)
	}
}

// missed ends jobs of which the head says that they have ended: the order did not arrive.
func (r *runner) missed(jobs []string) {
	for _, job := range jobs {
		r.live.goRun(func() { r.endJob(JobID(job)) })
	}
}

// refuse lets no task of the job begin here any more.
func (r *runner) refuse(job JobID, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.ended[job]; ok {
		return
	}
	r.ended[job] = &endedJob{cause: cause}
	r.order = append(r.order, job)
	if len(r.order) > keepEnded {
		delete(r.ended, r.order[0])
		r.order = r.order[1:]
	}
}

// refused says why a job gets no more tasks here; nil if it does.
func (r *runner) refused(job JobID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.ended[job]; ok {
		return e.cause
	}
	return nil
}

// endJob ends what is left of a job on this node and drops all that it held.
func (r *runner) endJob(job JobID) {
	r.refuse(job, fmt.Errorf("%w: %s", ErrJobEnded, job))
	r.n.engine.endJob(job, endWait)
	r.mu.Lock()
	if e, ok := r.ended[job]; ok {
		e.dropped = true
	}
	r.mu.Unlock()
	r.drop(job)
}

// drop releases what a job holds on this node.
func (r *runner) drop(job JobID) {
	r.n.engine.dropValues(job)
	for _, s := range r.n.cfg.Services {
		s.JobEnded(job)
	}
	r.n.store.ReleaseOwner(string(job))
}

// dropLate releases what a task made that went on after its job had ended.
func (r *runner) dropLate(job JobID) {
	r.mu.Lock()
	e := r.ended[job]
	late := e != nil && e.dropped
	r.mu.Unlock()
	if late {
		r.drop(job)
	}
}
