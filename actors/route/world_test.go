package route

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"manta/actors/core"
)

const (
	worldHead   = core.NodeID("head")
	worldCaller = core.NodeID("caller")
	worldActor  = core.ID(1 << core.NumberBits)
	worldJob    = core.JobID("job")
)

// world is a head with a real core, a node whose two callers call one actor through a real router, two nodes that the actor can live on,
// and ways between them that keep order. The actor handles one call at a time.
type world struct {
	t       *testing.T
	c       *core.Core
	r       *Router
	ways    map[[2]core.NodeID][]any
	lives   map[core.NodeID]*life // of the actor, by node
	dead    core.NodeID           // this one crashed
	known   [2]bool               // to the head, to the caller
	killed  int
	stopped map[core.ID]bool // cancelled where they went straight; true: and it was not there
	script  [2][]string      // what each caller does next
	made    [2]int
	begun   map[core.ID]int
	order   [2][]core.ID // calls that have begun, by caller
	ends    map[core.ID]string
	tries   map[core.ID]bool // may run again: not checked for order
	log     []string
	trace   []string
}

// life is the actor where it lives.
type life struct {
	incarnation int32
	calls       []worldCall
}

type worldCall struct {
	id      core.ID
	from    core.NodeID
	attempt int32
}

// newWorld gives a world in which the actor lives; with warm the caller's node knows where.
func newWorld(t *testing.T, script [2][]string, restarts int, warm bool) *world {
	w := &world{
		t: t, c: core.New(core.Config{}), r: New(), script: script, ways: make(map[[2]core.NodeID][]any), lives: make(map[core.NodeID]*life),
		begun: make(map[core.ID]int), ends: make(map[core.ID]string), tries: make(map[core.ID]bool),
		stopped: make(map[core.ID]bool),
	}
	w.c.StartJob(worldJob)
	for _, n := range []core.NodeID{worldHead, worldCaller, "a", "b"} {
		cpu := int64(1000)
		if n == worldHead || n == worldCaller {
			cpu = 0
		}
		w.c.NodeUp(core.NodeSpec{ID: n, CPU: cpu})
	}
	w.c.Handle(worldCaller, &core.Submit{Spec: &core.Spec{
		ID: worldActor, Job: worldJob, Kind: core.KindCreate, Results: 1, Func: "f",
		Opt: &core.Options{Demand: core.Demand{CPU: 1000, Bundle: -1}, Restarts: restarts},
	}})
	w.route()
	w.settle()
	if warm {
		w.r.Where(worldActor, "a", 0)
	}
	return w
}

func (w *world) put(from, to core.NodeID, m any) {
	if to != from && from != w.dead && !(to == w.dead && w.knows(from)) {
		w.ways[[2]core.NodeID{from, to}] = append(w.ways[[2]core.NodeID{from, to}], m)
	}
}

func (w *world) knows(n core.NodeID) bool {
	return w.dead != "" && (n == worldHead && w.known[0] || n == worldCaller && w.known[1])
}

// route puts on their ways what the core and the router say.
func (w *world) route() {
	for _, o := range w.c.Take() {
		w.put(worldHead, o.To, o.Msg)
	}
	for _, o := range w.r.Take() {
		switch {
		case o.Call != nil && o.To == "":
			w.put(worldCaller, worldHead, &core.Submit{Spec: o.Call})
		case o.Call != nil:
			w.put(worldCaller, o.To, &core.Call{Spec: o.Call, Incarnation: o.Incarnation})
		case o.Fence != 0:
			w.put(worldCaller, o.To, &core.Fence{Number: o.Fence})
		case o.Stop != 0:
			w.put(worldCaller, o.To, &core.Stop{ID: o.Stop})
		case o.Fail != 0:
			w.end(o.Fail, "failed here")
		}
	}
}

func (w *world) end(id core.ID, how string) {
	if was, ok := w.ends[id]; ok {
		w.fail("call %x ends twice: %s, %s", id, was, how)
	}
	w.ends[id] = how
}

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	for _, line := range w.trace {
		w.t.Log(line)
	}
	w.t.Fatalf(format, args...)
}

func (w *world) node(n core.NodeID) *life { return w.lives[n] }

// step is one thing that can happen.
type step struct {
	kind     string
	from, to core.NodeID
}

