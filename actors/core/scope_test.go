package core

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// scope is a simulation that is small enough to try all that can happen: two nodes of one CPU, the second of which may crash once, a
// driver on the first that submits what is in its script, and links that keep order: package link sees to that, and the checks of holds
// have ways that lose, repeat and reorder.
type scope struct {
	*sim
	script []func(*scope)
	at     int // in script
	log    []string
	down   bool
}

// scopes are the scripts. IDs of what they submit are 1, 3, 5, …
var scopes = map[string][]func(*scope){
	"tasks": {
		scopeTask(Options{Retries: 1, Demand: Demand{Spread: true}}),
		scopeTask(Options{Retries: 1}, 1),
		scopeRelease(1),
	},
	"a task that is cancelled": {
		scopeTask(Options{Retries: 1, Demand: Demand{Node: "n001", Soft: true}}),
		scopeTask(Options{}, 1),
		func(s *scope) { s.send(s.nodes[0], &Cancel{ID: s.id(1), Recursive: true}) },
	},
	"an actor that is made again": {
		scopeActor(Options{Restarts: 1, Demand: Demand{Spread: true}}),
		scopeCall(Options{Retries: 1}, 1),
		scopeCall(Options{Retries: 1}, 1),
		scopeCall(Options{}, 1),
	},
	"an actor that is not": {
		scopeActor(Options{Demand: Demand{Node: "n001", Soft: true}}),
		scopeCall(Options{Retries: 1}, 1),
		scopeRelease(1),
	},
	"calls with an argument": {
		scopeActor(Options{Restarts: 1, Demand: Demand{Node: "n001", Soft: true}}),
		scopeTask(Options{Retries: 1, Demand: Demand{Node: "n001", Soft: true}}),
		scopeCall(Options{Retries: 1}, 1, 3),
		scopeCall(Options{}, 1),
	},
	"a gang": {
		scopeGang("n000", "n001"),
		scopeTask(Options{Retries: 1}, 1),
	},
	"a stream": {
		func(s *scope) {
			id := s.id(1)
			s.streams[id] = &simStream{n: 2}
			s.submit(&Spec{ID: id, Stream: true, Opt: &Options{Retries: 1, Window: 1, Demand: Demand{CPU: 1000, Bundle: -1, Node: "n001", Soft: true}}})
			s.send(s.nodes[0], &Read{Stream: id, Turn: 1, Upto: 4})
		},
	},
}

func (s *scope) id(n int) ID { return 1<<NumberBits + ID(n) }

func (s *scope) submit(spec *Spec) {
	spec.Job, spec.Func = simJob, "f"
	s.send(s.nodes[0], &Submit{Spec: spec})
	s.next += 2
}

func scopeTask(opt Options, args ...int) func(*scope) {
	return func(s *scope) {
		o := opt
		o.CPU, o.Bundle = 1000, -1
		s.refs[s.next+1] = &simRef{}
		s.submit(&Spec{ID: s.next + 1, Results: 1, Opt: &o, Args: s.args(args)})
	}
}

func (s *scope) args(of []int) (args []Arg) {
	for _, n := range of {
		args = append(args, Arg{Ref: s.id(n)})
	}
	return args
}

func scopeActor(opt Options) func(*scope) {
	return func(s *scope) {
		o := opt
		o.CPU, o.Bundle = 1000, -1
		id := s.next + 1
		s.refs[id] = &simRef{kind: KindCreate}
		s.actors[id] = &simActor{begun: make(map[ID]int)}
		s.submit(&Spec{ID: id, Kind: KindCreate, Results: 1, Opt: &o})
	}
}

func scopeCall(opt Options, actor int, args ...int) func(*scope) {
	return func(s *scope) {
		o := opt
		o.Bundle = -1
		s.refs[s.next+1] = &simRef{}
		s.submit(&Spec{ID: s.next + 1, Kind: KindCall, Results: 1, Actor: s.id(actor), Opt: &o, Args: s.args(args)})
	}
}

