package scheduler

import (
	"container/list"
	"fmt"
)

// TaskState is where a task is on its node.
type TaskState uint8

const (
	Gone    TaskState = iota // not on this node
	Queued                   // wants a slot
	Running                  // holds a slot
	Waiting                  // gave its slot back until what it waits for is there
)

func (s TaskState) String() string {
	switch s {
	case Gone:
		return "gone"
	case Queued:
		return "queued"
	case Running:
		return "running"
	case Waiting:
		return "waiting"
	}
	return fmt.Sprintf("TaskState(%d)", uint8(s))
}

// Slots shares a node's slots among its tasks, first come, first served. A task wants one slot, or some thousandths. A task
// that comes back from waiting queues like any other.
type Slots struct {
	total int64 // in thousandths of a slot
	tasks map[string]*slotTask
	queue list.List // of *slotTask, all Queued
	// used is the sum of the running tasks' shares; at most total.
	used    int64
	running int // tasks in state Running
}

// whole is the share of a task that wants one slot.
const whole = 1000

type slotTask struct {
	id    string
	share int64 // in thousandths of a slot
	state TaskState
	place *list.Element // in the queue, when Queued
}

// NewSlots gives a node's slots, all free.
func NewSlots(total int) *Slots {
	return &Slots{total: int64(total) * whole, tasks: make(map[string]*slotTask)}
}

// Enter queues a task that is new or waiting. It gives the tasks that got a slot
// by it: this one, or none. For a task that queues or runs already it does nothing.
func (s *Slots) Enter(id string) (granted []string) { return s.EnterShare(id, whole) }

// EnterShare is Enter for a task that, when it is new, wants thousandths of a slot.
func (s *Slots) EnterShare(id string, share int64) (granted []string) {
	t, ok := s.tasks[id]
	if !ok {
		t = &slotTask{id: id, share: share}
		s.tasks[id] = t
	}
	if t.state == Queued || t.state == Running {
		return nil
	}
	t.state = Queued
	t.place = s.queue.PushBack(t)
	return s.grant()
}

// Yield takes the slot of a running task, or its place in the queue, until it
// enters again. It gives the tasks that got a slot by it.
func (s *Slots) Yield(id string) (granted []string) {
	t, ok := s.tasks[id]
	if !ok {
		return nil
	}
	s.leave(t)
	t.state = Waiting
	return s.grant()
}

// Remove forgets a task in whatever state. It gives the tasks that got a slot by it.
func (s *Slots) Remove(id string) (granted []string) {
	t, ok := s.tasks[id]
	if !ok {
		return nil
	}
	s.leave(t)
	delete(s.tasks, id)
	return s.grant()
}

// State tells where a task is.
func (s *Slots) State(id string) TaskState {
	if t, ok := s.tasks[id]; ok {
		return t.state
	}
	return Gone
}

// Running counts the tasks that hold a slot.
func (s *Slots) Running() int { return s.running }

// Idle counts the tasks that do not: queued and waiting ones.
func (s *Slots) Idle() int { return len(s.tasks) - s.running }

// Queued counts the tasks that want a slot.
func (s *Slots) Queued() int { return s.queue.Len() }

func (s *Slots) leave(t *slotTask) {
	switch t.state {
	case Running:
		s.running--
		s.used -= t.share
	case Queued:
		s.queue.Remove(t.place)
		t.place = nil
	}
	t.state = Gone
}

func (s *Slots) grant() (granted []string) {
	for s.queue.Len() > 0 {
		t := s.queue.Front().Value.(*slotTask)
		if s.used+t.share > s.total {
			break // those behind it wait too, or it might wait for ever
		}
		s.queue.Remove(t.place)
		t.place, t.state = nil, Running
		s.running++
		s.used += t.share
		granted = append(granted, t.id)
	}
	return granted
}
