package credit

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// The second small-scope model: whole plans. Tasks read edges in their operator's order and write others, through the real
// Sender, Receiver, Budget and Jammed; one batch at a time, delivered at once (the network is the first model's part).

// op is how a task reads its inputs.
type op uint8

const (
	inOrder    op = iota // each to its end, one after the other: a join reads its build side first
	disordered           // the same, but odd tasks in the opposite order: each found another side empty
	alternate            // a batch of each in turn, while both last: a merge
	anyOrder             // whatever is there: a union
)

// stage is a fragment of a plan. A stage without inputs is a scan and emits its script; others pass on what they read.
type stage struct {
	tasks   int
	reads   op
	inputs  []int     // edges
	outputs []int     // edges
	script  [][][]int // of a scan: by task, by output, the partitions of its batches; toEach for all
	stop    int       // if positive, a task has enough after so many batches
}

const toEach = -1

// edgeOf connects two stages. A stored one never makes a producer wait.
type edgeOf struct {
	from, to int
	stored   bool
}

// flow is a plan, and what may happen to it.
type flow struct {
	stages []stage
	edges  []edgeOf
	size   int64 // of a batch
	limit  int64 // of the budget
	kill   bool  // one task may die at any moment
	large  bool  // calm always, to be small enough
	calm   bool  // what can be sent is sent, and what can end ends, before anything else happens: fewer states
}

// net is a state of a flow.
type net struct {
	budget Budget
	tasks  []taskState
	ends   []endState // by edge, then consumer
	killed bool
}

type mood uint8

const (
	working mood = iota
	finishing
	over
	failed
)

type taskState struct {
	mood   mood
	at     int   // scan: batches emitted; else: the current input
	taken  int   // batches read
	closed []int // by input: 1 once read to its end
	emits  [][]laneState
	out    int // finishing: the output that is being closed
}

// laneState is a producer's way to one consumer.
type laneState struct {
	tx      Sender
	pending []uint8 // batches
	parked  []uint8
	ended   bool
}

type endState struct {
	rx    Receiver // of a streamed edge
	queue []arrival
	left  int    // producers that have not ended
	seen  uint64 // batches that were taken
	gone  bool   // the reader has enough, or has failed
	bad   bool   // a producer failed
}

type arrival struct{ from, batch uint8 }

func (f *flow) taskAt(stage, i int) int {
	for _, s := range f.stages[:stage] {
		i += s.tasks
	}
	return i
}

func (f *flow) endAt(edge, consumer int) int {
	for _, e := range f.edges[:edge] {
		consumer += f.stages[e.to].tasks
	}
	return consumer
}

func (f *flow) start() *net {
	n := &net{budget: *NewBudget(f.limit, 1<<20)}
	for s := range f.stages {
		st := &f.stages[s]
		for range st.tasks {
			t := taskState{closed: make([]int, len(st.inputs))}
			for _, e := range st.outputs {
				t.emits = append(t.emits, make([]laneState, f.stages[f.edges[e].to].tasks))
			}
			n.tasks = append(n.tasks, t)
		}
	}
	for e := range f.edges {
		producers := f.stages[f.edges[e].from].tasks
		for c := range f.stages[f.edges[e].to].tasks {
			end := endState{left: producers}
			if !f.edges[e].stored {
				end.rx = *NewReceiver(&n.budget, producers)
			}
			n.ends = append(n.ends, end)
			for p := range producers {
				f.grant(n, e, p, c)
			}
		}
	}
	return n
}

func (f *flow) lane(n *net, e, p, c int) *laneState {
	from := &f.stages[f.edges[e].from]
	for o, edge := range from.outputs {
		if edge == e {
			return &n.tasks[f.taskAt(f.edges[e].from, p)].emits[o][c]
		}
	}
	panic("no such output")
}

func (f *flow) grant(n *net, e, p, c int) {
	if !f.edges[e].stored {
		f.lane(n, e, p, c).tx.Grant(n.ends[f.endAt(e, c)].rx.Grant(p))
	}
}