func scopeGang(nodes ...NodeID) func(*scope) {
	return func(s *scope) {
		first := s.next + 1
		for _, n := range nodes {
			s.refs[s.next+1] = &simRef{}
			s.submit(&Spec{ID: s.next + 1, Results: 1, Opt: &Options{
				Demand: Demand{CPU: 1000, Bundle: -1, Node: n}, Gang: first, GangSize: int32(len(nodes)),
			}})
		}
	}
}

func scopeRelease(n int) func(*scope) {
	return func(s *scope) {
		delete(s.refs, s.id(n))
		s.send(s.nodes[0], &Release{ID: s.id(n)})
	}
}

// scopeStep is one thing that can happen.
type scopeStep struct {
	kind string
	node int
	k    int
}

func newScope(t *testing.T, script []func(*scope)) *scope {
	s := &scope{sim: newSim(t, 0, 0), script: script}
	for range 2 {
		s.join()
	}
	for _, n := range s.c.order {
		n.main.cpu = 1000
	}
	return s
}

// steps lists what can happen now.
func (s *scope) steps() (list []scopeStep) {
	if s.at < len(s.script) {
		list = append(list, scopeStep{"next", 0, 0})
	}
	if !s.nodes[1].dead {
		list = append(list, scopeStep{"crash", 1, 0})
	} else if !s.down {
		list = append(list, scopeStep{"learn", 1, 0})
	}
	for i, n := range s.nodes {
		if len(n.out) > 0 && !(i == 1 && s.down) { // also what a crashed one had sent
			list = append(list, scopeStep{"up", i, 0})
		}
		if n.dead {
			continue
		}
		if len(n.in) > 0 {
			list = append(list, scopeStep{"back", i, 0})
		}
		for k, m := range n.running {
			kinds := []string{"keeps", "gives", "fails"}
			switch src := n.emitted[m.Spec.ID]; {
			case src != nil && src.m == m && src.next < src.n && !src.closed:
				kinds = []string{"emits"}
				if src.next >= max(src.consumed+m.Window, m.Skip) {
					kinds = nil
				}
			case m.Spec.Kind == KindCreate, m.Spec.Stream:
				kinds = []string{"gives"}
			}
			for _, kind := range kinds {
				list = append(list, scopeStep{kind, i, k})
			}
		}
	}
	return list
}

func (s *scope) do(step scopeStep) {
	n := s.nodes[step.node]
	s.trace = append(s.trace, fmt.Sprint(step))
	switch step.kind {
	case "next":
		s.script[s.at](s)
		s.at++
	case "crash":
		n.dead, n.running, n.in = true, nil, nil
	case "learn":
		s.down, n.out = true, nil
		s.log = append(s.log, "down")
		s.c.NodeDown(n.id, "crashed")
		s.route()
	case "up":
		m := n.out[0]
		n.out = n.out[1:]
		s.log = append(s.log, scopeText(n, m))
		if d, ok := m.(*Done); ok && s.refs[d.ID] != nil && d.Failure == nil {
			s.refs[d.ID].once = true
		}
		s.c.Handle(n.id, m)
		s.route()
	case "back":
		m := n.in[0]
		n.in = n.in[1:]
		s.receive(n, m)
	default:
		s.finish(n, step)
	}
}

// finish ends an attempt, or lets a generator go on.
func (s *scope) finish(n *simNode, step scopeStep) {
	m := n.running[step.k]
	value := func(size int64) Value {
		s.seq++
		v := Value{Node: n.id, Size: size, Key: [16]byte{byte(s.seq)}}
		n.store[v.Key] = true
		return v
	}
	if src := n.emitted[m.Spec.ID]; step.kind == "emits" {
		if src.next >= m.Skip {
			s.send(n, &Emit{Stream: m.Spec.ID, Attempt: m.Attempt, Index: src.next, Value: value(src.next)})
		}
		src.next++
		return
	}
	n.running = slices.Delete(n.running, step.k, step.k+1)
	delete(n.emitted, m.Spec.ID)
	d := &Done{ID: m.Spec.ID, Attempt: m.Attempt, Nanos: 1}
	for i, v := range m.Args {
		if v.Node != "" && s.lost(v) { // its function does not begin
			d.Failure = &Failure{Text: "lost", System: true, Lost: m.Spec.Args[i].Ref, LostAt: v.Node}
			if r := s.refs[m.Spec.ID]; r != nil {
				r.once = true
			}
			if m.Spec.Kind == KindCall {
				s.actors[m.Spec.Actor].begun[m.Spec.ID]--
			}
			s.send(n, d)
			return
		}
	}
	switch {
	case step.kind == "fails":
		d.Failure = &Failure{Text: "no"}
	case m.Spec.Stream || m.Spec.Kind == KindCreate:
	case step.kind == "keeps":
		d.Results = []Value{value(1)}
	default:
		d.Results = []Value{{Data: []byte("x")}}
	}
	s.send(n, d)
}

