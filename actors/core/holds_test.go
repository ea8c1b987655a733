package core

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"manta/actors/link"
)

var depth = flag.Int("depth", 0, "how many steps the checks of holds take at most; 0: as many as are quick")

// holdWorld is a core, three nodes that put, pass, nest and release three objects, and links between them whose way
// may lose, repeat and reorder. It is small enough to try all that can happen.
type holdWorld struct {
	faulty bool // the way loses, repeats and reorders; else what is sent arrives in order
	c      *Core
	nodes  [3]*holdNode
	passes int
	log    []string // what the core was told, in order: its state is a function of that
	wrong  string
}

// holdNode is what a node has and knows.
type holdNode struct {
	id            NodeID
	crashed, down bool // down: the head knows
	put           bool
	handles       map[ID]bool
	values        map[ID]ID // of objects whose value the node knows: the object inside, or 0
	store         map[byte]ID
	running       []*Start
	up, back      holdWay // to the head and from it
}

// holdWay is one direction of a link.
type holdWay struct {
	s   link.Sender[any]
	r   link.Receiver[any]
	way []holdPacket
}

type holdPacket struct {
	seq uint64
	m   any
}

// Limits of the scope: packets of a direction under way at once, and tasks.
const (
	mostWay    = 2
	mostPasses = 3
)

// resultOf is where the ids of tasks' results begin; objects put by node i have the id i+1.
const resultOf = ID(100)

func newHoldWorld(faulty bool) *holdWorld {
	w := &holdWorld{faulty: faulty, c: New(Config{})}
	w.c.StartJob(simJob)
	for i := range w.nodes {
		w.nodes[i] = &holdNode{
			id: NodeID(fmt.Sprint("n", i)), handles: map[ID]bool{}, values: map[ID]ID{}, store: map[byte]ID{},
		}
		w.c.NodeUp(NodeSpec{ID: w.nodes[i].id, CPU: 1000})
	}
	w.c.Take()
	return w
}

// holdStep is one thing that can happen: to node a, or on its way up or back.
type holdStep struct {
	kind string
	a    int
	id   ID
	b    int
}

// steps lists what can happen now.
func (w *holdWorld) steps() (list []holdStep) {
	for i, n := range w.nodes {
		if n.crashed {
			if !n.down {
				list = append(list, holdStep{kind: "learn", a: i})
			}
		} else {
			list = append(list, w.acts(i, n)...)
		}
		for dir, l := range []*holdWay{&n.up, &n.back} {
			if n.down || dir == 1 && n.crashed {
				continue
			}
			if !w.faulty {
				if l.s.Open() > 0 {
					list = append(list, holdStep{kind: "deliver", a: i, b: dir})
				}
				continue
			}
			if l.s.Unsent() > 0 && len(l.way) < mostWay && !(dir == 0 && n.crashed) {
				list = append(list, holdStep{kind: "send", a: i, b: dir})
			}
			if len(l.way) == 0 && l.s.Open() > 0 && l.s.Unsent() == 0 && !(dir == 0 && n.crashed) {
				list = append(list, holdStep{kind: "rewind", a: i, b: dir})
			}
			for k := range l.way {
				for _, kind := range []string{"deliver", "lose", "repeat"} {
					list = append(list, holdStep{kind, i, ID(k), dir})
				}
			}
		}
	}
	return list
}

// acts lists what a node can do by itself.
func (w *holdWorld) acts(i int, n *holdNode) (list []holdStep) {
	if i != 2 { // that two can crash shows it
		list = append(list, holdStep{kind: "crash", a: i})
	}
	if !n.put {
		list = append(list, holdStep{kind: "put", a: i})
	}
	for _, id := range sortedKeys(n.handles) {
		list = append(list, holdStep{kind: "release", a: i, id: id})
		if !n.put {
			list = append(list, holdStep{kind: "put", a: i, id: id}) // with id nested in it
		}
		if inner, ok := n.values[id]; ok && inner != 0 && !n.handles[inner] {
			list = append(list, holdStep{kind: "open", a: i, id: id})
		}
		for to := range w.nodes {
			if to != i && w.passes < mostPasses {
				list = append(list, holdStep{"pass", i, id, to}, holdStep{"give", i, id, to})
			}
		}
	}
	if len(n.running) > 0 {
		list = append(list, holdStep{kind: "done", a: i}, holdStep{kind: "keep", a: i}, holdStep{kind: "return", a: i})
	}
	return list
}