func (n *net) clone() *net {
	c := &net{budget: n.budget, killed: n.killed, tasks: append([]taskState(nil), n.tasks...), ends: append([]endState(nil), n.ends...)}
	for i := range c.tasks {
		t := &c.tasks[i]
		t.closed = append([]int(nil), t.closed...)
		t.emits = append([][]laneState(nil), t.emits...)
		for o := range t.emits {
			t.emits[o] = append([]laneState(nil), t.emits[o]...) // pending and parked are never changed in place
		}
	}
	for i := range c.ends {
		e := &c.ends[i]
		e.rx.budget = &c.budget
		e.rx.ch = append([]channel(nil), e.rx.ch...)
		e.queue = append([]arrival(nil), e.queue...)
	}
	return c
}

func (n *net) key() string {
	var k []byte
	num := func(vs ...int64) {
		for _, v := range vs {
			k = binary.AppendVarint(k, v)
		}
	}
	flag := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	num(flag(n.killed), n.budget.held)
	for i := range n.tasks {
		t := &n.tasks[i]
		num(int64(t.mood), int64(t.at), int64(t.taken), int64(t.out))
		for _, c := range t.closed {
			num(int64(c))
		}
		for _, lanes := range t.emits {
			for j := range lanes {
				l := &lanes[j]
				num(l.tx.granted, l.tx.consumed, l.tx.sent, int64(l.tx.end), flag(l.ended), int64(len(l.pending)), int64(len(l.parked)))
				k = append(append(k, l.pending...), l.parked...)
			}
		}
	}
	for i := range n.ends {
		e := &n.ends[i]
		num(flag(e.gone), flag(e.bad), int64(e.left), int64(len(e.queue)), int64(e.seen))
		for _, a := range e.queue {
			k = append(k, a.from, a.batch)
		}
		for _, c := range e.rx.ch {
			num(c.granted, c.received, c.consumed, c.told, int64(c.end))
		}
	}
	return string(k)
}

// moves returns every state that can follow.
func (f *flow) moves(n *net) (next []*net) {
	try := func(do func(*net)) {
		c := n.clone()
		do(c)
		if f.calm {
			f.settle(c)
		}
		next = append(next, c)
	}
	for s := range f.stages {
		for i := range f.stages[s].tasks {
			t := &n.tasks[f.taskAt(s, i)]
			if t.mood >= over {
				continue
			}
			if f.kill && !n.killed {
				try(func(c *net) {
					c.killed = true
					f.fail(c, s, i)
				})
			}
			if !f.calm {
				f.sends(n, s, i, func(o, c int) { try(func(n *net) { f.send(n, s, i, o, c) }) })
			}
			if f.calm {
				f.act(n, s, i, try, func(func(*net)) {})
			} else {
				f.act(n, s, i, try, try)
			}
		}
	}
	return next
}

// settle sends all that can be sent, and ends all that can end: steps that keep no other from being taken.
func (f *flow) settle(n *net) {
	for again := true; again; {
		again = false
		for s := range f.stages {
			for i := range f.stages[s].tasks {
				if n.tasks[f.taskAt(s, i)].mood < over {
					f.sends(n, s, i, func(o, c int) {
						f.send(n, s, i, o, c)
						again = true
					})
				}
				if n.tasks[f.taskAt(s, i)].mood < over {
					var do func(*net)
					f.act(n, s, i, func(func(*net)) {}, func(step func(*net)) { do = step })
					if do != nil {
						do(n)
						again = true
					}
				}
			}
		}
	}
}

// sends calls do for each lane of a task that can send a batch.
func (f *flow) sends(n *net, s, i int, do func(output, consumer int)) {
	t := &n.tasks[f.taskAt(s, i)]
	for o := range t.emits {
		for c := range t.emits[o] {
			l := &t.emits[o][c]
			if len(l.pending)+len(l.parked) > 0 && (f.edges[f.stages[s].outputs[o]].stored || l.tx.State() != Open || l.tx.CanSend(f.size)) {
				do(o, c)
			}
		}
	}
}

