package shuffle

import (
	"sync/atomic"
	"time"
)

// activity is what the watchdog looks at: a job's batches that moved, and who waits, on this node.
type activity struct {
	moved   atomic.Int64 // batches that readers took
	writers atomic.Int64 // that wait for credit or room
	readers atomic.Int64 // that wait for input
	open    atomic.Int64 // readers
}

// stalled says that nobody of the job can go on here by itself, and a writer would.
func (j *job) stalled() bool {
	waiting := j.activity.writers.Load()
	if waiting == 0 || j.activity.readers.Load() < j.activity.open.Load() {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return waiting >= int64(len(j.writers))
}

// watch counts the times that a job stood still: for Config.StallAfter nothing moved while a writer waited and no writer or
// reader here was at work. Plans are made so that it does not happen; the counter tells when one was not, or when another
// node is that slow.
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
			case moved != was.moved || was.since.IsZero() || !j.stalled():
				was = seen{moved: moved, since: now}
			case !was.counted && now.Sub(was.since) >= s.cfg.StallAfter:
				was.counted = true
				s.stalls.Add(1)
			}
			next[j] = was
		}
		jobs = next
	}
}
