package regions

// Plan is a query's stages and edges. Immutable.
type Plan struct {
	Stages []Stage
	Edges  []Edge
}

// Stage is the tasks that run one fragment.
type Stage struct {
	Tasks  int
	Stable bool // the same inputs give the same rows to the same readers
}

// Result stands for the one who takes the result, where a stage is named.
const Result = -1

// Edge is an exchange. Every task of To reads all of its outputs, if only to learn that they have ended.
type Edge struct {
	From, To int
	Stored   bool
	Only     int // when not 0, the number from 1 of the only task of From that writes it
}

// Writes reports whether a task of From writes the edge.
func (e *Edge) Writes(task int) bool { return e.Only == 0 || e.Only == task+1 }

// Task names a task.
type Task struct{ Stage, Index int }

// Output names what a task of an edge's From writes to it.
type Output struct{ Edge, Task int }

// Decision is what is to be done.
type Decision struct {
	// Run are the tasks that run again.
	Run map[Task]bool
	// Serve are the outputs that are kept and that a task reads which runs again.
	Serve []Output
}

// Tasks counts all tasks of the plan.
func (p *Plan) Tasks() (n int) {
	for _, s := range p.Stages {
		n += s.Tasks
	}
	return n
}

// Decide says what runs again, given which outputs of stored edges are kept.
func Decide(p *Plan, kept func(Output) bool) *Decision {
	d := &decider{
		plan: p, kept: kept, run: map[Task]bool{}, changed: map[Task]bool{},
		anew: make([]bool, len(p.Edges)), all: make([]bool, len(p.Stages)), others: make([]bool, len(p.Stages)),
	}
	for i := range p.Edges {
		if p.Edges[i].To == Result {
			d.readAnew(i)
		}
	}
	for len(d.todo) > 0 {
		t := d.todo[len(d.todo)-1]
		d.todo = d.todo[:len(d.todo)-1]
		d.follow(t)
	}
	return &Decision{Run: d.run, Serve: d.serve()}
}

// decider follows each task that runs, and again once its rows may be others, to the tasks that must run for it.
type decider struct {
	plan    *Plan
	kept    func(Output) bool
	run     map[Task]bool
	changed map[Task]bool // of run: those whose rows may be others than before
	todo    []Task

	// What was done already, since a stage's tasks have the same inputs and the same readers:
	anew        []bool // by edge: it is read from its beginning
	all, others []bool // by stage: all of its tasks run; and their rows may be others
}

// again adds a task to those that run.
func (d *decider) again(t Task) {
	if !d.run[t] {
		d.run[t] = true
		d.changed[t] = !d.plan.Stages[t.Stage].Stable
		d.todo = append(d.todo, t)
	}
}

// change notes that a task's rows may be others than before. It runs.
func (d *decider) change(t Task) {
	d.again(t)
	if !d.changed[t] {
		d.changed[t] = true
		d.todo = append(d.todo, t)
	}
}

// follow draws the conclusions of a task that runs.
func (d *decider) follow(t Task) {
	for i := range d.plan.Edges {
		e := &d.plan.Edges[i]
		if e.To == t.Stage {
			d.readAnew(i)
		}
		if e.From != t.Stage || !e.Writes(t.Index) || e.To == Result {
			continue
		}
		switch {
		case d.changed[t]:
			d.each(e.To, d.others, d.change)
		case !e.Stored:
			d.each(e.To, d.all, d.again)
		}
	}
}

// each does something for all tasks of a stage, once.
func (d *decider) each(stage int, done []bool, do func(Task)) {
	if done[stage] {
		return
	}
	done[stage] = true
	for i := range d.plan.Stages[stage].Tasks {
		do(Task{stage, i})
	}
}

// readAnew has an edge be read from its beginning.
func (d *decider) readAnew(edge int) {
	if d.anew[edge] {
		return
	}
	d.anew[edge] = true
	e := &d.plan.Edges[edge]
	for w := range d.plan.Stages[e.From].Tasks {
		if e.Writes(w) && !d.isKept(edge, w) {
			d.again(Task{e.From, w})
		}
	}
}

func (d *decider) isKept(edge, task int) bool {
	return d.plan.Edges[edge].Stored && d.kept(Output{edge, task})
}

// serve lists the outputs that tasks read which run, of tasks that do not.
func (d *decider) serve() (out []Output) {
	for i := range d.plan.Edges {
		e := &d.plan.Edges[i]
		if e.To != Result && !d.anyRuns(e.To) {
			continue
		}
		for w := range d.plan.Stages[e.From].Tasks {
			if e.Writes(w) && !d.run[Task{e.From, w}] {
				out = append(out, Output{i, w})
			}
		}
	}
	return out
}

func (d *decider) anyRuns(stage int) bool {
	for i := range d.plan.Stages[stage].Tasks {
		if d.run[Task{stage, i}] {
			return true
		}
	}
	return false
}