// steps lists what can happen now.
func (w *world) steps() (list []step) {
	for i := range w.script {
		if w.made[i] < len(w.script[i]) {
			list = append(list, step{"next", core.NodeID(fmt.Sprint(i)), ""})
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.ways), func(a, b [2]core.NodeID) int { return strings.Compare(string(a[0]+a[1]), string(b[0]+b[1])) }) {
		if len(w.ways[key]) > 0 {
			list = append(list, step{"deliver", key[0], key[1]})
		}
	}
	for _, n := range []core.NodeID{"a", "b"} {
		if l := w.node(n); l != nil && len(l.calls) > 0 && n != w.dead {
			list = append(list, step{"finish", n, ""})
		}
	}
	if w.killed == 0 {
		list = append(list, step{"restart", "", ""})
	}
	switch {
	case w.dead == "":
		list = append(list, step{"crash", "a", ""})
	default:
		if !w.known[0] {
			list = append(list, step{"learn", worldHead, ""})
		} else if !w.known[1] { // after the head, which tells
			list = append(list, step{"learn", worldCaller, ""})
		}
	}
	return list
}

func (w *world) do(s step) {
	w.trace = append(w.trace, fmt.Sprint(s))
	switch s.kind {
	case "next":
		w.next(int(s.from[0] - '0'))
	case "deliver":
		key := [2]core.NodeID{s.from, s.to}
		m := w.ways[key][0]
		w.ways[key] = w.ways[key][1:]
		w.trace = append(w.trace, text(m))
		if s.from == w.dead && w.knows(s.to) || s.to == w.dead {
			break // nobody listens
		}
		w.receive(s.from, s.to, m)
	case "finish":
		l := w.lives[s.from]
		k := l.calls[0]
		l.calls = l.calls[1:]
		w.answer(s.from, k, nil)
		if len(l.calls) > 0 {
			w.begin(l.calls[0])
		}
	case "restart":
		w.killed++
		w.put(worldCaller, worldHead, &core.Kill{Actor: worldActor, Restart: true})
	case "crash":
		w.dead = s.from
		delete(w.lives, s.from)
	case "learn":
		if s.from == worldHead {
			w.known[0] = true
			w.log = append(w.log, "down")
			w.c.NodeDown(w.dead, "crashed")
		} else {
			w.known[1] = true
			w.r.NodeDead(w.dead)
		}
	}
	w.route()
}

// next is a caller's next call: "plain" may go straight, "head" may not, "again" may be made again, "cancel" cancels the one before.
func (w *world) next(i int) {
	what := w.script[i][w.made[i]]
	id := core.ID(1)<<core.NumberBits + core.ID(100*(i+1)+w.made[i])
	w.made[i]++
	if what == "cancel" {
		switch k := w.r.calls[id-1]; {
		case !w.r.Cancel(id - 1):
			w.put(worldCaller, worldHead, &core.Cancel{ID: id - 1})
		case k.way == straight:
			w.stopped[id-1] = false
		}
		return
	}
	opt := &core.Options{Demand: core.Demand{Bundle: -1}}
	if what == "again" {
		opt.Retries = 1
		w.tries[id] = true
	}
	w.r.Call(&core.Spec{
		ID: id, Job: worldJob, Kind: core.KindCall, Results: 1, Func: "f", Actor: worldActor, Parent: core.ID(i + 1), Opt: opt,
	}, what == "plain")
}

func (w *world) receive(from, to core.NodeID, msg any) {
	switch to {
	case worldHead:
		w.log = append(w.log, string(from)+text(msg))
		w.c.Handle(from, msg)
	case worldCaller:
		switch m := msg.(type) {
		case *core.Where:
			if m.Node != w.dead || !w.known[1] {
				w.r.Where(m.Actor, m.Node, m.Incarnation)
			}
		case *core.Ready:
			if m.ID == worldActor {
				return
			}
			if !w.r.Answered(m.ID, "") {
				w.fail("the head answers %x, which it was not asked", m.ID)
			}
			w.end(m.ID, "by head")
		case *core.Answer:
			if m.Missed {
				if _, ok := w.stopped[m.ID]; ok {
					w.stopped[m.ID] = true
				}
				w.r.Missed(m.ID, from)
			} else if w.r.Answered(m.ID, from) {
				w.end(m.ID, "straight")
			}
		case *core.Fenced:
			w.r.Fenced(m.Number, from)
		}
	default:
		w.atActor(from, to, msg)
	}
}

