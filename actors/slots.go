package actors

import (
	"context"
	"sync"

	"manta/actors/scheduler"
)

// slots hands out the node's slots to its tasks: the shell around scheduler.Slots.
type slots struct {
	mu    sync.Mutex
	slots *scheduler.Slots         // guarded by mu
	ready map[string]chan struct{} // guarded by mu; closed when the task has its slot
}

func newSlots(total int) *slots {
	return &slots{slots: scheduler.NewSlots(total), ready: make(map[string]chan struct{})}
}

// enter makes a task known as queued, in order of arrival.
func (s *slots) enter(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(id, 1000)
}

// enterShare makes a task known that wants thousandths of a slot.
func (s *slots) enterShare(id string, share int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enterLocked(id, share)
}

func (s *slots) enterLocked(id string, share int64) chan struct{} {
	ch, ok := s.ready[id]
	if !ok {
		ch = make(chan struct{})
		s.ready[id] = ch
	}
	s.wake(s.slots.EnterShare(id, share))
	return ch
}

// acquire waits for a slot. When the context ends first, the task has none.
func (s *slots) acquire(ctx context.Context, id string) error {
	s.mu.Lock()
	ch := s.enterLocked(id, 1000) // of one that is known the share stays
	s.mu.Unlock()
	select {
	case <-ch:
		return nil
	default:
	}
	select {
	case <-ch:
		return nil
	case <-ctx.Done():
		s.yield(id)
		return context.Cause(ctx)
	}
}

// yield gives the task's slot, or its place in the queue, to others.
func (s *slots) yield(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, id)
	s.wake(s.slots.Yield(id))
}

// remove forgets the task.
func (s *slots) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ready, id)
	s.wake(s.slots.Remove(id))
}

// turn lets others who queue for a slot go first. Then the task has one again, but if the context has ended.
func (s *slots) turn(ctx context.Context, id string) error {
	s.mu.Lock()
	if s.slots.Queued() == 0 {
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	s.yield(id)
	return s.acquire(ctx, id)
}

func (s *slots) wake(granted []string) {
	for _, id := range granted {
		if ch, ok := s.ready[id]; ok {
			close(ch)
		}
	}
}

func (s *slots) counts() (running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots.Running(), s.slots.Idle()
}
