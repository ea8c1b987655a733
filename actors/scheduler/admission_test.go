package scheduler

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAdmission(t *testing.T) {
	a := NewAdmission(2)
	require.Equal(t, []string{"a"}, a.Submit("a"))
	require.Empty(t, a.Submit("a"))
	require.Equal(t, []string{"b"}, a.Submit("b"))
	require.Empty(t, a.Submit("c"))
	require.Empty(t, a.Submit("d"))
	require.Empty(t, a.Remove("c"), "it gave up")
	require.Equal(t, []string{"d"}, a.Remove("a"))
	require.Empty(t, a.Remove("a"))
	require.Equal(t, 2, a.Running())
}

func TestAdmissionReplace(t *testing.T) {
	a := NewAdmission(1)
	a.Submit("a")
	require.Empty(t, a.Submit("b"))
	require.False(t, a.Replace("b", "c"), "it does not run")
	require.False(t, a.Replace("a", "b"), "it waits for a place of its own")
	require.True(t, a.Replace("a", "c"))
	require.Empty(t, a.Remove("a"))
	require.Equal(t, 1, a.Running())
	require.Equal(t, []string{"b"}, a.Remove("c"))
}

// Jobs start in the order in which they came, but for those that gave up, and
// never more than the limit.
func TestAdmissionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		a := NewAdmission(limit)
		var queue, running []string
		next := 0
		for range rapid.IntRange(0, 80).Draw(t, "steps") {
			var got []string
			switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
			case op == 0:
				id := fmt.Sprint(next)
				next++
				queue = append(queue, id)
				got = a.Submit(id)
			case op == 1 && len(running) > 0:
				i := rapid.IntRange(0, len(running)-1).Draw(t, "who")
				id := running[i]
				running = slices.Delete(running, i, i+1)
				got = a.Remove(id)
			case op == 2 && len(queue) > 0:
				i := rapid.IntRange(0, len(queue)-1).Draw(t, "who")
				id := queue[i]
				queue = slices.Delete(queue, i, i+1)
				got = a.Remove(id)
			}
			for _, id := range got {
				require.Equal(t, queue[0], id, "first come, first served")
				queue = queue[1:]
				running = append(running, id)
			}
			require.LessOrEqual(t, len(running), limit)
			require.False(t, len(queue) > 0 && len(running) < limit, "a job waits for nothing")
			require.Equal(t, len(running), a.Running())
			require.Equal(t, len(queue), a.Queued())
		}
	})
}
