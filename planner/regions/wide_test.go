package regions

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// wide is a plan of as many tasks as a query can have: stages in a row, each of which reads two before it.
func wide(tasks, stages int) *Plan {
	p := &Plan{}
	for s := range stages {
		p.Stages = append(p.Stages, Stage{Tasks: tasks, Stable: s%2 == 0})
		for to := s + 1; to <= min(s+2, stages-1); to++ {
			p.Edges = append(p.Edges, Edge{From: s, To: to, Stored: true})
		}
	}
	p.Edges = append(p.Edges, Edge{From: stages - 1, To: Result})
	return p
}

// halfWay is how far a wide plan's tasks have come that lost one node of a hundred: in the middle stages they run.
func halfWay(p *Plan) func(Task) State {
	middle := len(p.Stages) / 2
	return func(t Task) State {
		switch {
		case t.Index%100 == 0:
			return Lost
		case t.Stage < middle:
			return Ended
		case t.Stage == middle:
			return Running
		}
		return Gone
	}
}

// With 1,024 partitions what is decided asks about each task a few times, and not once for each other task.
func TestWidePlan(t *testing.T) {
	for _, tasks := range []int{64, 1024} {
		p := wide(tasks, 6)
		state, asked := halfWay(p), 0
		ask := func(t Task) State { asked++; return state(t) }
		kept := func(o Output) bool { return ask(p.writer(o)) == Ended }
		d := Decide(p, kept)
		require.Greater(t, len(d.Run), tasks)
		require.Less(t, asked, 4*p.Tasks())
		asked = 0
		GoOn(p, kept, ask)
		require.Less(t, asked, 20*p.Tasks())
		t.Logf("%d tasks, %d questions", p.Tasks(), asked)
	}
}

func BenchmarkWidePlan(b *testing.B) {
	p := wide(1024, 6)
	state := halfWay(p)
	kept := func(o Output) bool { return state(p.writer(o)) == Ended }
	for b.Loop() {
		GoOn(p, kept, state)
	}
}
