package regions

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// chain is a plan of stages in a row, each of two tasks but the last.
func chain(stored ...bool) *Plan {
	p := &Plan{}
	for i, s := range stored {
		p.Stages = append(p.Stages, Stage{Tasks: 2, Stable: true})
		p.Edges = append(p.Edges, Edge{From: i, To: i + 1, Stored: s})
	}
	p.Stages = append(p.Stages, Stage{Tasks: 1, Stable: true})
	p.Edges = append(p.Edges, Edge{From: len(stored), To: Result})
	return p
}

func all(Output) bool  { return true }
func none(Output) bool { return false }

func but(lost ...Output) func(Output) bool {
	return func(o Output) bool {
		for _, l := range lost {
			if l == o {
				return false
			}
		}
		return true
	}
}

func ran(tasks ...Task) map[Task]bool {
	m := map[Task]bool{}
	for _, t := range tasks {
		m[t] = true
	}
	return m
}

func TestWhatRunsAgain(t *testing.T) {
	for _, c := range []struct {
		name string
		plan *Plan
		kept func(Output) bool
		run  map[Task]bool
	}{
		{"all is kept", chain(true, true), all, ran(Task{2, 0})},
		{"nothing is kept", chain(true), none, ran(Task{0, 0}, Task{0, 1}, Task{1, 0})},
		{"one output is lost", chain(true, true), but(Output{1, 1}), ran(Task{1, 1}, Task{2, 0})},
		{"and what it was made from", chain(true, true), but(Output{1, 1}, Output{0, 0}), ran(Task{0, 0}, Task{1, 1}, Task{2, 0})},
		{"what is lost and not read stays lost", chain(true, true), but(Output{0, 0}), ran(Task{2, 0})},
		{"a region runs as one", chain(false, true), but(Output{1, 1}), ran(Task{0, 0}, Task{0, 1}, Task{1, 0}, Task{1, 1}, Task{2, 0})},
		{"a region stays as one", chain(false, true), all, ran(Task{2, 0})},
		{"the last region", chain(true, false), all, ran(Task{1, 0}, Task{1, 1}, Task{2, 0})},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.run, Decide(c.plan, c.kept).Run)
		})
	}
}

// The classic trap: stage 0 makes other rows when it runs again. It is read by stages 1 and 2, of which one had come to
// its end with the old rows. Its output is whole, and must not be used.
func TestOtherRowsThanBefore(t *testing.T) {
	p := &Plan{
		Stages: []Stage{{1, false}, {2, true}, {2, true}, {1, true}},
		Edges: []Edge{
			{From: 0, To: 1, Stored: true}, {From: 0, To: 2, Stored: true},
			{From: 1, To: 3, Stored: true}, {From: 2, To: 3, Stored: true}, {From: 3, To: Result},
		},
	}
	lost := but(Output{1, 0}, Output{3, 0}, Output{3, 1})
	require.Equal(t, ran(Task{0, 0}, Task{1, 0}, Task{1, 1}, Task{2, 0}, Task{2, 1}, Task{3, 0}), Decide(p, lost).Run)
	p.Stages[0].Stable = true
	d := Decide(p, lost)
	require.Equal(t, ran(Task{0, 0}, Task{2, 0}, Task{2, 1}, Task{3, 0}), d.Run)
	require.Equal(t, []Output{{2, 0}, {2, 1}}, d.Serve)
}

// A task that runs anyhow, and then turns out to make other rows, too, takes its readers with it.
func TestOtherRowsFromFarther(t *testing.T) {
	p := &Plan{
		Stages: []Stage{{1, false}, {1, true}, {1, true}, {1, true}, {1, true}},
		Edges: []Edge{
			{From: 0, To: 1, Stored: true}, {From: 1, To: 2}, {From: 1, To: 3, Stored: true},
			{From: 2, To: 4, Stored: true}, {From: 3, To: 4, Stored: true}, {From: 4, To: Result},
		},
	}
	d := Decide(p, but(Output{3, 0}))
	require.Equal(t, ran(Task{1, 0}, Task{2, 0}, Task{4, 0}), d.Run)
	d = Decide(p, but(Output{3, 0}, Output{0, 0}))
	require.Equal(t, ran(Task{0, 0}, Task{1, 0}, Task{2, 0}, Task{3, 0}, Task{4, 0}), d.Run)
}

