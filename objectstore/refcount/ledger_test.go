package refcount

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var depth = flag.Int("depth", 0, "how many steps the check of the ledger takes at most; 0: as many as are quick")

// world is a ledger and three processes with a network between them. Everything in it is small enough to try all
// that can happen.
type world struct {
	l       *Ledger[int]
	procs   [3]proc
	network []packet // any may be delivered, delivered again, or lost, at any time
}

// proc is what a process knows.
type proc struct {
	life    uint64 // of the running process; it is not running when 0
	lives   uint64
	known   bool // the ledger knows of this life
	ended   uint64
	seq     uint64
	passes  uint64
	holds   [3]bool // acknowledged
	outbox  []Message[int]
	seen    map[Transfer]bool
	waiting map[Transfer]int // accepts on their way, and for what
}

// packet is a message to the ledger, or a reference from one process to another.
type packet struct {
	m         *Message[int]
	reference Transfer
	object    int
	to        int
}

var procNames = []string{"p", "q", "r"}

func newWorld() *world {
	w := &world{l: NewLedger[int](func(k int) uint64 { return uint64(k) })}
	w.l.table.records.shift = 2
	for i := range w.procs {
		w.start(i)
	}
	for o := range 3 {
		if err := w.l.Add(o, "job", procNames[o%2], 1); err != nil {
			panic(err)
		}
		w.procs[o%2].holds[o] = true
	}
	return w
}

func (w *world) start(i int) {
	p := &w.procs[i]
	lives, ended := p.lives+1, p.ended
	*p = proc{life: lives, lives: lives, ended: ended, known: true, seen: map[Transfer]bool{}, waiting: map[Transfer]int{}}
	w.must(w.l.Join(procNames[i], lives))
}

func (w *world) must(_ []int, err error) {
	if err != nil {
		panic(err)
	}
}

// step is one thing that can happen.
type step struct {
	kind    string
	a, b, c int
}

// limits of the scope: a life more for each process, references and messages under way at once.
const (
	mostLives   = 2
	mostPackets = 2
	mostOutbox  = 2
	mostPasses  = 1
)

// steps lists what can happen now.
func (w *world) steps() (list []step) {
	for i := range w.procs {
		p := &w.procs[i]
		if p.life == 0 {
			if p.ended < p.lives {
				list = append(list, step{kind: "learn", a: i})
			}
			if p.lives < mostLives {
				list = append(list, step{kind: "start", a: i})
			}
			continue
		}
		if i != 2 { // that two can crash shows it
			list = append(list, step{kind: "crash", a: i})
		}
		if len(p.outbox) > 0 && len(w.network) < mostPackets {
			list = append(list, step{kind: "send", a: i})
		}
		if len(p.outbox) == mostOutbox {
			continue
		}
		for o := range p.holds {
			if !p.holds[o] {
				continue
			}
			list = append(list, step{"release", i, o, 0})
			for to := range w.procs {
				if to != i && p.passes < mostPasses {
					list = append(list, step{"pass", i, o, to})
				}
			}
			for inner := range o {
				if p.holds[inner] {
					list = append(list, step{"nest", i, o, inner})
				}
			}
		}
	}
	for n := range w.network {
		list = append(list, step{kind: "deliver", a: n}, step{kind: "lose", a: n}, step{kind: "repeat", a: n})
	}
	for n := range w.transfers() {
		list = append(list, step{kind: "expire", a: n})
	}
	return list
}

func (w *world) transfers() []Transfer {
	list := w.l.Transfers()
	slices.SortFunc(list, func(a, b Transfer) int { return strings.Compare(a.String(), b.String()) })
	return list
}

func (w *world) do(s step) {
	var p *proc
	if s.kind != "deliver" && s.kind != "lose" && s.kind != "repeat" && s.kind != "expire" {
		p = &w.procs[s.a]
	}
	tell := func(m Message[int]) {
		p.seq++
		m.Process, m.Life, m.Seq = procNames[s.a], p.life, p.seq
		p.outbox = append(p.outbox, m)
	}
	switch s.kind {
	case "crash":
		p.life = 0
	case "learn":
		p.ended = p.lives
		w.l.End(procNames[s.a], p.lives)
	case "start":
		w.start(s.a)
	case "send":
		m := p.outbox[0]
		w.network = append(w.network, packet{m: &m})
	case "release":
		p.holds[s.b] = false
		tell(Message[int]{Op: Release, Object: s.b})
	case "nest":
		tell(Message[int]{Op: Nest, Object: s.b, Inner: s.c})
	case "pass":
		p.passes++
		id := Transfer{procNames[s.a], p.life, p.passes}
		tell(Message[int]{Op: Pass, Object: s.b, To: procNames[s.c], Transfer: id})
	case "expire":
		w.l.Expire(w.transfers()[s.a])
	case "lose", "deliver", "repeat":
		k := w.network[s.a]
		if s.kind != "repeat" {
			w.network = slices.Delete(slices.Clone(w.network), s.a, s.a+1)
		}
		if s.kind != "lose" {
			w.deliver(k)
		}
	}
}

