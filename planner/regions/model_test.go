package regions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows stand for what a task makes: a text that is the same only for the same rows, and all that went into them.
type rows struct {
	text string
	of   map[Task]string
}

// world is a query whose attempts lose what they like. It is the model that Decide is held against: it knows versions of
// rows, and neither regions nor what may change.
type world struct {
	t     require.TestingT
	plan  *Plan
	tries int
	made  map[Output]*rows // that are kept
}

func newWorld(t require.TestingT, p *Plan) *world {
	return &world{t: t, plan: p, made: map[Output]*rows{}}
}

// attempt runs what is to run, in the order of the plan, as far as may says, and gives what the result got, or nil. After
// it what was made is kept as far as keeps says.
func (w *world) attempt(may func(Task) bool, keeps func(Output) bool) *rows {
	d := Decide(w.plan, func(o Output) bool { return w.made[o] != nil })
	w.check(d)
	w.tries++
	for o := range w.made {
		if d.Run[Task{w.plan.Edges[o.Edge].From, o.Task}] {
			delete(w.made, o)
		}
	}
	now := map[Output]*rows{} // to be read in this attempt
	for _, o := range d.Serve {
		now[o] = w.made[o]
	}
	for s, stage := range w.plan.Stages {
		for i := range stage.Tasks {
			t := Task{s, i}
			if !d.Run[t] || !may(t) {
				continue
			}
			if r := w.runTask(t, now); r != nil {
				for e := range w.plan.Edges {
					if w.plan.Edges[e].From == s && w.plan.Edges[e].Writes(i) {
						now[Output{e, i}] = r
						if w.plan.Edges[e].Stored {
							w.made[Output{e, i}] = r
						}
					}
				}
			}
		}
	}
	result := w.take(Result, now, "result")
	for _, o := range sorted(w.made) {
		if !keeps(o) {
			delete(w.made, o)
		}
	}
	return result
}

// runTask gives the rows of a task, or nil if it lacks input.
func (w *world) runTask(t Task, now map[Output]*rows) *rows {
	about := fmt.Sprint(t)
	if !w.plan.Stages[t.Stage].Stable {
		about += fmt.Sprintf(" in attempt %d", w.tries)
	}
	r := w.take(t.Stage, now, about)
	if r != nil {
		require.NotContains(w.t, r.of, t)
		r.of[t] = r.text
	}
	return r
}

// take reads all edges to a stage. Two versions of one task's rows must not meet.
func (w *world) take(stage int, now map[Output]*rows, about string) *rows {
	r := &rows{of: map[Task]string{}}
	parts := []string{about}
	for i := range w.plan.Edges {
		e := &w.plan.Edges[i]
		if e.To != stage {
			continue
		}
		for n := range w.plan.Stages[e.From].Tasks {
			if !e.Writes(n) {
				continue
			}
			in := now[Output{i, n}]
			if in == nil {
				return nil
			}
			parts = append(parts, in.text)
			for t, version := range in.of {
				if other, ok := r.of[t]; ok {
					require.Equal(w.t, other, version, "two versions of the rows of %v met in %s", t, about)
				}
				r.of[t] = version
			}
		}
	}
	r.text = strings.Join(parts, " <- ")
	return r
}

// check holds a decision against its rules, one by one.
func (w *world) check(d *Decision) {
	whole := func(o Output) bool { return w.made[o] != nil }
	require.True(w.t, closed(w.plan, whole, d.Run), "something that must run does not")
	served := map[Output]bool{}
	for _, o := range d.Serve {
		require.False(w.t, served[o])
		served[o] = true
		require.True(w.t, whole(o), "%v is to be served, and is not there", o)
		require.False(w.t, d.Run[Task{w.plan.Edges[o.Edge].From, o.Task}])
	}
	for i := range w.plan.Edges { // whoever runs gets each input once
		e := &w.plan.Edges[i]
		for n := range w.plan.Stages[e.From].Tasks {
			if e.Writes(n) && runsIn(w.plan, d.Run, e.To) {
				require.True(w.t, d.Run[Task{e.From, n}] != served[Output{i, n}])
			}
		}
	}
}

func runsIn(p *Plan, run map[Task]bool, stage int) bool {
	if stage == Result {
		return true
	}
	for i := range p.Stages[stage].Tasks {
		if run[Task{stage, i}] {
			return true
		}
	}
	return false
}

// closed says whether a set of tasks may run as it is, by the rules of the package read as conditions.
func closed(p *Plan, kept func(Output) bool, run map[Task]bool) bool {
	other := map[Task]bool{} // who may make other rows; stages are in order, so one pass finds them
	for s, stage := range p.Stages {
		for i := range stage.Tasks {
			t := Task{s, i}
			other[t] = run[t] && !stage.Stable
			for k := range p.Edges {
				e := &p.Edges[k]
				for n := range p.Stages[e.From].Tasks {
					other[t] = other[t] || run[t] && e.To == s && e.Writes(n) && other[Task{e.From, n}]
				}
			}
		}
	}
	for k := range p.Edges {
		e := &p.Edges[k]
		for n := range p.Stages[e.From].Tasks {
			if !e.Writes(n) {
				continue
			}
			writer := Task{e.From, n}
			if !run[writer] && runsIn(p, run, e.To) && !(e.Stored && kept(Output{k, n})) {
				return false // it lacks an input
			}
			if e.To == Result || !run[writer] {
				continue
			}
			for r := range p.Stages[e.To].Tasks {
				if !run[Task{e.To, r}] && (!e.Stored || other[writer]) {
					return false // a region in part, or a reader of other rows
				}
			}
		}
	}
	return true
}

func sorted(made map[Output]*rows) (out []Output) {
	for o := range made {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Output) int { return (a.Edge-b.Edge)*1000 + a.Task - b.Task })
	return out
}

// The checks above can fail: a decision that leaves a rule out is noticed.
func TestModelNotices(t *testing.T) {
	two := &Plan{Stages: []Stage{{2, true}, {2, true}, {1, true}}, Edges: []Edge{{From: 0, To: 1, Stored: true}, {From: 1, To: 2, Stored: true}, {From: 2, To: Result}}}
	kept := func(Output) bool { return true }
	none := func(Output) bool { return false }
	last := map[Task]bool{{2, 0}: true}
	require.True(t, closed(two, kept, last))
	require.False(t, closed(two, none, last))
	require.False(t, closed(two, kept, map[Task]bool{}))
	require.True(t, closed(two, kept, map[Task]bool{{2, 0}: true, {1, 0}: true}))
	two.Stages[1].Stable = false
	two.Edges = append(two.Edges, Edge{From: 1, To: 2, Stored: true})
	two.Stages = append(two.Stages, Stage{1, true})
	two.Edges = append(two.Edges, Edge{From: 1, To: 3, Stored: true}, Edge{From: 3, To: 2, Stored: true})
	require.False(t, closed(two, kept, map[Task]bool{{2, 0}: true, {1, 0}: true}), "a reader of other rows stays")
}