// Only the task that writes an edge of its own runs for it.
func TestOnlyWriter(t *testing.T) {
	p := &Plan{
		Stages: []Stage{{3, true}, {1, true}},
		Edges:  []Edge{{From: 0, To: 1, Stored: true, Only: 1}, {From: 0, To: 1, Stored: true, Only: 2}, {From: 0, To: 1, Stored: true, Only: 3}, {From: 1, To: Result}},
	}
	d := Decide(p, func(o Output) bool { return o == Output{0, 0} || o == Output{2, 2} })
	require.Equal(t, ran(Task{0, 1}, Task{1, 0}), d.Run)
	require.Equal(t, []Output{{0, 0}, {2, 2}}, d.Serve)
	apart := &Plan{
		Stages: []Stage{{2, false}, {1, true}, {1, true}, {1, true}},
		Edges: []Edge{
			{From: 0, To: 1, Stored: true, Only: 1}, {From: 0, To: 2, Stored: true, Only: 2},
			{From: 1, To: 3, Stored: true}, {From: 2, To: 3, Stored: true}, {From: 3, To: Result},
		},
	}
	d = Decide(apart, func(o Output) bool { return o == Output{1, 1} || o == Output{3, 0} })
	require.Equal(t, ran(Task{0, 0}, Task{1, 0}, Task{3, 0}), d.Run, "others of its stage read nothing else than before")
}

