package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSlots(t *testing.T) {
	s := NewSlots(1)
	require.Equal(t, []string{"a"}, s.Enter("a"))
	require.Empty(t, s.Enter("a"), "it has a slot")
	require.Empty(t, s.Enter("b"))
	require.Empty(t, s.Enter("c"))
	require.Equal(t, []string{"b"}, s.Yield("a"))
	require.Empty(t, s.Enter("a"), "it is last again")
	require.Equal(t, []string{"c"}, s.Remove("b"))
	require.Empty(t, s.Remove("b"))
	require.Equal(t, []string{"a"}, s.Remove("c"))
	require.Empty(t, s.Remove("a"))
	require.Zero(t, s.Running()+s.Idle())
}

func TestNoSlots(t *testing.T) {
	s := NewSlots(0)
	require.Empty(t, s.Enter("a"))
	require.Equal(t, Queued, s.State("a"))
}

// slotsModel is what Slots must be like, said as simply as possible: a list of who
// wants to run, in order of arrival, of whom the first so many were let in.
type slotsModel struct {
	total   int
	running map[string]bool
	queue   []string
	waiting map[string]bool
}

func newSlotsModel(total int) *slotsModel {
	return &slotsModel{total: total, running: map[string]bool{}, waiting: map[string]bool{}}
}

func (m *slotsModel) drop(id string) {
	delete(m.running, id)
	delete(m.waiting, id)
	m.queue = slices.DeleteFunc(m.queue, func(q string) bool { return q == id })
}

func (m *slotsModel) known(id string) bool {
	return m.running[id] || m.waiting[id] || slices.Contains(m.queue, id)
}

// step does one operation and gives the grants that must follow.
func (m *slotsModel) step(op int, id string) (granted []string) {
	switch op {
	case 0:
		if m.running[id] || slices.Contains(m.queue, id) {
			return nil
		}
		m.drop(id)
		m.queue = append(m.queue, id)
	case 1:
		if !m.known(id) {
			return nil
		}
		m.drop(id)
		m.waiting[id] = true
	case 2:
		m.drop(id)
	}
	for len(m.queue) > 0 && len(m.running) < m.total {
		granted = append(granted, m.queue[0])
		m.running[m.queue[0]] = true
		m.queue = m.queue[1:]
	}
	return granted
}

func applySlots(s *Slots, op int, id string) []string {
	switch op {
	case 0:
		return s.Enter(id)
	case 1:
		return s.Yield(id)
	}
	return s.Remove(id)
}

func checkSlots(t require.TestingT, s *Slots, m *slotsModel) {
	require.Equal(t, len(m.running), s.Running())
	require.Equal(t, len(m.queue), s.Queued())
	require.Equal(t, len(m.queue)+len(m.waiting), s.Idle())
	require.LessOrEqual(t, s.Running(), m.total)
	require.False(t, s.Queued() > 0 && s.Running() < m.total, "a slot is free while a task queues")
}

func TestSlotsProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(0, 4).Draw(t, "slots")
		s, m := NewSlots(total), newSlotsModel(total)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			op := rapid.IntRange(0, 2).Draw(t, "op")
			id := fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "task"))
			require.Equal(t, m.step(op, id), applySlots(s, op, id))
			checkSlots(t, s, m)
		}
	})
}

// TestSlotsExhaustive tries every sequence of 6 operations on 3 tasks and 1 slot,
// and on 2 tasks and 2 slots.
func TestSlotsExhaustive(t *testing.T) {
	for _, scope := range []struct{ total, tasks, depth int }{{1, 3, 6}, {2, 2, 6}, {2, 3, 5}} {
		choices := 3 * scope.tasks
		sequences := 1
		for range scope.depth {
			sequences *= choices
		}
		for n := range sequences {
			s, m := NewSlots(scope.total), newSlotsModel(scope.total)
			for rest, depth := n, 0; depth < scope.depth; rest, depth = rest/choices, depth+1 {
				op, id := rest%choices%3, string(rune('a'+rest%choices/3))
				want, got := m.step(op, id), applySlots(s, op, id)
				if !slices.Equal(want, got) || s.Running() != len(m.running) || s.Idle() != len(m.queue)+len(m.waiting) {
					t.Fatalf("sequence %d of %+v at step %d: granted %v, want %v", n, scope, depth, got, want)
				}
			}
		}
	}
}

// TestSlotsNoneStarves lets tasks yield and come back without end: each of them
// runs again within as many grants as there are tasks.
func TestSlotsNoneStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tasks := rapid.IntRange(1, 8).Draw(t, "tasks")
		s := NewSlots(rapid.IntRange(1, 3).Draw(t, "slots"))
		var running []string
		last := map[string]int{}
		for i := range tasks {
			running = append(running, s.Enter(fmt.Sprint(i))...)
		}
		for step := range 200 {
			i := rapid.IntRange(0, len(running)-1).Draw(t, "who")
			id := running[i]
			running = slices.Delete(running, i, i+1)
			last[id] = step
			running = append(running, s.Yield(id)...)
			running = append(running, s.Enter(id)...)
			for j := range tasks {
				id := fmt.Sprint(j)
				if s.State(id) == Queued {
					require.LessOrEqual(t, step-last[id], tasks, "task %s waits", id)
				}
			}
		}
	})
}
