package actors

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"manta/actors/core"
	"manta/actors/scheduler"
)

// keepJobs is how many ended jobs the head can still list.
const keepJobs = 1000

// jobs is the head's knowledge of jobs: the shell around scheduler.Admission.
type jobs struct {
	n     *Node
	grace time.Duration // for the owner of a cancelled job to finish it
	// patience is how long a node may take to end a job.
	patience time.Duration

	mu        sync.Mutex
	closed    bool                 // guarded by mu
	admission *scheduler.Admission // guarded by mu
	live      map[JobID]*Job       // guarded by mu; pending and running
	parked    int                  // guarded by mu; running jobs that gave their admission away
	ended     []JobInfo            // guarded by mu; oldest first
}

func newJobs(n *Node) *jobs {
	return &jobs{
		n:         n,
		grace:     orphanGrace,
		patience:  endWait + 5*time.Second,
		admission: scheduler.NewAdmission(n.cfg.MaxJobs),
		live:      make(map[JobID]*Job),
	}
}

// JobSpec describes a job to be.
type JobSpec struct {
	Name string // for people; need not be unique
	User string
	// After, when not nil, is a running job of the same owner whose place this one takes: it is admitted at once, and After
	// counts no more among those that run at once. After is to be finished soon. It may be cancelled already.
	After *Job
	// Grace is how long the owner of a cancelled job has to finish it, before it is finished for him; default 5 s.
	Grace time.Duration
	// NodeLost, when not nil, is called when a node is dead on which a gang of the job has run, in place of the end of the job's
	// context: the job goes on, with what it has on other nodes. The error is a NodeDeadError. It must not block.
	NodeLost func(error)
}

// NewJob starts a job. It waits until the job is admitted: first come, first
// served, Config.MaxJobs at once. The end of ctx, before or after, stops the job.
// Whoever made a job must Finish it. Only the head makes jobs.
func (n *Node) NewJob(ctx context.Context, spec JobSpec) (*Job, error) {
	if n.jobs == nil {
		return nil, ErrNotHead
	}
	return n.jobs.add(ctx, spec)
}

func (js *jobs) add(ctx context.Context, spec JobSpec) (*Job, error) {
	j := &Job{
		jobs: js, id: JobID("job-" + randomHex(6)), spec: spec,
		state: JobPending, admitted: make(chan struct{}), ended: make(chan struct{}),
	}
	j.ctx, j.cancel = context.WithCancelCause(ctx)
	js.mu.Lock()
	if js.closed {
		js.mu.Unlock()
		j.cancel(ErrClosed)
		return nil, ErrClosed
	}
	j.submitted = time.Now() // in the order of admission
	js.live[j.id] = j
	js.n.engine.brain.do(func(c *core.Core) { c.StartJob(core.JobID(j.id)) })
	if !js.inherit(j, spec.After) {
		js.admit(js.admission.Submit(string(j.id)))
	}
	js.mu.Unlock()

	select {
	case <-j.admitted:
	case <-j.ctx.Done():
		err := context.Cause(j.ctx)
		j.finish(err)
		return nil, fmt.Errorf("actors: job %s was not admitted: %w", j.id, err)
	}
	j.mu().Lock()
	j.stopWatch = context.AfterFunc(j.ctx, j.cancelled)
	j.mu().Unlock()
	return j, nil
}

// inherit gives a new job the place of the one before it, if that has one. It runs under mu.
func (js *jobs) inherit(j, before *Job) bool {
	switch {
	case before == nil || before.state != JobRunning:
		return false
	case before.parked: // its place is beyond those that run at once
		before.parked, j.parked = false, true
	case !js.admission.Replace(string(before.id), string(j.id)):
		return false
	}
	js.admit([]string{string(j.id)})
	return true
}

// admit runs under mu.
func (js *jobs) admit(ids []string) {
	for _, id := range ids {
		j := js.live[JobID(id)]
		j.state, j.started = JobRunning, time.Now()
		close(j.admitted)
	}
}

// maxParked bounds the jobs that run beyond Config.MaxJobs because they parked.
const maxParked = 64

// park takes a running job out of the admission.
func (js *jobs) park(j *Job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if j.state != JobRunning || j.parked || js.parked >= maxParked {
		return
	}
	j.parked = true
	js.parked++
	js.admit(js.admission.Remove(string(j.id)))
}

// remove takes an ended job from the live ones and lets the next one in.
func (js *jobs) remove(j *Job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	delete(js.live, j.id)
	if j.parked {
		js.parked--
	}
	js.ended = append(js.ended, j.infoLocked())
	if len(js.ended) > keepJobs {
		js.ended = slices.Delete(js.ended, 0, len(js.ended)-keepJobs)
	}
	js.admit(js.admission.Remove(string(j.id)))
}

// Jobs gives the head's jobs in order of submission: the live ones, and the last
// thousand that ended. Empty on other nodes.
func (n *Node) Jobs() []JobInfo {
	if n.jobs == nil {
		return nil
	}
	js := n.jobs
	js.mu.Lock()
	list := slices.Clone(js.ended)
	for _, j := range js.live {
		list = append(list, j.infoLocked())
	}
	js.mu.Unlock()
	slices.SortFunc(list, func(a, b JobInfo) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// StopJob stops a job: its context ends, its tasks are cancelled, and if its owner
// does not finish it soon it is finished for him. ErrJobUnknown if there is no
// such job, ErrJobEnded if it has ended.
func (n *Node) StopJob(id JobID, reason string) error {
	if n.jobs == nil {
		return ErrNotHead
	}
	n.jobs.mu.Lock()
	j := n.jobs.live[id]
	over := slices.IndexFunc(n.jobs.ended, func(ended JobInfo) bool { return ended.ID == id })
	n.jobs.mu.Unlock()
	switch {
	case j != nil:
	case over >= 0:
		return fmt.Errorf("%w: %s", ErrJobEnded, id)
	default:
		return fmt.Errorf("%w: %s", ErrJobUnknown, id)
	}
	j.stop(cmp.Or(reason, "on request"))
	return nil
}

// nodeDead ends the contexts of jobs: those that its death takes a driver from, or whose gangs use the node, unless they want
// to hear of that.
func (js *jobs) nodeDead(node NodeID, reason string, uses []core.JobID) {
	cause := &NodeDeadError{Node: node, Reason: reason}
	js.mu.Lock()
	var affected []func(error)
	for _, j := range js.live {
		switch used := slices.Contains(uses, core.JobID(j.id)); {
		case used && j.driver != node && j.spec.NodeLost != nil:
			affected = append(affected, j.spec.NodeLost)
		case used || j.driver == node:
			affected = append(affected, j.cancel)
		}
	}
	js.mu.Unlock()
	for _, tell := range affected {
		tell(cause)
	}
}

// ended gives those of the jobs that have ended, or that there never were.
func (js *jobs) over(ids []string) (ended []string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	for _, id := range ids {
		if js.live[JobID(id)] == nil && id != string(core.DetachedJob) {
			ended = append(ended, id)
		}
	}
	return ended
}

// close ends all jobs.
func (js *jobs) close() {
	js.mu.Lock()
	js.closed = true
	live := make([]*Job, 0, len(js.live))
	for _, j := range js.live {
		live = append(live, j)
	}
	js.mu.Unlock()
	var all sync.WaitGroup
	for _, j := range live {
		all.Go(func() {
			j.stop("the head is closing")
			j.Finish(ErrClosed)
		})
	}
	all.Wait()
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