// send sends a lane's next batch, what is parked first.
func (f *flow) send(n *net, s, i, o, c int) {
	e := f.stages[s].outputs[o]
	l := &n.tasks[f.taskAt(s, i)].emits[o][c]
	from := &l.pending
	if len(l.parked) > 0 {
		from = &l.parked
	}
	batch := (*from)[0]
	*from = (*from)[1:]
	end := &n.ends[f.endAt(e, c)]
	if f.edges[e].stored {
		if !end.gone && !end.bad {
			end.queue = append(end.queue, arrival{uint8(i), batch})
		}
		return
	}
	if l.tx.State() != Open {
		return
	}
	ok, err := end.rx.Arrive(i, l.tx.Send(f.size), f.size)
	if err != nil {
		panic(err)
	}
	if ok {
		end.queue = append(end.queue, arrival{uint8(i), batch})
	}
}

// act gives a task's own next steps: to try, or to end for those that end something.
func (f *flow) act(n *net, s, i int, try, end func(func(*net))) {
	st, t := &f.stages[s], &n.tasks[f.taskAt(s, i)]
	for o := range t.emits {
		if !full(t.emits[o]) || t.mood == finishing {
			continue
		}
		// The writer waits, unless it must not.
		if !f.edges[st.outputs[o]].stored && Jammed(lanesOf(t.emits[o])) {
			try(func(n *net) { park(n.tasks[f.taskAt(s, i)].emits[o]) })
		}
		return
	}
	if t.mood == finishing {
		f.finish(n, s, i, end)
		return
	}
	for _, e := range st.inputs {
		if n.ends[f.endAt(e, i)].bad {
			end(func(n *net) { f.fail(n, s, i) })
			return
		}
	}
	if len(st.inputs) == 0 {
		if unwanted(t) {
			end(func(n *net) { n.tasks[f.taskAt(s, i)].mood = finishing })
			return
		}
		f.emit(n, s, i, try, end)
		return
	}
	if st.stop > 0 && t.taken == st.stop || len(st.outputs) > 0 && unwanted(t) {
		end(func(n *net) { f.leave(n, s, i) })
		return
	}
	open := false
	for _, in := range f.readable(t, s, i) {
		e := st.inputs[in]
		queue := &n.ends[f.endAt(e, i)]
		open = true
		switch {
		case len(queue.queue) > 0:
			try(func(n *net) { f.take(n, s, i, in) })
		case queue.left == 0:
			end(func(n *net) { n.tasks[f.taskAt(s, i)].closed[in] = 1 })
		}
	}
	if !open {
		end(func(n *net) { f.leave(n, s, i) })
	}
}

// readable are the inputs that the operator looks at now.
func (f *flow) readable(t *taskState, s, i int) (inputs []int) {
	st := &f.stages[s]
	for in := range st.inputs {
		if t.closed[in] == 0 {
			inputs = append(inputs, in)
		}
	}
	if len(inputs) < 2 || st.reads == anyOrder {
		return inputs
	}
	switch {
	case st.reads == alternate:
		return inputs[t.taken%len(inputs):][:1]
	case st.reads == disordered && i%2 == 1:
		return inputs[len(inputs)-1:]
	}
	return inputs[:1]
}

// take reads a batch and passes it on.
func (f *flow) take(n *net, s, i, in int) {
	st, t := &f.stages[s], &n.tasks[f.taskAt(s, i)]
	e := st.inputs[in]
	end := &n.ends[f.endAt(e, i)]
	a := end.queue[0]
	end.queue = end.queue[1:]
	if end.seen&(1<<a.batch) != 0 {
		panic(fmt.Sprintf("I11: batch %d came twice over edge %d", a.batch, e))
	}
	end.seen |= 1 << a.batch
	t.taken++
	if !f.edges[e].stored {
		if g, tell := end.rx.Take(int(a.from), f.size); tell {
			f.lane(n, e, int(a.from), i).tx.Grant(g)
		}
	}
	for o := range t.emits {
		t.push(o, int(a.batch)%len(t.emits[o]), a.batch)
	}
}

