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

func TestPlacement(t *testing.T) {
	p := NewPlacement()
	_, err := p.Place("j", "t", "")
	require.ErrorIs(t, err, ErrNoNode)
	p.AddNode("head", 0)
	_, err = p.Place("j", "t", "")
	require.ErrorIs(t, err, ErrNoNode)
	_, err = p.Place("j", "t", "head")
	require.ErrorIs(t, err, ErrNoSlots)
	_, err = p.Place("j", "t", "x")
	require.ErrorIs(t, err, ErrNodeGone)

	p.AddNode("big", 4)
	p.AddNode("small", 2)
	require.Equal(t, 6, p.Slots())
	var got []string
	for i := range 6 {
		node, err := p.Place("j", fmt.Sprint(i), "")
		require.NoError(t, err)
		got = append(got, node)
	}
	slices.Sort(got)
	require.Equal(t, []string{"big", "big", "big", "big", "small", "small"}, got, "as many as there are slots")
	_, err = p.Place("j", "0", "")
	require.ErrorIs(t, err, ErrPlaced)

	p.Suspend("small", true)
	node, err := p.Place("j", "6", "")
	require.NoError(t, err)
	require.Equal(t, "big", node)
	node, err = p.Place("j", "7", "small")
	require.NoError(t, err, "bound tasks may go to a silent node")
	require.Equal(t, "small", node)

	require.True(t, p.Done("7"))
	require.False(t, p.Done("7"))
	require.Len(t, p.RemoveNode("small"), 2)
	require.Empty(t, p.RemoveNode("small"))
	require.Len(t, p.Open("j"), 5)
}

// Every placed task ends exactly once: done, or lost with its node.
func TestPlacementProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPlacement()
		type placed struct{ job, node string }
		open, slots := map[string]placed{}, map[string]int{}
		next := 0
		node := rapid.Map(rapid.IntRange(0, 4), func(i int) string { return fmt.Sprintf("n%d", i) })
		load := func(id string) (n int) {
			for _, o := range open {
				if o.node == id {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				id, n := node.Draw(t, "node"), rapid.IntRange(0, 3).Draw(t, "slots")
				p.AddNode(id, n)
				if _, ok := slots[id]; !ok {
					slots[id] = n
				}
			},
			"remove": func(t *rapid.T) {
				id := node.Draw(t, "node")
				lost := p.RemoveNode(id)
				require.Len(t, lost, load(id))
				for _, task := range lost {
					require.Equal(t, id, open[task].node)
					delete(open, task)
				}
				delete(slots, id)
			},
			"place": func(t *rapid.T) {
				task, job := fmt.Sprint(next), fmt.Sprintf("j%d", next%3)
				next++
				bound := ""
				if rapid.Bool().Draw(t, "bound") {
					bound = node.Draw(t, "node")
				}
				got, err := p.Place(job, task, bound)
				if err != nil {
					if bound != "" {
						require.Zero(t, slots[bound])
					} else {
						for _, n := range slots {
							require.Zero(t, n)
						}
					}
					return
				}
				require.Positive(t, slots[got])
				if bound != "" {
					require.Equal(t, bound, got)
				} else {
					for id, n := range slots { // nobody has fewer tasks per slot
						if n > 0 {
							require.LessOrEqual(t, load(got)*n, load(id)*slots[got])
						}
					}
				}
				open[task] = placed{job, got}
			},
			"done": func(t *rapid.T) {
				task := fmt.Sprint(rapid.IntRange(0, next).Draw(t, "task"))
				_, ok := open[task]
				require.Equal(t, ok, p.Done(task))
				delete(open, task)
			},
			"": func(t *rapid.T) {
				for i := range 3 {
					job := fmt.Sprintf("j%d", i)
					n := 0
					for _, o := range open {
						if o.job == job {
							n++
						}
					}
					require.Len(t, p.Open(job), n)
				}
				for id := range slots {
					require.Equal(t, load(id), p.Load(id))
				}
			},
		})
	})
}
