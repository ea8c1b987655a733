package shuffle

import (
	"sync"
	"sync/atomic"
	"time"

	"manta/actors"
)

// activity is what the watchdog looks at: a job's batches that moved, and who waits, on this node.
type activity struct {
	moved   atomic.Int64 // batches that readers took
	writers atomic.Int64 // that wait for credit or room
	waits   atomic.Int64 // tasks that wait, for that or for input

	mu    sync.Mutex
	tasks map[actors.TaskID]int // guarded by mu; by task, its open readers and writers
}

// enter counts one more reader or writer of a task.
func (a *activity) enter(task actors.TaskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks == nil {
		a.tasks = map[actors.TaskID]int{}
	}
	a.tasks[task]++
}

// leave counts one less.
func (a *activity) leave(task actors.TaskID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks[task]--; a.tasks[task] == 0 {
		delete(a.tasks, task)
	}
}

// stalled says that no task of the job can go on here by itself, and a writer would.
func (a *activity) stalled() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.writers.Load() > 0 && a.waits.Load() >= int64(len(a.tasks))
}

// relieve has the waiting writer that holds least write it to disk, and all it is full with from then on: to let the smallest
// full queue grow is what resolves a standstill that is due to bounds alone. A writer that has no more to write than what
// waits gains nothing by it, so those in Close are passed over.
func (j *job) relieve() {
	j.mu.Lock()
	defer j.mu.Unlock()
	var least *Writer
	for w := range j.writers {
		if w.edge.Mode != Streaming || !w.full.Load() || w.relieved.Load() {
			continue
		}
		if least == nil || w.holds.Load() < least.holds.Load() {
			least = w
		}
	}
	if least != nil && !without(standstill) {
		least.relieved.Store(true)
		poke(least.wake)
	}
}

// watch counts the times that a job stood still: for Config.StallAfter nothing moved while a writer waited and no task of
// it was at work here. Plans are made and writers park so that it does not happen; the counter tells when that was not
// enough, or when another node is that slow. A job that still stands is relieved, of one writer after the other.
func (s *Service) watch() {
	type seen struct {
		moved   int64
		since   time.Time
		counted bool
	}
	jobs := map[*job]seen{}
	tick := time.NewTicker(s.cfg.StallAfter / 4)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		next := map[*job]seen{}
		s.mu.Lock()
		for _, j := range s.jobs {
			next[j] = jobs[j]
		}
		s.mu.Unlock()
		for j, was := range next {
			moved := j.activity.moved.Load()
			switch {
			case moved != was.moved || was.since.IsZero() || !j.activity.stalled():
				was = seen{moved: moved, since: now}
			case now.Sub(was.since) >= s.cfg.StallAfter:
				was.since = now
				if !was.counted {
					was.counted = true
					s.stalls.Add(1)
				}
				j.relieve()
			}
			next[j] = was
		}
		jobs = next
	}
}