// Every plan of at most three stages of one or two tasks, every set of outputs that may be kept: what runs is the smallest
// set that the rules allow.
func TestEverySmallPlan(t *testing.T) {
	cases := 0
	for _, p := range smallPlans() {
		outputs := stored(p)
		tasks := tasksOf(p)
		for mask := range 1 << len(outputs) {
			kept := map[Output]bool{}
			for i, o := range outputs {
				kept[o] = mask&(1<<i) != 0
			}
			is := func(o Output) bool { return kept[o] }
			d := Decide(p, is)
			cases++
			if !closed(p, is, d.Run) {
				t.Fatalf("plan %+v, kept %v: %v is not enough", p, kept, d.Run)
			}
			for set := range 1 << len(tasks) {
				run := map[Task]bool{}
				for i, x := range tasks {
					if set&(1<<i) != 0 {
						run[x] = true
					}
				}
				if len(run) > len(d.Run) || !closed(p, is, run) {
					continue
				}
				for x := range d.Run {
					if !run[x] {
						t.Fatalf("plan %+v, kept %v: %v would be enough, not %v", p, kept, run, d.Run)
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// Every small plan, every point at which its first attempt may end and every loss after it: the second gives a result
// that no two versions of a task's rows have met in.
func TestEverySmallLoss(t *testing.T) {
	cases := 0
	for _, p := range smallPlans() {
		tasks, outputs := tasksOf(p), stored(p)
		seen := map[string]bool{}
		for did := range 1 << len(tasks) {
			may := func(x Task) bool { return did&(1<<index(tasks, x)) != 0 }
			first := newWorld(t, p)
			first.attempt(may, all)
			left := fmt.Sprint(sorted(first.made))
			if seen[left] {
				continue
			}
			seen[left] = true
			for mask := range 1 << len(outputs) {
				skip := false
				w := newWorld(t, p)
				for i, o := range outputs {
					there := first.made[o] != nil
					skip = skip || !there && mask&(1<<i) != 0
					if there && mask&(1<<i) != 0 {
						w.made[o] = first.made[o]
					}
				}
				if skip {
					continue
				}
				w.tries = 1
				cases++
				require.NotNil(t, w.attempt(func(Task) bool { return true }, all))
			}
		}
	}
	t.Logf("%d cases", cases)
}

// Plans of any shape that lose something several times.
func TestRandomLosses(t *testing.T) {
	require.NoError(t, flag.Set("rapid.checks", "2000"))
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		w := newWorld(t, p)
		for range rapid.IntRange(0, 3).Draw(t, "losses") {
			share := rapid.IntRange(1, 10).Draw(t, "share")
			draw := func(what string) bool { return rapid.IntRange(0, 10).Draw(t, what) <= share }
			if w.attempt(func(Task) bool { return draw("ran") }, func(Output) bool { return draw("kept") }) != nil {
				return
			}
		}
		require.NotNil(t, w.attempt(func(Task) bool { return true }, all))
	})
}

func randomPlan(t *rapid.T) *Plan {
	p := &Plan{}
	n := rapid.IntRange(1, 7).Draw(t, "stages")
	for s := range n {
		p.Stages = append(p.Stages, Stage{Tasks: rapid.IntRange(1, 3).Draw(t, "tasks"), Stable: rapid.Bool().Draw(t, "stable")})
		to := Result
		if s < n-1 {
			to = rapid.IntRange(s+1, n-1).Draw(t, "to")
		}
		p.Edges = append(p.Edges, Edge{From: s, To: to, Stored: to != Result && rapid.Bool().Draw(t, "stored")})
		if s < n-1 && rapid.IntRange(0, 2).Draw(t, "more") == 0 {
			p.Edges = append(p.Edges, Edge{
				From: s, To: rapid.IntRange(s+1, n-1).Draw(t, "to"), Stored: rapid.Bool().Draw(t, "stored"),
				Only: rapid.IntRange(0, p.Stages[s].Tasks).Draw(t, "only"),
			})
		}
	}
	return p
}

func tasksOf(p *Plan) (out []Task) {
	for s := range p.Stages {
		for i := range p.Stages[s].Tasks {
			out = append(out, Task{s, i})
		}
	}
	return out
}

func index(tasks []Task, x Task) int {
	for i := range tasks {
		if tasks[i] == x {
			return i
		}
	}
	panic("no such task")
}

// stored lists the outputs that can be kept.
func stored(p *Plan) (out []Output) {
	for i, e := range p.Edges {
		for n := range p.Stages[e.From].Tasks {
			if e.Stored && e.Writes(n) {
				out = append(out, Output{i, n})
			}
		}
	}
	return out
}

var long = flag.Bool("long", false, "try the plans with most tasks, too")

// smallPlans are all with up to three stages, of which the last gives the result, and each other feeds a later one. Those
// of six tasks are left out by default.
func smallPlans() (out []*Plan) {
	for stages := 1; stages <= 3; stages++ {
		var pairs [][2]int
		for i := range stages {
			for j := i + 1; j < stages; j++ {
				pairs = append(pairs, [2]int{i, j})
			}
		}
		edges := 1
		for range pairs {
			edges *= 4
		}
		for sizes := range 1 << stages {
			if sizes == 7 && !*long {
				continue
			}
			for stable := range 1 << stages {
			next:
				for shape := range edges {
					p := &Plan{}
					for s := range stages {
						p.Stages = append(p.Stages, Stage{Tasks: 1 + sizes>>s&1, Stable: stable>>s&1 == 1})
					}
					feeds := make([]bool, stages)
					for k, rest := 0, shape; k < len(pairs); k, rest = k+1, rest/4 {
						from, to := pairs[k][0], pairs[k][1]
						switch kind := rest % 4; {
						case kind == 3 && p.Stages[from].Tasks == 1:
							continue next // the same as one edge
						case kind == 3: // an edge of each task
							p.Edges = append(p.Edges, Edge{From: from, To: to, Stored: true, Only: 1}, Edge{From: from, To: to, Stored: true, Only: 2})
						case kind > 0:
							p.Edges = append(p.Edges, Edge{From: from, To: to, Stored: kind == 2})
						default:
							continue
						}
						feeds[from] = true
					}
					for s := range stages - 1 {
						if !feeds[s] {
							continue next
						}
					}
					p.Edges = append(p.Edges, Edge{From: stages - 1, To: Result})
					out = append(out, p)
				}
			}
		}
	}
	return out
}
