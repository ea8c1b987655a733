package scheduler

import "slices"

// Admission lets a limited number of jobs run at once, first come, first served.
type Admission struct {
	limit   int
	running map[string]struct{}
	queue   []string
}

// NewAdmission gives an admission that lets limit jobs run at once.
func NewAdmission(limit int) *Admission {
	return &Admission{limit: limit, running: make(map[string]struct{})}
}

// Submit queues a job. It gives the jobs that may start by it: this one, or none.
func (a *Admission) Submit(job string) (admitted []string) {
	if _, ok := a.running[job]; ok || slices.Contains(a.queue, job) {
		return nil
	}
	a.queue = append(a.queue, job)
	return a.admit()
}

// Remove forgets a job that ended or gave up. It gives the jobs that may start by it.
func (a *Admission) Remove(job string) (admitted []string) {
	if i := slices.Index(a.queue, job); i >= 0 {
		a.queue = slices.Delete(a.queue, i, i+1)
		return nil
	}
	delete(a.running, job)
	return a.admit()
}

// Replace gives the place of a running job to another one, which it may not know yet. False: the first does not run.
func (a *Admission) Replace(job, by string) bool {
	if _, ok := a.running[job]; !ok {
		return false
	}
	if _, ok := a.running[by]; ok || slices.Contains(a.queue, by) {
		return false
	}
	delete(a.running, job)
	a.running[by] = struct{}{}
	return true
}

// Running counts the jobs that were admitted and not removed.
func (a *Admission) Running() int { return len(a.running) }

// Queued counts the jobs that wait.
func (a *Admission) Queued() int { return len(a.queue) }

func (a *Admission) admit() (admitted []string) {
	for len(a.running) < a.limit && len(a.queue) > 0 {
		job := a.queue[0]
		a.queue = a.queue[1:]
		a.running[job] = struct{}{}
		admitted = append(admitted, job)
	}
	return admitted
}
