package regions

// State is how far a task of an attempt has come that cannot succeed any more.
type State uint8

const (
	Gone    State = iota // it failed, or was cancelled
	Lost                 // its node is dead: who lacks rows of it fails for that
	Running              // it runs, or is yet to
	Ended                // it came to its end
)

// GoOn says which of the tasks that run are to go on to their end, though their attempt cannot succeed, so that they need not
// run again: as many as can. A task can go on if it reads none that is gone, for it may wait for rows of it, and none that does
// not go on itself. One that is lost may have sent all of its rows before, and never have said so: that it lacks some the
// reader finds out by itself. A task that goes on must not be one that runs again all the same; and somebody must want its
// rows, one that runs again or one that goes on.
// kept says which outputs of tasks that have ended are.
func GoOn(p *Plan, kept func(Output) bool, state func(Task) State) map[Task]bool {
	can := map[Task]bool{}
	for s, stage := range p.Stages {
		for i := range stage.Tasks {
			if t := (Task{s, i}); state(t) == Running {
				can[t] = true
			}
		}
	}
	for {
		p.withoutInput(can, state)
		d := Decide(p, func(o Output) bool { return kept(o) || can[p.writer(o)] })
		again := false
		for t := range can {
			if d.Run[t] {
				delete(can, t)
				again = true
			}
		}
		if !again {
			return p.wanted(can, d)
		}
	}
}

// writer is the task that writes an output.
func (p *Plan) writer(o Output) Task { return Task{p.Edges[o.Edge].From, o.Task} }

// withoutInput takes those out of a set of tasks that read one that is gone, or runs and is not in the set.
func (p *Plan) withoutInput(can map[Task]bool, state func(Task) State) {
	for again := true; again; {
		again = false
		for t := range can {
			for i := range p.Edges {
				e := &p.Edges[i]
				for w := range p.Stages[e.From].Tasks {
					writer := Task{e.From, w}
					if e.To == t.Stage && e.Writes(w) && state(writer) != Ended && state(writer) != Lost && !can[writer] {
						delete(can, t)
						again = true
					}
				}
			}
		}
	}
}

// wanted are those in a set of tasks of which an output is served, and those that these read.
func (p *Plan) wanted(can map[Task]bool, d *Decision) map[Task]bool {
	out := map[Task]bool{}
	var todo []Task
	add := func(t Task) {
		if can[t] && !out[t] {
			out[t] = true
			todo = append(todo, t)
		}
	}
	for _, o := range d.Serve {
		add(p.writer(o))
	}
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := range p.Edges {
			e := &p.Edges[i]
			for w := range p.Stages[e.From].Tasks {
				if e.To == t.Stage && e.Writes(w) {
					add(Task{e.From, w})
				}
			}
		}
	}
	return out
}
