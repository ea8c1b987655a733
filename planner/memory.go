package planner

import "sync"

// memory shares DuckDB's part of a node's memory out between its two instances:
// the one for stage tasks, and the one for queries that are not distributed.
// Each has most of it while the other has nothing to do, and half when both work.
type memory struct {
	total  int64
	limit  [2]func(bytes int64) error // sets the limit of an instance; it may fail to lower it
	mu     sync.Mutex
	active [2]int   // guarded by mu: tasks
	now    [2]int64 // guarded by mu: limits; their sum never exceeds total
}

// kind is a kind of task.
type kind int

const (
	stageTasks kind = iota
	wholeTasks
)

// most is what an instance has while the other has nothing to do.
func most(total int64) int64 { return total - least(total) }

func least(total int64) int64 { return total / 8 }

// begin counts a task of the kind, and gives its instance its share.
func (m *memory) begin(k kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active[k]++
	m.share()
}

func (m *memory) end(k kind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active[k]--
	m.share()
}

// share sets the limits that are wanted now, the lower one first. While an
// instance cannot be brought below what it holds, the other has what is left.
func (m *memory) share() {
	wants, change := shares(m.total, m.active)
	if !change || wants == m.now {
		return
	}
	for k, want := range wants {
		if want < m.now[k] && m.limit[k](want) == nil {
			m.now[k] = want
		}
	}
	for k := range wants {
		if want := min(wants[k], m.total-m.now[1-k]); want > m.now[k] && m.limit[k](want) == nil {
			m.now[k] = want
		}
	}
}

// shares are the limits that are right for so many tasks; without any, they may stay as they are.
func shares(total int64, active [2]int) (limits [2]int64, change bool) {
	switch stages, whole := active[stageTasks] > 0, active[wholeTasks] > 0; {
	case stages && whole:
		return [2]int64{total - total/2, total / 2}, true
	case stages:
		return [2]int64{most(total), least(total)}, true
	case whole:
		return [2]int64{least(total), most(total)}, true
	}
	return limits, false
}