func (w *world) atActor(from, n core.NodeID, msg any) {
	l := w.lives[n]
	switch m := msg.(type) {
	case *core.Start:
		if m.Spec.Kind == core.KindCreate {
			w.lives[n] = &life{incarnation: m.Attempt}
			w.put(n, worldHead, &core.Done{ID: m.Spec.ID, Attempt: m.Attempt})
			return
		}
		if l == nil {
			w.put(n, worldHead, &core.Done{ID: m.Spec.ID, Attempt: m.Attempt, Failure: &core.Failure{Text: "not here", System: true}})
			return
		}
		w.take(l, worldCall{m.Spec.ID, worldHead, m.Attempt})
	case *core.Call:
		if l == nil || l.incarnation != m.Incarnation {
			w.put(n, from, &core.Answer{ID: m.Spec.ID, Missed: true})
			return
		}
		w.take(l, worldCall{m.Spec.ID, from, 0})
	case *core.Fence:
		w.put(n, from, &core.Fenced{Number: m.Number})
	case *core.Stop:
		if l != nil {
			if i := slices.IndexFunc(l.calls, func(k worldCall) bool { return k.id == m.ID }); i > 0 {
				k := l.calls[i]
				l.calls = slices.Delete(l.calls, i, i+1)
				w.answer(n, k, &core.Failure{Text: "cancelled"})
			}
		}
	case *core.StopActor:
		delete(w.lives, n)
		if l != nil {
			for _, k := range l.calls {
				w.answer(n, k, &core.Failure{Text: "actor is dead", System: true})
			}
		}
	}
}

func (w *world) take(l *life, k worldCall) {
	l.calls = append(l.calls, k)
	if len(l.calls) == 1 {
		w.begin(k)
	}
}

// begin checks the order of a caller's calls, and that each begins once.
func (w *world) begin(k worldCall) {
	caller := int(k.id&0xffff)/100 - 1
	w.begun[k.id]++
	if w.stopped[k.id] {
		w.fail("call %x begins after it was cancelled and came back", k.id)
	}
	if w.tries[k.id] {
		return
	}
	if w.begun[k.id] > 1 {
		w.fail("call %x begins twice", k.id)
	}
	if o := w.order[caller]; len(o) > 0 && o[len(o)-1] > k.id {
		w.fail("call %x begins after %x", k.id, o[len(o)-1])
	}
	w.order[caller] = append(w.order[caller], k.id)
}

func (w *world) answer(n core.NodeID, k worldCall, f *core.Failure) {
	if k.from == worldHead {
		d := &core.Done{ID: k.id, Attempt: k.attempt, Failure: f}
		if f == nil {
			d.Results = []core.Value{{Data: []byte("x")}}
		}
		w.put(n, worldHead, d)
		return
	}
	w.put(n, k.from, &core.Answer{ID: k.id, Failure: f})
}

// settle lets everything come to rest without anything new.
func (w *world) settle() {
	for {
		steps := slices.DeleteFunc(w.steps(), func(s step) bool { return s.kind == "next" || s.kind == "restart" || s.kind == "crash" })
		if len(steps) == 0 {
			return
		}
		w.do(steps[0])
	}
}

// rest makes the calls that are left, and checks that all end and nothing is kept.
func (w *world) rest() {
	for i := range w.script {
		for w.made[i] < len(w.script[i]) {
			w.do(step{"next", core.NodeID(fmt.Sprint(i)), ""})
		}
	}
	w.settle()
	for i := range w.script {
		for k, what := range w.script[i] {
			if id := core.ID(1)<<core.NumberBits + core.ID(100*(i+1)+k); what != "cancel" && w.ends[id] == "" {
				w.fail("call %x has no end", id)
			}
		}
	}
	w.r.Drop(worldActor)
	if !w.r.Idle() {
		w.fail("left: %+v", w.r)
	}
}

func text(msg any) string {
	switch m := msg.(type) {
	case *core.Submit:
		return fmt.Sprintf(" submit %x", m.Spec.ID)
	case *core.Start:
		return fmt.Sprintf(" start %x.%d", m.Spec.ID, m.Attempt)
	case *core.Call:
		return fmt.Sprintf(" call %x.%d", m.Spec.ID, m.Incarnation)
	case *core.Done:
		return fmt.Sprintf(" done %x.%d %v", m.ID, m.Attempt, m.Failure != nil)
	case *core.Ready:
		return fmt.Sprintf(" ready %x %v", m.ID, m.Failure != nil)
	case *core.Answer:
		return fmt.Sprintf(" answer %x %v %v", m.ID, m.Failure != nil, m.Missed)
	}
	return fmt.Sprintf(" %T%+v", msg, msg)
}
