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

// withoutInput takes those out of a set of tasks that read one that is gone, or runs and is not in the set. The tasks of a
// stage read the same, so none of them is left then.
func (p *Plan) withoutInput(can map[Task]bool, state func(Task) State) {
	lacks := make([]bool, len(p.Stages))
	for again := true; again; {
		again = false
		for i := range p.Edges {
			e := &p.Edges[i]
			if e.To == Result || lacks[e.To] || !p.lacking(e, can, state) {
				continue
			}
			lacks[e.To], again = true, true
			for t := range p.Stages[e.To].Tasks {
				delete(can, Task{e.To, t})
			}
		}
	}
}

// lacking says that rows of an edge may never come.
func (p *Plan) lacking(e *Edge, can map[Task]bool, state func(Task) State) bool {
	for w := range p.Stages[e.From].Tasks {
		writer := Task{e.From, w}
		if !e.Writes(w) || can[writer] {
			continue
		}
		if s := state(writer); s != Ended && s != Lost {
			return true
		}
	}
	return false
}

// wanted are those in a set of tasks of which an output is served, and those that these read.
func (p *Plan) wanted(can map[Task]bool, d *Decision) map[Task]bool {
	out := map[Task]bool{}
	reads := make([]bool, len(p.Stages)) // those whose inputs are wanted
	var todo []int
	add := func(t Task) {
		if !can[t] {
			return
		}
		out[t] = true
		if !reads[t.Stage] {
			reads[t.Stage] = true
			todo = append(todo, t.Stage)
		}
	}
	for _, o := range d.Serve {
		add(p.writer(o))
	}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := range p.Edges {
			e := &p.Edges[i]
			if e.To != s {
				continue
			}
			for w := range p.Stages[e.From].Tasks {
				if e.Writes(w) {
					add(Task{e.From, w})
				}
			}
		}
	}
	return out
}
