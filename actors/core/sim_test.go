package core

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var only = flag.Int("seed", -1, "run this seed only")
var tail = flag.Int("tail", 25, "how much of the trace a failure shows")

var long = flag.Bool("long", false, "run thousands of seeds")

// sim is a cluster of simulated nodes around a core: links that keep order and have any delay, attempts that take any time, nodes that
// die and join, a driver that does what comes to its mind. Everything comes from the seed.
type sim struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	c     *Core
	nodes []*simNode // the first is the driver's, which stays
	seq   int
	trace []string

	refs    map[ID]*simRef // of the driver
	actors  map[ID]*simActor
	streams map[ID]*simStream
	next    ID
	kills   int
}

type simNode struct {
	id      NodeID
	dead    bool
	in, out []any
	running []*Start
	store   map[[16]byte]bool
	actors  map[ID][]ID // calls that came, by actor
	emitted map[ID]*simSource
}

type simSource struct {
	m        *Start
	next, n  int64
	consumed int64
	closed   bool
}

type simRef struct {
	told, once bool // is ready, was ready
	kind       Kind
	value      Value
	failure    *Failure
}

type simActor struct {
	begun map[ID]int
}

type simStream struct {
	n    int64
	args bool // it has some, which may be cancelled

	got            int64
	ended, missing bool
	failure        *Failure
}

const simJob = JobID("job")

func newSim(t *testing.T, seed uint64, nodes int) *sim {
	s := &sim{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), c: New(Config{MaxLineage: 50}),
		refs: make(map[ID]*simRef), actors: make(map[ID]*simActor), streams: make(map[ID]*simStream), next: 1 << NumberBits,
	}
	if seed%3 == 1 {
		s.c.cfg.MaxLineageBytes = 10_000
	}
	s.c.StartJob(simJob)
	for range nodes {
		s.join()
	}
	return s
}

func (s *sim) join() {
	n := &simNode{
		id: NodeID(fmt.Sprintf("n%03d", len(s.nodes))), store: make(map[[16]byte]bool), actors: make(map[ID][]ID), emitted: make(map[ID]*simSource),
	}
	s.nodes = append(s.nodes, n)
	s.c.NodeUp(NodeSpec{ID: n.id, CPU: 2000, Memory: 1000, Labels: map[string]string{"odd": fmt.Sprint(len(s.nodes) % 2)}})
	s.route()
}

