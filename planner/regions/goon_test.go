package regions

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func states(running, gone []Task, lost ...Task) func(Task) State {
	return func(t Task) State {
		for _, x := range running {
			if x == t {
				return Running
			}
		}
		for _, x := range gone {
			if x == t {
				return Gone
			}
		}
		for _, x := range lost {
			if x == t {
				return Lost
			}
		}
		return Ended
	}
}

func TestWhatGoesOn(t *testing.T) {
	wide := []Task{{1, 0}, {1, 1}, {2, 0}}
	for _, c := range []struct {
		name          string
		plan          *Plan
		kept          func(Output) bool
		running, gone []Task
		want          map[Task]bool
	}{
		{"a scan beside one that is lost", chain(true, true), none, append([]Task{{0, 0}}, wide...), []Task{{0, 1}}, ran(Task{0, 0})},
		{"who reads what is lost does not", chain(true, true), none, wide[1:], []Task{{0, 1}, {1, 0}}, ran()},
		{"who has read it, or may have, does", chain(true, true), but(Output{0, 1}), wide[1:], []Task{{1, 0}}, ran(Task{1, 1})},
		{"with those whom it reads", chain(true, true), none, append([]Task{{0, 0}, {0, 1}}, wide[1:]...), []Task{{1, 0}}, ran(Task{0, 0}, Task{0, 1}, Task{1, 1})},
		{"a region that lost a part does not", chain(false, true), none, append([]Task{{0, 0}, {0, 1}}, wide[1:]...), []Task{{1, 0}}, ran()},
		{"a whole region does", chain(false, true, true), none, []Task{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}}, []Task{{2, 1}}, ran(Task{0, 0}, Task{0, 1}, Task{1, 0}, Task{1, 1}, Task{2, 0})},
		{"the last ones do not", chain(true), all, []Task{{1, 0}}, nil, ran()},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := states(c.running, c.gone)
			kept := func(o Output) bool { return c.kept(o) && state(c.plan.writer(o)) == Ended }
			require.Equal(t, c.want, GoOn(c.plan, kept, state))
		})
	}
}

// A task whose node is dead may have sent all of its rows: its readers go on until they lack some.
func TestReadersOfTheLostGoOn(t *testing.T) {
	p := chain(true, true)
	state := states([]Task{{0, 0}, {1, 0}, {2, 0}}, nil, Task{0, 1}, Task{1, 1})
	require.Equal(t, ran(Task{0, 0}, Task{1, 0}), GoOn(p, none, state))
	state = states([]Task{{0, 0}, {2, 0}}, []Task{{1, 0}}, Task{0, 1}, Task{1, 1}) // the reader lacked some
	require.Equal(t, ran(Task{0, 0}), GoOn(p, none, state))
}

// Who would read other rows than before runs again, and does not go on with the old ones.
func TestOtherRowsDoNotGoOn(t *testing.T) {
	p := &Plan{
		Stages: []Stage{{1, false}, {1, true}, {1, true}, {1, true}},
		Edges: []Edge{
			{From: 0, To: 1, Stored: true}, {From: 0, To: 2, Stored: true},
			{From: 1, To: 3, Stored: true}, {From: 2, To: 3, Stored: true}, {From: 3, To: Result},
		},
	}
	lost := func(o Output) bool { return false }
	state := states([]Task{{1, 0}}, []Task{{2, 0}, {3, 0}})
	require.Empty(t, GoOn(p, lost, state))
	p.Stages[0].Stable = true
	require.Equal(t, ran(Task{1, 0}), GoOn(p, lost, state))
}

// goesOn says by the rules, read as conditions, whether a set of tasks that run can go on.
func goesOn(p *Plan, kept func(Output) bool, state func(Task) State, set map[Task]bool) bool {
	d := Decide(p, func(o Output) bool { return kept(o) || set[p.writer(o)] })
	for t := range set {
		if state(t) != Running || d.Run[t] {
			return false
		}
		for i := range p.Edges {
			e := &p.Edges[i]
			for w := range p.Stages[e.From].Tasks {
				writer := Task{e.From, w}
				if e.To == t.Stage && e.Writes(w) && (state(writer) == Gone || state(writer) == Running && !set[writer]) {
					return false
				}
			}
		}
	}
	return true
}

