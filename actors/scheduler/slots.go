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

// Slots shares a node's slots among its tasks, first come, first served. A task
// that comes back from waiting queues like any other.
type Slots struct {
	total int
	tasks map[string]*slotTask
	queue list.List // of *slotTask, all Queued
	// running is the number of tasks in state Running; at most total.
	running int
}

type slotTask struct {
	id    string
	state TaskState
	place *list.Element // in the queue, when Queued
}

// NewSlots gives a node's slots, all free.
func NewSlots(total int) *Slots {
	return &Slots{total: total, tasks: make(map[string]*slotTask)}
}

// Enter queues a task that is new or waiting. It gives the tasks that got a slot
// by it: this one, or none. For a task that queues or runs already it does nothing.
func (s *Slots) Enter(id string) (granted []string) {
	t, ok := s.tasks[id]
	if !ok {
		t = &slotTask{id: id}
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
	case Queued:
		s.queue.Remove(t.place)
		t.place = nil
	}
	t.state = Gone
}

func (s *Slots) grant() (granted []string) {
	for s.running < s.total && s.queue.Len() > 0 {
		t := s.queue.Remove(s.queue.Front()).(*slotTask)
		t.place, t.state = nil, Running
		s.running++
		granted = append(granted, t.id)
	}
	return granted
}