func (s *sim) fail(format string, args ...any) {
	for _, l := range s.trace[max(len(s.trace)-*tail, 0):] {
		s.t.Log(l)
	}
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// route puts what the core says on its way.
func (s *sim) route() {
	for _, o := range s.c.Take() {
		for _, n := range s.nodes {
			if n.id == o.To && !n.dead {
				n.in = append(n.in, o.Msg)
			}
		}
	}
	s.check()
}

// check holds at any time.
func (s *sim) check() {
	for _, n := range s.c.order {
		var cpu, blocked int64
		ganged := 0
		for _, t := range n.tasks {
			if t.gang != nil {
				ganged++
			} else if t.bucket == &n.main {
				cpu += t.spec.Opt.CPU
				if t.blocked {
					blocked += t.spec.Opt.CPU
				}
			}
			if t.state != taskRunning {
				s.fail("task %x is on node %s in state %d", t.spec.ID, n.id, t.state)
			}
		}
		if ganged != n.main.ganged {
			s.fail("node %s has %d of gangs, not %d", n.id, ganged, n.main.ganged)
		}
		if cpu != n.main.usedCPU || blocked != n.main.blocked {
			s.fail("node %s uses %d (%d blocked), its tasks %d (%d)", n.id, n.main.usedCPU, n.main.blocked, cpu, blocked)
		}
	}
}

func (s *sim) send(n *simNode, msg any) { n.out = append(n.out, msg) }

func (s *sim) pick() *simNode {
	for {
		if n := s.nodes[s.rng.IntN(len(s.nodes))]; !n.dead {
			return n
		}
	}
}

// deliver moves one message, one way or the other.
func (s *sim) deliver(n *simNode) bool {
	toCore := s.rng.IntN(2) == 0
	if toCore && len(n.out) > 0 {
		m := n.out[0]
		n.out = n.out[1:]
		s.trace = append(s.trace, fmt.Sprintf("%s -> core %T %+v", n.id, m, m))
		if d, ok := m.(*Done); ok && s.refs[d.ID] != nil && d.Failure == nil {
			s.refs[d.ID].once = true
		}
		s.c.Handle(n.id, m)
		s.route()
		return true
	}
	if len(n.in) > 0 {
		m := n.in[0]
		n.in = n.in[1:]
		s.trace = append(s.trace, fmt.Sprintf("core -> %s %T %+v", n.id, m, m))
		s.receive(n, m)
		return true
	}
	return false
}

func (s *sim) receive(n *simNode, msg any) {
	switch m := msg.(type) {
	case *Start:
		for i := range m.Args {
			v := &m.Args[i]
			if v.Node == "" {
				continue
			}
			for _, o := range s.nodes {
				if o.id == v.Node && !o.dead && !o.store[v.Key] {
					s.fail("argument %d of %x was freed on %s while it runs", i, m.Spec.ID, o.id)
				}
			}
		}
		if m.Spec.Kind == KindCall {
			a := s.actors[m.Spec.Actor]
			a.begun[m.Spec.ID]++
			if a.begun[m.Spec.ID] > 1 && m.Spec.Opt.Retries == 0 {
				s.fail("call %x begins twice", m.Spec.ID)
			}
			before := n.actors[m.Actor]
			if r := s.refs[m.Spec.ID]; r == nil || r.once {
				// its result was lost, or nobody knows: made again after others
			} else if len(before) > 0 && before[len(before)-1] >= m.Spec.ID {
				s.fail("call %x begins after %x", m.Spec.ID, before[len(before)-1])
			}
			if r := s.refs[m.Spec.ID]; m.Attempt == 0 || r != nil && !r.once {
				n.actors[m.Actor] = append(before, m.Spec.ID)
			}
		}
		if m.Spec.Kind == KindCreate {
			delete(n.actors, m.Actor)
		}
		if m.Spec.Stream {
			n.emitted[m.Spec.ID] = &simSource{m: m, n: s.streams[m.Spec.ID].n, consumed: m.Base}
		}
		n.running = append(n.running, m)
	case *Stop:
		for i, r := range n.running {
			if r.Spec.ID == m.ID && r.Attempt == m.Attempt {
				n.running = slices.Delete(n.running, i, i+1)
				delete(n.emitted, m.ID)
				s.send(n, &Done{ID: m.ID, Attempt: m.Attempt, Failure: &Failure{Text: "cancelled", Kinds: []string{FailCanceled}}})
				break
			}
		}
	case *StopActor:
		n.running = slices.DeleteFunc(n.running, func(r *Start) bool { return r.Actor == m.Actor })
	case *Free:
		if !n.store[m.Key] {
			s.fail("key %v is freed twice on %s", m.Key[:2], n.id)
		}
		delete(n.store, m.Key)
	case *Ready:
		if r := s.refs[m.ID]; r != nil && n == s.nodes[0] {
			r.told, r.once, r.value, r.failure = true, true, m.Value, m.Failure
		}
	case *Credit:
		if src := n.emitted[m.Stream]; src != nil && src.m.Attempt == m.Attempt {
			src.consumed = max(src.consumed, m.Consumed)
			src.closed = src.closed || m.Closed
		}
	case *Items:
		st := s.streams[m.Stream]
		if st == nil || st.ended {
			return
		}
		if m.Index > st.got && st.missing {
			return // sent before the core knew
		}
		if m.Index > st.got {
			s.fail("stream %x: item %d comes, %d is next", m.Stream, m.Index, st.got)
		}
		for i, v := range m.Values {
			if at := m.Index + int64(i); at == st.got {
				if v.Size != at {
					s.fail("stream %x: item %d is %d", m.Stream, at, v.Size)
				}
				if v.Node != "" && s.lost(v) {
					s.send(n, &Read{Stream: m.Stream, Turn: 1, Consumed: st.got, Upto: st.got + 4, Lost: v.Node})
					st.missing = true
					return
				}
				st.missing = false
				st.got++
			}
		}
		if m.End && m.Index+int64(len(m.Values)) <= st.got {
			st.ended, st.failure = true, m.Failure
		}
		s.send(n, &Read{Stream: m.Stream, Turn: 1, Consumed: st.got, Upto: st.got + 4})
	}
}

// lost says whether a value's node is dead; it must not have been freed there.
func (s *sim) lost(v Value) bool {
	for _, o := range s.nodes {
		if o.id == v.Node {
			if !o.dead && !o.store[v.Key] {
				s.fail("a value that is held was freed on %s", o.id)
			}
			return o.dead
		}
	}
	return true
}

// result is a new value, in place or in the node's store.
func (s *sim) result(n *simNode, size int64) Value {
	if s.rng.IntN(2) == 0 {
		return Value{Data: []byte("x"), Size: size}
	}
	s.seq++
	v := Value{Node: n.id, Size: size}
	copy(v.Key[:], fmt.Sprintf("%d", s.seq))
	n.store[v.Key] = true
	return v
}

// work lets one attempt of a node go on.
func (s *sim) work(n *simNode) bool {
	if len(n.running) == 0 {
		return false
	}
	i := s.rng.IntN(len(n.running))
	m := n.running[i]
	done := func(d *Done) bool {
		n.running = slices.Delete(n.running, i, i+1)
		d.ID, d.Attempt, d.Nanos = m.Spec.ID, m.Attempt, int64(s.rng.IntN(1_000_000))
		s.send(n, d)
		return true
	}
	for k := range m.Args {
		if v := m.Args[k]; v.Node != "" && s.lost(v) {
			if ref := m.Spec.Args[k].Ref; ref != 0 {
				if r := s.refs[m.Spec.ID]; r != nil {
					r.once = true // others may have begun meanwhile
				}
				if m.Spec.Kind == KindCall {
					s.actors[m.Spec.Actor].begun[m.Spec.ID]-- // the function did not
				}
				return done(&Done{Failure: &Failure{Text: "lost", System: true, Lost: ref, LostAt: v.Node}})
			}
		}
	}
	if src := n.emitted[m.Spec.ID]; m.Spec.Stream && src != nil && src.m == m {
		switch {
		case src.closed:
			delete(n.emitted, m.Spec.ID)
			return done(&Done{Failure: &Failure{Text: "closed"}})
		case src.next == src.n:
			delete(n.emitted, m.Spec.ID)
			return done(&Done{})
		case src.next < m.Skip:
			src.next++
			return true
		case src.next >= src.consumed+m.Window:
			return false
		}
		s.send(n, &Emit{Stream: m.Spec.ID, Attempt: m.Attempt, Index: src.next, Value: s.result(n, src.next)})
		src.next++
		return true
	}
	if s.rng.IntN(20) == 0 {
		return done(&Done{Failure: &Failure{Text: "no"}})
	}
	var vs []Value
	for range m.Spec.Results {
		vs = append(vs, s.result(n, 1))
	}
	return done(&Done{Results: vs})
}

func (s *sim) held() []ID { return sortedKeys(s.refs) }

// act lets the driver do something.
func (s *sim) act() {
	d := s.nodes[0]
	opt := &Options{Demand: Demand{CPU: int64(500 * s.rng.IntN(4)), Bundle: -1, Spread: s.rng.IntN(4) == 0}, Retries: s.rng.IntN(5) - 1, Window: 3}
	var args []Arg
	held := s.held()
	for range s.rng.IntN(3) {
		if len(held) > 0 {
			if id := held[s.rng.IntN(len(held))]; s.refs[id].kind != KindCreate {
				args = append(args, Arg{Ref: id})
			}
		}
	}
	spec := &Spec{ID: s.next, Job: simJob, Func: fmt.Sprint("f", s.rng.IntN(3)), Args: args, Opt: opt, Results: 1}
	switch s.rng.IntN(12) {
	case 0, 1, 2, 3:
		if s.rng.IntN(6) == 0 {
			s.gang(spec)
			return
		}
		spec.Results = 1 + s.rng.IntN(2)
		s.refs[s.next] = &simRef{}
		if spec.Results == 2 {
			s.refs[s.next+1] = &simRef{}
		}
	case 4:
		spec.Kind, opt.Restarts, opt.CPU = KindCreate, s.rng.IntN(4)-1, 1000
		s.refs[s.next] = &simRef{kind: KindCreate}
		s.actors[s.next] = &simActor{begun: make(map[ID]int)}
	case 5, 6, 7:
		if len(s.actors) == 0 {
			return
		}
		live := slices.DeleteFunc(sortedKeys(s.actors), func(id ID) bool { return s.refs[id] == nil })
		if len(live) == 0 {
			return
		}
		spec.Kind, spec.Actor = KindCall, live[s.rng.IntN(len(live))]
		opt.CPU = 0
		opt.Retries = []int{0, 0, 2, -1}[s.rng.IntN(4)]
		s.refs[s.next] = &simRef{}
	case 8:
		spec.Stream, spec.Results = true, 0
		s.streams[s.next] = &simStream{n: int64(s.rng.IntN(12)), args: len(args) > 0}
	case 9:
		v := s.result(d, 1)
		s.refs[s.next] = &simRef{told: true, value: v}
		s.send(d, &Put{ID: s.next, Job: simJob, Value: v})
		s.next += 2
		return
	case 10:
		if len(held) > 0 {
			id := held[s.rng.IntN(len(held))]
			delete(s.refs, id)
			s.send(d, &Release{ID: id})
		}
		return
	case 11:
		if len(held) > 0 && s.rng.IntN(3) == 0 {
			s.send(d, &Cancel{ID: held[s.rng.IntN(len(held))], Recursive: true})
		}
		return
	}
	s.send(d, &Submit{Spec: spec})
	if spec.Stream {
		s.send(d, &Read{Stream: spec.ID, Turn: 1, Upto: 4})
	}
	s.next += 2
}

// gang submits a few tasks that start together.
func (s *sim) gang(like *Spec) {
	first, size := s.next, 1+s.rng.IntN(4)
	for range size {
		spec, opt := *like, *like.Opt
		spec.ID, spec.Opt, spec.Results = s.next, &opt, 1
		opt.Gang, opt.GangSize, opt.Spread = first, int32(size), false
		if s.rng.IntN(2) == 0 {
			opt.Node = s.pick().id
		}
		s.refs[s.next] = &simRef{}
		s.send(s.nodes[0], &Submit{Spec: &spec})
		s.next += 2
	}
}

func (s *sim) kill() {
	n := s.pick()
	if n == s.nodes[0] {
		return
	}
	s.kills++
	n.dead, n.running, n.in, n.out = true, nil, nil, nil
	s.trace = append(s.trace, "kill "+string(n.id))
	s.c.NodeDown(n.id, "killed")
	s.route()
	s.join()
}

// settle lets everything come to rest.
func (s *sim) settle() {
	for idle := 0; idle < 3; idle++ {
		for _, n := range s.nodes {
			for !n.dead && (len(n.in) > 0 || len(n.out) > 0) {
				s.deliver(n)
				idle = 0
			}
			for !n.dead {
				moved := false
				for range len(n.running) * 3 {
					moved = s.work(n) || moved
				}
				if !moved {
					break
				}
				idle = 0
			}
		}
	}
}

func (s *sim) run(steps int) {
	for range steps {
		switch x := s.rng.IntN(100); {
		case x < 12:
			s.act()
		case x < 70:
			s.deliver(s.pick())
		case x < 98:
			s.work(s.pick())
		case s.rng.IntN(3) == 0:
			s.kill()
		}
	}
	s.settle()
	// What is held is there, or is made again when it is asked for.
	for range 2 {
		for _, id := range s.held() {
			r := s.refs[id]
			if !r.told {
				s.fail("object %x was never ready: %+v, task %+v of %+v", id, s.c.objects[id], s.c.tasks[id], s.c.tasks[id].spec)
			}
			if r.value.Node != "" && s.lost(r.value) {
				r.told = false
				s.send(s.nodes[0], &Lost{ID: id, Node: r.value.Node})
			}
		}
		s.settle()
	}
	for _, id := range sortedKeys(s.streams) {
		st := s.streams[id]
		if !st.ended {
			s.fail("stream %x has not ended: %d of %d items, %+v, task %+v", id, st.got, st.n, s.c.streams[id], s.c.tasks[id])
		}
		if st.failure != nil && !st.args && slices.Contains(st.failure.Kinds, FailCanceled) {
			s.fail("stream %x ended as if it had been cancelled", id)
		}
		if st.failure == nil && st.got != st.n {
			s.fail("stream %x ended after %d of %d items", id, st.got, st.n)
		}
		s.send(s.nodes[0], &Release{ID: id})
	}
	for _, id := range s.held() {
		s.send(s.nodes[0], &Release{ID: id})
	}
	s.settle()
	if n := s.c.Counts(); n != (Counts{}) {
		for _, id := range sortedKeys(s.c.tasks) {
			s.t.Logf("task %+v of %+v", s.c.tasks[id], s.c.tasks[id].spec)
		}
		s.fail("something is left: %+v", n)
	}
	for _, n := range s.nodes {
		if !n.dead && len(n.store) > 0 {
			for key := range n.store {
				for _, l := range s.trace {
					if strings.Contains(l, fmt.Sprintf("%v", key)) {
						s.t.Log(l)
					}
				}
			}
			s.trace = nil
			s.fail("%d values are left on %s", len(n.store), n.id)
		}
	}
	for _, n := range s.c.order {
		if n.main.usedCPU != 0 || n.main.blocked != 0 || len(n.tasks) > 0 || len(n.actors) > 0 {
			s.fail("node %s is not empty: %+v", n.id, n.main)
		}
	}
	if s.c.lineage.bytes != 0 {
		s.fail("lineage of %d bytes is left", s.c.lineage.bytes)
	}
	if j := s.c.jobs[simJob]; j.used != 0 || j.open.n > 0 || j.objects.n > 0 {
		s.fail("the job has %d in use, %d open, %d objects", j.used, j.open.n, j.objects.n)
	}
}

// A cluster of a few nodes, and one of a hundred, over many seeds: whatever dies, all that is held is there in the end or says why not, and
// nothing is left of what is not.
func TestSimulation(t *testing.T) {
	seeds := 150
	if *long {
		seeds = 20_000
	}
	for seed := range seeds {
		if *only >= 0 {
			seed = *only
		}
		nodes, steps := 4, 1500
		if seed%20 == 0 {
			nodes, steps = 100, 6000
		}
		newSim(t, uint64(seed), nodes).run(steps)
		if t.Failed() {
			return
		}
	}
}