// checkGoOn holds a decision against its rules, and against every other one.
func checkGoOn(t require.TestingT, p *Plan, kept func(Output) bool, state func(Task) State) (went int) {
	got := GoOn(p, kept, state)
	if !goesOn(p, kept, state, got) {
		require.Fail(t, "not possible", "plan %+v: %v", p, got)
	}
	d := Decide(p, func(o Output) bool { return kept(o) || got[p.writer(o)] })
	wanted := map[Task]bool{}
	for _, o := range d.Serve {
		wanted[p.writer(o)] = true
	}
	for i := range p.Edges {
		e := &p.Edges[i]
		for w := range p.Stages[e.From].Tasks {
			for r := 0; e.To != Result && r < p.Stages[e.To].Tasks; r++ {
				if e.Writes(w) && got[Task{e.To, r}] {
					wanted[Task{e.From, w}] = true
				}
			}
		}
	}
	for x := range got {
		if !wanted[x] {
			require.Fail(t, "for nobody", "plan %+v: %v of %v", p, x, got)
		}
	}
	var running []Task
	for _, x := range tasksOf(p) {
		if state(x) == Running {
			running = append(running, x)
		}
	}
	if len(running) > 6 {
		return len(got)
	}
	for mask := range 1 << len(running) {
		set := map[Task]bool{}
		for i, x := range running {
			if mask&(1<<i) != 0 {
				set[x] = true
			}
		}
		if !goesOn(p, kept, state, set) {
			continue
		}
		for x := range d.Run {
			if !Decide(p, func(o Output) bool { return kept(o) || set[p.writer(o)] }).Run[x] {
				require.Fail(t, "too few", "plan %+v: with %v, %v need not run again, with %v it must", p, set, x, got)
			}
		}
	}
	return len(got)
}

// Every small plan, every state of its tasks, and every loss of what ended tasks had stored: as many go on as can, none in vain.
func TestEverySmallStandstill(t *testing.T) {
	cases, went := 0, 0
	for n, p := range smallPlans() {
		tasks, outputs := tasksOf(p), stored(p)
		if (len(tasks) > 4 && n%61 > 0 || len(tasks) == 4 && n%5 > 0) && !*long {
			continue
		}
		all := 1
		for range tasks {
			all *= 4
		}
		for code := range all {
			in := map[Task]State{}
			for k, rest := 0, code; k < len(tasks); k, rest = k+1, rest/4 {
				in[tasks[k]] = State(rest % 4)
			}
			state := func(x Task) State { return in[x] }
			there := []Output{}
			for _, o := range outputs {
				if state(p.writer(o)) == Ended {
					there = append(there, o)
				}
			}
			masks := []int{0, 1<<len(there) - 1, code % (1 << len(there))}
			if *long {
				masks = nil
				for m := range 1 << len(there) {
					masks = append(masks, m)
				}
			}
			for _, mask := range masks {
				kept := map[Output]bool{}
				for i, o := range there {
					kept[o] = mask&(1<<i) != 0
				}
				cases++
				went += checkGoOn(t, p, func(o Output) bool { return kept[o] }, state)
			}
		}
	}
	require.Positive(t, went)
	t.Logf("%d cases, %d tasks went on", cases, went)
}

// The same for plans of any shape.
func TestRandomStandstills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomPlan(t)
		in, kept := map[Task]State{}, map[Output]bool{}
		for _, x := range tasksOf(p) {
			in[x] = State(rapid.IntRange(0, 3).Draw(t, "state"))
		}
		for _, o := range stored(p) {
			kept[o] = in[p.writer(o)] == Ended && rapid.Bool().Draw(t, "kept")
		}
		checkGoOn(t, p, func(o Output) bool { return kept[o] }, func(x Task) State { return in[x] })
	})
}

// The checks can fail: a set with one task more or less is noticed.
func TestStandstillChecksNotice(t *testing.T) {
	p := chain(true, true)
	state := states([]Task{{0, 0}, {1, 0}, {1, 1}, {2, 0}}, []Task{{0, 1}})
	require.True(t, goesOn(p, none, state, ran(Task{0, 0})))
	require.False(t, goesOn(p, none, state, ran(Task{0, 1})), "it does not run")
	require.False(t, goesOn(p, none, state, ran(Task{0, 0}, Task{1, 0})), "it lacks input")
	require.False(t, goesOn(p, none, state, ran(Task{2, 0})), "it runs again")
}