func (w *holdWorld) do(s holdStep) {
	n := w.nodes[s.a]
	tell := func(m any) { n.up.s.Push(m) }
	hold := func(id ID) {
		if id != 0 && !n.handles[id] {
			n.handles[id] = true
			tell(&Hold{ID: id})
		}
	}
	switch s.kind {
	case "crash":
		n.crashed = true
	case "learn":
		n.down = true
		w.log = append(w.log, "down "+string(n.id))
		w.c.NodeDown(n.id, "")
		w.route()
	case "put":
		id, v := ID(s.a+1), Value{Node: n.id, Key: [16]byte{byte(s.a + 1)}}
		if s.id != 0 {
			v.Contains = []ID{s.id}
		}
		n.put, n.handles[id], n.values[id], n.store[v.Key[0]] = true, true, s.id, id
		tell(&Put{ID: id, Job: simJob, Value: v})
	case "release":
		delete(n.handles, s.id)
		delete(n.values, s.id)
		tell(&Release{ID: s.id})
	case "open":
		hold(n.values[s.id])
	case "pass", "give":
		spec := &Spec{
			ID: resultOf + ID(w.passes), Job: simJob, Func: "f", Results: 1,
			Opt: &Options{Demand: Demand{Node: w.nodes[s.b].id, Bundle: -1}},
		}
		if s.kind == "give" { // as an argument, which is resolved
			spec.Args = []Arg{{Ref: s.id}}
		} else { // inside one
			spec.Args = []Arg{{Val: &Value{Contains: []ID{s.id}}}}
		}
		w.passes++
		n.handles[spec.ID] = true
		tell(&Submit{Spec: spec})
	case "done", "keep", "return":
		m := n.running[0]
		n.running = n.running[1:]
		v, inner := Value{Data: []byte("x")}, ID(0)
		for _, a := range m.Args {
			for _, id := range a.Contains {
				inner = id
			}
		}
		if s.kind == "keep" {
			hold(inner)
		} else if s.kind == "return" && inner != 0 {
			v.Contains = []ID{inner}
		}
		tell(&Done{ID: m.Spec.ID, Attempt: m.Attempt, Results: []Value{v}})
	default:
		w.move(s, n)
	}
}

// move does what happens on the way.
func (w *holdWorld) move(s holdStep, n *holdNode) {
	l := []*holdWay{&n.up, &n.back}[s.b]
	if !w.faulty {
		first, ms := l.s.Next(1)
		w.arrive(n, s.b, l, holdPacket{first, ms[0]}, true)
		return
	}
	switch s.kind {
	case "send":
		first, ms := l.s.Next(1)
		l.way = append(l.way, holdPacket{first, ms[0]})
	case "rewind":
		l.s.Rewind()
	default:
		p := l.way[s.id]
		if s.kind != "repeat" {
			l.way = slices.Delete(l.way, int(s.id), int(s.id)+1)
		}
		if s.kind != "lose" {
			w.arrive(n, s.b, l, p, s.kind == "deliver")
		}
	}
}

// arrive hands a packet to the other side. The acknowledgement comes at once or, which is as if it was lost, not at all.
func (w *holdWorld) arrive(n *holdNode, dir int, l *holdWay, p holdPacket, ack bool) {
	for _, m := range l.r.Accept(p.seq, p.m) {
		if dir == 1 {
			w.receive(n, m)
			continue
		}
		w.log = append(w.log, fmt.Sprint(n.id, " ", describe(m)))
		w.c.Handle(n.id, m)
		w.route()
	}
	if ack {
		l.s.Ack(l.r.Ack())
	}
}