func (w *world) deliver(k packet) {
	if k.m == nil { // a reference
		p := &w.procs[k.to]
		if p.life == 0 || p.seen[k.reference] {
			return
		}
		p.seen[k.reference] = true
		p.waiting[k.reference] = k.object
		p.seq++
		p.outbox = append(p.outbox, Message[int]{Process: procNames[k.to], Life: p.life, Seq: p.seq, Op: Accept, Transfer: k.reference})
		return
	}
	_, err := w.l.Apply(*k.m)
	if errors.Is(err, ErrGap) {
		return
	}
	// The acknowledgement: it comes at once or, which is the same as the message being lost, not at all.
	i := slices.Index(procNames, k.m.Process)
	p := &w.procs[i]
	if p.life != k.m.Life || len(p.outbox) == 0 || p.outbox[0].Seq != k.m.Seq {
		return
	}
	p.outbox = p.outbox[1:]
	switch k.m.Op {
	case Accept:
		o := p.waiting[k.m.Transfer]
		delete(p.waiting, k.m.Transfer)
		if err == nil {
			p.holds[o] = true
		}
	case Pass:
		if err == nil && len(w.network) < mostPackets+1 {
			w.network = append(slices.Clone(w.network), packet{reference: k.m.Transfer, object: k.m.Object, to: slices.Index(procNames, k.m.To)})
		}
	}
}

// key describes all of a world.
func (w *world) key() string {
	var b strings.Builder
	for i := range w.procs {
		p := &w.procs[i]
		fmt.Fprint(&b, p.life, p.lives, p.ended, p.seq, p.passes, p.holds, p.outbox, len(p.seen), len(p.waiting), "|")
		if lp := w.l.processes[procNames[i]]; lp != nil {
			fmt.Fprint(&b, lp.life, lp.seq, slices.Sorted(maps.Keys(lp.holds)))
		}
	}
	packets := []string{}
	for _, k := range w.network {
		if k.m != nil {
			packets = append(packets, fmt.Sprint(*k.m))
		} else {
			packets = append(packets, fmt.Sprint(k.reference, k.object, k.to))
		}
	}
	slices.Sort(packets)
	fmt.Fprint(&b, packets, w.transfers())
	for o := range 3 {
		if s := w.l.table.Find(o); s != 0 {
			holders := w.l.table.Holders(s)
			slices.Sort(holders)
			fmt.Fprint(&b, o, holders, w.l.nested[o])
		}
	}
	return b.String()
}

// safe says what is wrong: an object that a running process holds, or that is nested in one that exists, is gone.
func (w *world) safe() string {
	for i := range w.procs {
		p := &w.procs[i]
		for o := range p.holds {
			if p.life != 0 && p.holds[o] && !w.l.Exists(o) {
				return fmt.Sprintf("%s holds %d, which is freed", procNames[i], o)
			}
		}
	}
	for outer, inner := range w.l.nested {
		for _, o := range inner {
			if !w.l.Exists(outer) || !w.l.Exists(o) {
				return fmt.Sprintf("%d in %d is freed", o, outer)
			}
		}
	}
	return ""
}

// settle lets all that is under way come to its end without any new fault, and says what is kept though nobody
// holds it, or not kept though somebody does.
func (w *world) settle() string {
	for range 100 {
		moved := false
		for i := range w.procs {
			p := &w.procs[i]
			if p.life == 0 && p.ended < p.lives {
				w.do(step{kind: "learn", a: i})
			}
			if p.life != 0 && len(p.outbox) > 0 {
				m := p.outbox[0]
				w.deliver(packet{m: &m})
				moved = true
			}
		}
		if len(w.network) > 0 {
			w.do(step{kind: "deliver"})
			moved = true
		}
		if why := w.safe(); why != "" {
			return why
		}
		if !moved {
			break
		}
	}
	for _, t := range w.transfers() {
		w.l.Expire(t)
	}
	for o := range 3 {
		held := false
		for i := range w.procs {
			held = held || w.procs[i].life != 0 && w.procs[i].holds[o]
		}
		for _, inner := range w.l.nested {
			held = held || slices.Contains(inner, o)
		}
		if held != w.l.Exists(o) {
			return fmt.Sprintf("object %d: held %v, kept %v", o, held, w.l.Exists(o))
		}
	}
	for i := range w.procs {
		w.l.End(procNames[i], w.procs[i].lives)
	}
	if w.l.Len() > 0 || len(w.l.nested) > 0 {
		return fmt.Sprintf("%d objects are kept after all processes have ended", w.l.Len())
	}
	return ""
}