func scopeText(n *simNode, m any) string {
	switch m := m.(type) {
	case *Submit:
		return fmt.Sprint(n.id, " submit ", m.Spec.ID)
	case *Done:
		return fmt.Sprint(n.id, " done ", m.ID, m.Attempt, m.Results, m.Failure != nil)
	case *Start:
		return fmt.Sprint("start ", m.Spec.ID, m.Attempt, m.Args, m.Skip, m.Base)
	case *Ready:
		return fmt.Sprint("ready ", m.ID, m.Value, m.Failure != nil)
	case *Items:
		return fmt.Sprint("items ", m.Index, m.Values, m.End, m.Failure != nil)
	}
	return fmt.Sprintf("%s %T%+v", n.id, m, m)
}

// key describes a world, so that no two that differ have the same: the core's state is a function of what it was told.
func (s *scope) key() string {
	var b strings.Builder
	fmt.Fprint(&b, s.at, s.down, s.seq, s.log)
	for _, n := range s.nodes {
		fmt.Fprint(&b, "|", n.dead, slices.SortedFunc(maps.Keys(n.store), func(a, b [16]byte) int { return int(a[0]) - int(b[0]) }))
		for _, list := range [][]any{n.in, n.out} {
			b.WriteString("/")
			for _, m := range list {
				b.WriteString(scopeText(n, m))
			}
		}
		for _, m := range n.running {
			fmt.Fprint(&b, "+", m.Spec.ID, m.Attempt)
			if src := n.emitted[m.Spec.ID]; src != nil {
				fmt.Fprint(&b, src.next, src.consumed, src.closed)
			}
		}
	}
	for _, id := range sortedKeys(s.streams) {
		fmt.Fprint(&b, *s.streams[id])
	}
	return b.String()
}

func (s *scope) after(path []scopeStep) *scope {
	for _, step := range path {
		s.do(step)
	}
	return s
}

// ends lets everything come to rest from here: each reference has its end, and with them all is gone.
func (s *scope) ends() {
	for s.at < len(s.script) {
		s.do(scopeStep{"next", 0, 0})
	}
	if s.nodes[1].dead && !s.down {
		s.do(scopeStep{"learn", 1, 0})
	}
	s.run(0)
}

// All that can happen in some small scopes, to the depth that fits.
func TestScopes(t *testing.T) {
	deepest := 20
	if *long {
		deepest = 100 // all of it
	}
	if *depth > 0 {
		deepest = *depth
	}
	for _, name := range slices.Sorted(maps.Keys(scopes)) {
		t.Run(name, func(t *testing.T) {
			script := scopes[name]
			seen := map[[32]byte]bool{}
			level := [][]scopeStep{nil}
			d := 0
			for ; len(level) > 0 && d <= deepest; d++ {
				var next [][]scopeStep
				for _, path := range level {
					newScope(t, script).after(path).ends()
					if d == deepest {
						continue
					}
					for _, step := range newScope(t, script).after(path).steps() {
						s := newScope(t, script).after(path)
						s.do(step)
						if key := sha256.Sum256([]byte(s.key())); !seen[key] {
							seen[key] = true
							next = append(next, append(slices.Clone(path), step))
						}
					}
				}
				level = next
			}
			t.Logf("%d states to a depth of %d", len(seen), d-1)
		})
	}
}