func (t *taskState) push(o, c int, batch uint8) {
	l := &t.emits[o][c]
	if l.tx.State() != Open {
		return // the reader has enough
	}
	l.pending = append(l.pending[:len(l.pending):len(l.pending)], batch)
}

// emit is a scan's step: one batch for each of its outputs.
func (f *flow) emit(n *net, s, i int, try, end func(func(*net))) {
	script := f.stages[s].script[i]
	at := n.tasks[f.taskAt(s, i)].at
	if at == len(script[0]) {
		end(func(n *net) { n.tasks[f.taskAt(s, i)].mood = finishing })
		return
	}
	try(func(n *net) {
		t := &n.tasks[f.taskAt(s, i)]
		for o := range script {
			batch := uint8(s*16 + i*4 + at)
			if c := script[o][at]; c != toEach {
				t.push(o, c, batch)
				continue
			}
			for c := range t.emits[o] {
				t.push(o, c, batch)
			}
		}
		t.at++
	})
}

// full says that a writer holds more than it may, which is nothing here.
func full(lanes []laneState) bool {
	for i := range lanes {
		if len(lanes[i].pending) > 0 {
			return true
		}
	}
	return false
}

func lanesOf(lanes []laneState) (out []Lane) {
	for i := range lanes {
		l := &lanes[i]
		out = append(out, Lane{Shut: l.tx.State() == Closed, Idle: l.tx.Idle(), Pending: len(l.pending) > 0, Parked: len(l.parked) > 0})
	}
	return out
}

func park(lanes []laneState) {
	for i := range lanes {
		l := &lanes[i]
		l.parked = append(l.parked[:len(l.parked):len(l.parked)], l.pending...)
		l.pending = nil
	}
}

// unwanted says that every reader of a task has enough.
func unwanted(t *taskState) bool {
	for _, lanes := range t.emits {
		for i := range lanes {
			if lanes[i].tx.State() != Closed {
				return false
			}
		}
	}
	return len(t.emits) > 0
}

// finish closes the outputs, one after the other; each lane ends when it is empty.
func (f *flow) finish(n *net, s, i int, end func(func(*net))) {
	t := &n.tasks[f.taskAt(s, i)]
	if t.out == len(t.emits) {
		end(func(n *net) { n.tasks[f.taskAt(s, i)].mood = over })
		return
	}
	left := false
	for c := range t.emits[t.out] {
		l := &t.emits[t.out][c]
		if l.ended {
			continue
		}
		left = true
		if len(l.pending)+len(l.parked) == 0 {
			end(func(n *net) { f.end(n, s, i, n.tasks[f.taskAt(s, i)].out, c) })
		}
	}
	if !left {
		end(func(n *net) { n.tasks[f.taskAt(s, i)].out++ })
	}
}

func (f *flow) end(n *net, s, i, o, c int) {
	l := &n.tasks[f.taskAt(s, i)].emits[o][c]
	e := f.stages[s].outputs[o]
	end := &n.ends[f.endAt(e, c)]
	l.ended = true
	batches, bytes, _ := l.tx.Finish(Ended)
	end.left--
	if !f.edges[e].stored {
		if err := end.rx.End(i, batches, bytes); err != nil {
			panic(err)
		}
	}
}

// leave is a task's end of reading, early or not: its inputs are closed, then its outputs.
func (f *flow) leave(n *net, s, i int) {
	f.drop(n, s, i)
	n.tasks[f.taskAt(s, i)].mood = finishing
}