// Everything that can happen to three processes and three objects, to the depth that fits: holding, passing,
// nesting, releasing, crashing, messages lost, repeated and late, leases that end at the worst moment.
func TestLedgerExhaustive(t *testing.T) {
	deepest := 6
	if *depth > 0 {
		deepest = *depth
	}
	replay := func(path []step) *world {
		w := newWorld()
		for _, s := range path {
			w.do(s)
		}
		return w
	}
	seen := map[string]bool{newWorld().key(): true}
	layer := [][]step{nil}
	states, transitions := 1, 0
	for d := 1; d <= deepest; d++ {
		var next [][]step
		for _, path := range layer {
			for _, s := range replay(path).steps() {
				w := replay(path)
				w.do(s)
				transitions++
				if why := w.safe(); why != "" {
					t.Fatalf("%v, %v: %s", path, s, why)
				}
				if k := w.key(); !seen[k] {
					seen[k] = true
					states++
					full := append(slices.Clone(path), s)
					next = append(next, full)
					if why := w.settle(); why != "" {
						t.Fatalf("%v, then all comes to its end: %s", full, why)
					}
				}
			}
			if states > 1_000_000 {
				t.Logf("enough at depth %d: %d states, %d steps", d, states, transitions)
				return
			}
		}
		layer = next
		t.Logf("depth %d: %d states, %d steps", d, states, transitions)
	}
}

// Random walks go deeper than the exhaustive check.
func TestLedgerRandomWalks(t *testing.T) {
	rapidCheck(t, 30, func(pick func(n int) int) {
		w := newWorld()
		var path []step
		for range 60 {
			steps := w.steps()
			if len(steps) == 0 {
				break
			}
			s := steps[pick(len(steps))]
			path = append(path, s)
			w.do(s)
			require.Empty(t, w.safe(), "%v", path)
		}
		require.Empty(t, w.settle(), "%v", path)
	})
}

func TestLedgerRefuses(t *testing.T) {
	l := NewLedger[int](func(k int) uint64 { return uint64(k) })
	_, err := l.Apply(Message[int]{Process: "p", Life: 1, Seq: 1})
	require.ErrorIs(t, err, ErrStale)
	require.ErrorIs(t, l.Add(1, "job", "p", 1), ErrStale)
	_, err = l.Join("p", 2)
	require.NoError(t, err)
	_, err = l.Join("p", 1)
	require.ErrorIs(t, err, ErrStale)
	require.NoError(t, l.Add(1, "job", "p", 2))
	require.ErrorIs(t, l.Add(1, "job", "p", 2), ErrExists)
	_, err = l.Apply(Message[int]{Process: "p", Life: 2, Seq: 2})
	require.ErrorIs(t, err, ErrGap)
	_, err = l.Apply(Message[int]{Process: "p", Life: 2, Seq: 1, Op: Release, Object: 7})
	require.ErrorIs(t, err, ErrNotHeld)
	_, err = l.Apply(Message[int]{Process: "p", Life: 2, Seq: 2, Op: Pass, Object: 1, To: "q"})
	require.ErrorIs(t, err, ErrStale)
	_, err = l.Apply(Message[int]{Process: "p", Life: 2, Seq: 3, Op: Accept})
	require.ErrorIs(t, err, ErrNoTransfer)
	free, err := l.Apply(Message[int]{Process: "p", Life: 2, Seq: 4, Op: Release, Object: 1})
	require.NoError(t, err)
	require.Equal(t, []int{1}, free)
}

// rapidCheck runs a walk many times with different choices.
func rapidCheck(t *testing.T, times int, walk func(pick func(n int) int)) {
	for range times {
		rapid.Check(t, func(rt *rapid.T) {
			walk(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "step") })
		})
	}
}