func (w *holdWorld) route() {
	for _, o := range w.c.Take() {
		for _, n := range w.nodes {
			if n.id == o.To && !n.down {
				n.back.s.Push(o.Msg)
			}
		}
	}
}

// receive is what a node does with a message of the head.
func (w *holdWorld) receive(n *holdNode, msg any) {
	switch m := msg.(type) {
	case *Start:
		n.running = append(n.running, m)
	case *Ready:
		if n.handles[m.ID] && m.Failure == nil {
			n.values[m.ID] = 0
			for _, id := range m.Value.Contains {
				n.values[m.ID] = id
			}
		}
	case *Free:
		id, ok := n.store[m.Key[0]]
		if !ok {
			w.wrong = fmt.Sprintf("key %d is freed twice on %s", m.Key[0], n.id)
		}
		delete(n.store, m.Key[0])
		for _, o := range w.nodes {
			if o.handles[id] && !o.crashed {
				w.wrong = fmt.Sprintf("object %d is freed while %s has handles of it", id, o.id)
			}
		}
	}
}

func describe(m any) string {
	switch m := m.(type) {
	case *Submit:
		return fmt.Sprint("submit ", m.Spec.ID, m.Spec.Opt.Node, m.Spec.Args[0].Ref, m.Spec.Args[0].Val)
	case *Start:
		return fmt.Sprint("start ", m.Spec.ID, m.Args)
	}
	return fmt.Sprintf("%T%+v", m, m)
}

// key describes all of a world, so that no two worlds are the same in it.
func (w *holdWorld) key() string {
	var b strings.Builder
	b.WriteString(strings.Join(w.log, ";"))
	for _, n := range w.nodes {
		fmt.Fprint(&b, "|", n.crashed, n.down, n.put, w.passes, sortedKeys(n.handles), sortedKeys(n.values), slices.Sorted(maps.Keys(n.store)), len(n.running))
		for _, l := range []holdWay{n.up, n.back} {
			fmt.Fprint(&b, "/", l.r.Ack(), l.s.Open(), l.s.Unsent())
			for _, p := range l.way {
				fmt.Fprint(&b, " ", p.seq, describe(p.m))
			}
			sender := l.s // a copy, to look at what is kept
			sender.Rewind()
			_, ms := sender.Next(sender.Open())
			for _, m := range ms {
				fmt.Fprint(&b, ",", describe(m))
			}
		}
	}
	return b.String()
}

// safe says whether something is gone that a node has a handle of.
func (w *holdWorld) safe() string {
	for i, n := range w.nodes {
		if n.crashed {
			continue
		}
		for id := range n.handles {
			mine := id == ID(i+1) || id >= resultOf // its making may be on its way
			if w.c.objects[id] == nil && !(mine && n.up.s.Open() > 0) {
				return fmt.Sprintf("%s has handles of object %d, which is forgotten", n.id, id)
			}
		}
	}
	return w.wrong
}

// settle lets all that is under way come to its end without any further fault.
func (w *holdWorld) settle() string {
	w.faulty = false
	for i, n := range w.nodes {
		if n.crashed && !n.down {
			w.do(holdStep{kind: "learn", a: i})
		}
	}
	for moved := true; moved; {
		moved = false
		for i, n := range w.nodes {
			n.up.s.Rewind()
			n.back.s.Rewind()
			n.up.way, n.back.way = nil, nil
			for dir, l := range []*holdWay{&n.up, &n.back} {
				for l.s.Open() > 0 && !n.down {
					w.do(holdStep{kind: "deliver", a: i, b: dir})
					moved = true
				}
			}
			for len(n.running) > 0 && !n.crashed {
				w.do(holdStep{kind: "done", a: i})
				moved = true
			}
			if why := w.safe(); why != "" {
				return why
			}
		}
	}
	return ""
}