// drop closes a task's inputs.
func (f *flow) drop(n *net, s, i int) {
	for _, e := range f.stages[s].inputs {
		end := &n.ends[f.endAt(e, i)]
		end.gone, end.queue = true, nil
		for p := range f.stages[f.edges[e].from].tasks {
			f.lane(n, e, p, i).tx.Finish(Closed)
		}
		if !f.edges[e].stored {
			end.rx.Close()
		}
	}
}

// fail is a task's death: its readers hear of it, and those it reads from.
func (f *flow) fail(n *net, s, i int) {
	f.drop(n, s, i)
	t := &n.tasks[f.taskAt(s, i)]
	t.mood = failed
	for o, e := range f.stages[s].outputs {
		for c := range t.emits[o] {
			l := &t.emits[o][c]
			l.pending, l.parked = nil, nil
			if l.ended {
				continue
			}
			l.tx.Finish(Failed)
			end := &n.ends[f.endAt(e, c)]
			if !end.gone {
				end.bad, end.queue = true, nil
			}
			if !f.edges[e].stored {
				end.rx.Fail(i, "told to")
			}
		}
	}
}

// check returns what is wrong with a state.
func (f *flow) check(n *net) error {
	var holds int64
	for e := range f.edges {
		if f.edges[e].stored {
			continue
		}
		for c := range f.stages[f.edges[e].to].tasks {
			end := &n.ends[f.endAt(e, c)]
			if err := end.rx.Check(); err != nil {
				return err
			}
			holds += end.rx.Holds()
			if !end.bad && end.rx.Queued() != int64(len(end.queue))*f.size {
				return fmt.Errorf("I1: %d batches in a queue that counts %d bytes", len(end.queue), end.rx.Queued())
			}
		}
	}
	if holds != n.budget.held {
		return fmt.Errorf("I12: channels hold %d, the budget says %d", holds, n.budget.held)
	}
	return nil
}

// final says whether all tasks have ended, and what is wrong with that end.
func (f *flow) final(n *net) (bool, error) {
	for i := range n.tasks {
		if n.tasks[i].mood < over {
			return false, nil
		}
	}
	if n.budget.held != 0 || n.budget.channels != 0 {
		return false, fmt.Errorf("I8: %d bytes and %d channels left at the end", n.budget.held, n.budget.channels)
	}
	if n.killed {
		return true, nil
	}
	for e := range f.edges {
		if f.early(e) {
			continue
		}
		var seen uint64
		for c := range f.stages[f.edges[e].to].tasks {
			seen |= n.ends[f.endAt(e, c)].seen
		}
		if want := f.batches(f.edges[e].from); bits.OnesCount64(seen) != want {
			return false, fmt.Errorf("I11: %d of %d batches came over edge %d", bits.OnesCount64(seen), want, e)
		}
	}
	return true, nil
}

// early says that what an edge carries depends on who leaves when.
func (f *flow) early(e int) bool {
	return f.stops(f.edges[e].to, func(s *stage) []int { return s.outputs }, func(e edgeOf) int { return e.to }) ||
		f.stops(f.edges[e].from, func(s *stage) []int { return s.inputs }, func(e edgeOf) int { return e.from })
}

// stops says that a stage, or one further on in a direction, leaves early.
func (f *flow) stops(s int, edges func(*stage) []int, next func(edgeOf) int) bool {
	if f.stages[s].stop > 0 {
		return true
	}
	for _, e := range edges(&f.stages[s]) {
		if f.stops(next(f.edges[e]), edges, next) {
			return true
		}
	}
	return false
}

// batches is the number of batches that a stage sends.
func (f *flow) batches(s int) (sum int) {
	st := &f.stages[s]
	for _, task := range st.script {
		sum += len(task[0])
	}
	scans := map[int]bool{}
	var collect func(int)
	collect = func(s int) {
		if len(f.stages[s].inputs) == 0 {
			scans[s] = true
		}
		for _, e := range f.stages[s].inputs {
			collect(f.edges[e].from)
		}
	}
	if len(st.inputs) > 0 {
		collect(s)
		for scan := range scans {
			sum += f.batches(scan)
		}
	}
	return sum
}