// balance lets the world settle, and says what is kept though nobody holds it, or not kept though somebody does.
func (w *holdWorld) balance() string {
	if why := w.settle(); why != "" {
		return why
	}
	nested := map[ID]bool{}
	for _, o := range w.c.objects {
		if o.value != nil {
			for _, id := range o.value.Contains {
				nested[id] = true
			}
		}
	}
	for id, o := range w.c.objects {
		held := nested[id]
		for _, n := range w.nodes {
			held = held || !n.crashed && n.handles[id]
		}
		if held != o.refs.Kept() || !held && o.value != nil {
			return fmt.Sprintf("object %d: held %v, kept %v", id, held, o.refs.Kept())
		}
	}
	for i, n := range w.nodes {
		for _, id := range sortedKeys(n.handles) {
			if !n.crashed {
				w.do(holdStep{kind: "release", a: i, id: id})
			}
		}
	}
	if why := w.settle(); why != "" {
		return why
	}
	if got := w.c.Counts(); got != (Counts{}) {
		return fmt.Sprintf("%+v is kept though no node holds anything", got)
	}
	for _, n := range w.nodes {
		if len(n.store) > 0 && !n.crashed {
			return fmt.Sprintf("%s still has %v", n.id, n.store)
		}
	}
	return ""
}

func holdsAfter(faulty bool, path []holdStep) *holdWorld {
	w := newHoldWorld(faulty)
	for _, s := range path {
		w.do(s)
	}
	return w
}

// Everything that can happen to three nodes and three objects, to the depth that fits: put, pass, nest, return, release,
// crash; once with ways that keep order, which goes deeper, and once with ways that lose, repeat and reorder.
func TestHoldsExhaustive(t *testing.T) {
	for _, scope := range []struct {
		name          string
		faulty        bool
		quick, deeper int
	}{{"in order", false, 5, 7}, {"lost and repeated", true, 4, 6}} {
		t.Run(scope.name, func(t *testing.T) {
			deepest := scope.quick
			if *long {
				deepest = scope.deeper
			}
			if *depth > 0 {
				deepest = *depth
			}
			seen := map[[32]byte]bool{}
			level := [][]holdStep{nil}
			for d := 0; len(level) > 0 && d <= deepest; d++ {
				var next [][]holdStep
				for _, path := range level {
					if why := holdsAfter(scope.faulty, path).balance(); why != "" {
						t.Fatalf("after %v: %s", path, why)
					}
					if d == deepest {
						continue
					}
					for _, s := range holdsAfter(scope.faulty, path).steps() {
						w := holdsAfter(scope.faulty, path)
						w.do(s)
						if why := w.safe(); why != "" {
							t.Fatalf("after %v, %v: %s", path, s, why)
						}
						if key := sha256.Sum256([]byte(w.key())); !seen[key] {
							seen[key] = true
							next = append(next, append(slices.Clone(path), s))
						}
					}
				}
				level = next
			}
			t.Logf("%d states to a depth of %d", len(seen), deepest)
		})
	}
}

// The same at random, and far deeper.
func TestHoldsRandomWalks(t *testing.T) {
	walks := 4_000
	if *long {
		walks = 200_000
	}
	for seed := range walks {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		w := newHoldWorld(seed%2 == 0)
		var path []holdStep
		for range rng.IntN(120) {
			list := w.steps()
			if len(list) == 0 {
				break
			}
			s := list[rng.IntN(len(list))]
			if s.kind == "crash" && rng.IntN(8) > 0 {
				continue // or there would be no long lives
			}
			path = append(path, s)
			w.do(s)
			if why := w.safe(); why != "" {
				t.Fatalf("walk %d, after %v: %s", seed, path, why)
			}
		}
		if why := w.balance(); why != "" {
			t.Fatalf("walk %d, after %v: %s", seed, path, why)
		}
	}
}
