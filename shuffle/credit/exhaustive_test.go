package credit

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The small-scope check: every interleaving of senders, data channels, a control path that loses, repeats and reorders,
// and consumers that may close, for a few producers and partitions. Each state is visited once.

const unit = MinWindow / 2

// frame is what travels with the data: in order, not lost.
type frame struct {
	end   bool
	fail  bool
	seq   uint64
	bytes int64
}

// link is one channel: producer to partition.
type link struct {
	tx    Sender
	sent  int // batches of the plan that were sent
	data  [4]frame
	nData int
	// Grants under way: the newest two, in any order of delivery.
	grants [2]Grant
	closed bool // CLOSED is under way
	taken  int  // batches that the consumer took
}

// world is a state. It holds no pointers but the receivers', which clone copies.
type world struct {
	restarted bool
	budget    Budget
	rx        []Receiver
	links     []link // producer*partitions + partition
	queue     [][]item
	closed    []bool
	failed    []bool
}

type item struct {
	ch  int
	n   int64
	old bool // of the first attempt
}

// scope is what one check covers.
type scope struct {
	producers, partitions int
	limit                 int64
	plan                  []int64 // sizes of the batches of every channel
	lossy                 bool    // grants may be lost, repeated or overtaken
	reorder               bool    // they may be overtaken, and each comes once: nobody has to say one twice
	close, fail           bool    // consumers may close, producers may fail
	restart               bool    // at any moment a second attempt may begin: see restart_test.go
	confused              bool    // it has the ids of the first one
}

func (w *world) clone() *world {
	c := &world{restarted: w.restarted, budget: w.budget}
	c.rx = make([]Receiver, len(w.rx))
	for i := range w.rx {
		c.rx[i] = w.rx[i]
		c.rx[i].budget = &c.budget
		c.rx[i].ch = append([]channel(nil), w.rx[i].ch...)
	}
	c.links = append([]link(nil), w.links...)
	for _, q := range w.queue {
		c.queue = append(c.queue, append([]item(nil), q...))
	}
	c.closed = append([]bool(nil), w.closed...)
	c.failed = append([]bool(nil), w.failed...)
	return c
}

// key is all of a state, in bytes.
func (w *world) key() string {
	var k []byte
	num := func(vs ...int64) {
		for _, v := range vs {
			k = binary.AppendVarint(k, v)
		}
	}
	flag := func(b bool) {
		if b {
			k = append(k, 1)
		} else {
			k = append(k, 0)
		}
	}
	flag(w.restarted)
	num(w.budget.held)
	for p := range w.rx {
		flag(w.closed[p])
		flag(w.failed[p])
		num(int64(len(w.queue[p])))
		for _, it := range w.queue[p] {
			num(int64(it.ch), it.n)
			flag(it.old)
		}
		for _, c := range w.rx[p].ch {
			num(c.granted, c.received, c.consumed, c.told, int64(c.batches), int64(c.end))
		}
	}
	for i := range w.links {
		l := &w.links[i]
		num(l.tx.granted, l.tx.consumed, l.tx.window, l.tx.sent, int64(l.tx.batches), int64(l.tx.end))
		num(int64(l.sent), int64(l.taken), int64(l.nData))
		for _, f := range l.data[:l.nData] {
			flag(f.end)
			flag(f.fail)
			num(int64(f.seq), f.bytes)
		}
		for _, g := range l.grants {
			num(g.Total, g.Consumed, g.Window)
		}
		flag(l.closed)
	}
	return string(k)
}

func (s scope) start() *world {
	w := &world{budget: *NewBudget(s.limit, 1<<20)}
	w.rx = make([]Receiver, s.partitions)
	for p := range s.first() {
		w.rx[p] = *NewReceiver(&w.budget, s.producers)
	}
	w.links = make([]link, s.producers*s.partitions)
	w.queue = make([][]item, s.partitions)
	w.closed, w.failed = make([]bool, s.partitions), make([]bool, s.partitions)
	for i := range w.links {
		if i%s.partitions < s.first() {
			w.tell(i, s)
		}
	}
	return w
}

// tell puts the current grant of a link under way. With a lossy path an older one may overtake it or be replaced.
func (w *world) tell(i int, s scope) {
	l := &w.links[i]
	if s.reorder && l.grants[1] != (Grant{}) {
		l.tx.Grant(l.grants[1])
	}
	l.grants[1] = l.grants[0]
	l.grants[0] = w.rx[i%s.partitions].Grant(i / s.partitions)
	if !s.lossy && !s.reorder {
		l.tx.Grant(l.grants[0])
		l.grants = [2]Grant{}
	}
}

// steps returns every state that can follow, by the name of the step.
func (s scope) steps(w *world) map[string]func() *world {
	next := map[string]func() *world{}
	try := func(name string, f func(*world)) {
		next[name] = func() *world {
			c := w.clone()
			f(c)
			return c
		}
	}
	for i := range w.links {
		l := &w.links[i]
		prod, part := i/s.partitions, i%s.partitions
		rx := &w.rx[part]
		if !w.restarted && part >= s.first() {
			continue
		}
		if l.tx.State() == Open {
			switch {
			case l.sent == len(s.plan):
				try(fmt.Sprintf("end %d", i), func(c *world) {
					n, bytes, _ := c.links[i].tx.Finish(Ended)
					c.links[i].push(frame{end: true, seq: n, bytes: bytes})
				})
			case l.tx.CanSend(s.plan[l.sent]) && l.nData < len(l.data)-1:
				try(fmt.Sprintf("send %d", i), func(c *world) {
					l := &c.links[i]
					n := s.plan[l.sent]
					l.sent++
					l.push(frame{seq: l.tx.Send(n), bytes: n})
				})
			}
			if s.fail && part < s.first() {
				try(fmt.Sprintf("fail %d", i), func(c *world) {
					c.links[i].tx.Finish(Failed)
					c.links[i].push(frame{fail: true})
				})
			}
		}
		for g := range l.grants {
			if l.grants[g] != (Grant{}) {
				try(fmt.Sprintf("grant %d/%d", i, g), func(c *world) {
					c.links[i].tx.Grant(c.links[i].grants[g])
					if s.reorder {
						c.links[i].grants[g] = Grant{}
					}
				})
				if s.lossy {
					try(fmt.Sprintf("lose %d/%d", i, g), func(c *world) { c.links[i].grants[g] = Grant{} })
				}
			}
		}
		if s.lossy && l.grants[0] == (Grant{}) && rx.State(prod) == Open && l.tx.State() == Open {
			// Level-triggered: what was lost can be said again.
			try(fmt.Sprintf("resend %d", i), func(c *world) { c.tell(i, s) })
		}
		if l.closed {
			try(fmt.Sprintf("closed %d", i), func(c *world) {
				c.links[i].closed = false
				c.links[i].tx.Finish(Closed)
			})
		}
		if l.nData > 0 {
			try(fmt.Sprintf("arrive %d", i), func(c *world) { c.arrive(i, s) })
		}
	}
	for p := range w.rx {
		if w.closed[p] || w.failed[p] {
			continue
		}
		if len(w.queue[p]) > 0 {
			try(fmt.Sprintf("take %d", p), func(c *world) {
				it := c.queue[p][0]
				c.queue[p] = c.queue[p][1:]
				c.links[it.ch*s.partitions+p].taken++
				if _, tell := c.rx[p].Take(it.ch, it.n); tell {
					c.tell(it.ch*s.partitions+p, s)
				}
			})
		}
		if s.close && !w.rx[p].Done() && p < s.first() {
			try(fmt.Sprintf("close %d", p), func(c *world) {
				c.closed[p] = true
				c.queue[p] = nil
				for _, ch := range c.rx[p].Close() {
					c.links[ch*s.partitions+p].closed = true
				}
			})
		}
	}
	s.restarts(w, try)
	return next
}

func (l *link) push(f frame) {
	l.data[l.nData] = f
	l.nData++
}

func (w *world) arrive(i int, s scope) {
	l := &w.links[i]
	f := l.data[0]
	copy(l.data[:], l.data[1:])
	l.nData--
	l.data[l.nData] = frame{}
	prod, part := i/s.partitions, i%s.partitions
	old := part < s.first()
	if s.confused && w.restarted && old {
		part += s.first()
	}
	rx := &w.rx[part]
	switch {
	case f.fail:
		if rx.Fail(prod, "told to") {
			w.failed[part] = true
			w.queue[part] = nil
			for _, ch := range rx.Close() {
				w.links[ch*s.partitions+part].closed = true
			}
		}
	case f.end:
		if err := rx.End(prod, f.seq, f.bytes); err != nil {
			panic(err)
		}
	default:
		ok, err := rx.Arrive(prod, f.seq, f.bytes)
		if err != nil {
			panic(err)
		}
		if ok {
			w.queue[part] = append(w.queue[part], item{prod, f.bytes, old})
		}
	}
}

// check returns what is wrong with a state.
func (s scope) check(w *world) error {
	var holds int64
	for p := range w.rx {
		if err := w.rx[p].Check(); err != nil {
			return err
		}
		holds += w.rx[p].Holds()
		var queued int64
		for _, it := range w.queue[p] {
			queued += it.n
			if it.old && p >= s.first() {
				return fmt.Errorf("I10: the second attempt reads a batch of the first in partition %d", p)
			}
		}
		if queued != w.rx[p].Queued() {
			return fmt.Errorf("I1: %d bytes in queue %d, counted %d", queued, p, w.rx[p].Queued())
		}
	}
	if holds != w.budget.held {
		return fmt.Errorf("I12: channels hold %d, the budget says %d", holds, w.budget.held)
	}
	var largest int64
	for _, n := range s.plan {
		largest = max(largest, n)
	}
	channels := int64(len(w.links))
	if bound := s.limit + channels*(MinWindow+largest); w.budget.held > bound {
		return fmt.Errorf("I3: %d bytes held, at most %d allowed", w.budget.held, bound)
	}
	for i := range w.links {
		l := &w.links[i]
		if !w.restarted && i%s.partitions >= s.first() {
			continue
		}
		c := &w.rx[i%s.partitions].ch[i/s.partitions]
		if l.tx.granted > c.granted && c.end == Open {
			return fmt.Errorf("I2: sender %d was granted %d of %d", i, l.tx.granted, c.granted)
		}
	}
	return nil
}

// final says whether everything ended well, and the error if it ended badly.
func (s scope) final(w *world) (bool, error) {
	for i := range w.links {
		l := &w.links[i]
		if !w.restarted && i%s.partitions >= s.first() {
			continue
		}
		if l.tx.State() == Open || l.nData > 0 {
			return false, nil
		}
	}
	for p := range w.rx {
		if !w.rx[p].Done() || len(w.queue[p]) > 0 {
			return false, nil
		}
		if w.closed[p] || w.failed[p] || p >= s.first() && !w.restarted {
			continue
		}
		for prod := range s.producers {
			if got := w.links[prod*s.partitions+p].taken; got != len(s.plan) {
				return false, fmt.Errorf("I11: partition %d took %d of %d batches of producer %d", p, got, len(s.plan), prod)
			}
		}
	}
	if w.budget.held != 0 || w.budget.channels != 0 {
		return false, fmt.Errorf("I8: %d bytes and %d channels left at the end", w.budget.held, w.budget.channels)
	}
	return true, nil
}

// visit visits all states, and returns how many there are and what is wrong with one.
func (s scope) visit(most int) (states int, err error) {
	first := s.start()
	seen := map[string]int32{first.key(): 0}
	worlds := []*world{first}
	var back [][]int32 // predecessors
	var ends []int32
	back = append(back, nil)
	for at := 0; at < len(worlds); at++ {
		w := worlds[at]
		worlds[at] = nil
		if err := s.check(w); err != nil {
			return len(worlds), err
		}
		done, err := s.final(w)
		if err != nil {
			return len(worlds), err
		}
		if done {
			ends = append(ends, int32(at))
		}
		steps := s.steps(w)
		if len(steps) == 0 && !done {
			return len(worlds), errStuck
		}
		for _, step := range steps {
			n := step()
			k := n.key()
			to, known := seen[k]
			if !known {
				to = int32(len(worlds))
				seen[k] = to
				worlds = append(worlds, n)
				back = append(back, nil)
				if len(worlds) > most {
					return len(worlds), fmt.Errorf("more than %d states: make the scope smaller", most)
				}
			}
			back[to] = append(back[to], int32(at))
		}
	}
	// I4, stronger: from every state there is a way to a good end (the lossy path could go round in circles for ever).
	good := make([]bool, len(worlds))
	count := 0
	for len(ends) > 0 {
		at := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		if good[at] {
			continue
		}
		good[at] = true
		count++
		ends = append(ends, back[at]...)
	}
	if count < len(worlds) {
		return len(worlds), fmt.Errorf("%w: from %d of %d states no end can be reached", errStuck, len(worlds)-count, len(worlds))
	}
	return count, nil
}

func TestExhaustive(t *testing.T) {
	for name, s := range map[string]scope{
		"1x1":          {producers: 1, partitions: 1, plan: []int64{unit, 2 * unit, unit}, close: true, fail: true, lossy: true},
		"1x1 oversize": {producers: 1, partitions: 1, plan: []int64{unit, 5 * unit, 3 * unit}, close: true, fail: true, lossy: true},
		"1x1 wide":     {producers: 1, partitions: 1, limit: 8 * unit, plan: []int64{unit, 5 * unit, 3 * unit}, close: true, fail: true, lossy: true},
		"2x1":          {producers: 2, partitions: 1, plan: []int64{3 * unit, unit}, close: true, fail: true},
		"2x1 lossy":    {producers: 2, partitions: 1, plan: []int64{3 * unit, unit}, lossy: true},
		"1x2 close":    {producers: 1, partitions: 2, plan: []int64{2 * unit, 3 * unit}, close: true, fail: true},
		"2x2":          {producers: 2, partitions: 2, plan: []int64{3 * unit}},
	} {
		t.Run(name, func(t *testing.T) {
			states, err := s.visit(200_000)
			require.NoError(t, err)
			t.Logf("%d states", states)
		})
	}
}

// Random walks through scopes too large to exhaust: the invariants hold at every step, and once no fault happens any
// more everything comes to an end.
func TestRandomWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scope{
			producers:  rapid.IntRange(1, 4).Draw(t, "producers"),
			partitions: rapid.IntRange(1, 4).Draw(t, "partitions"),
			limit:      rapid.SampledFrom([]int64{0, 3 * MinWindow, 20 * MinWindow, 1 << 20}).Draw(t, "limit"),
			plan:       rapid.SliceOfN(rapid.SampledFrom([]int64{1, unit, 2 * unit, 3 * unit, 9 * unit}), 0, 8).Draw(t, "plan"),
			lossy:      rapid.Bool().Draw(t, "lossy"),
			close:      rapid.Bool().Draw(t, "close"),
			fail:       rapid.Bool().Draw(t, "fail"),
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		calm := rapid.IntRange(0, 200).Draw(t, "calm after")
		w := s.start()
		for n := 0; ; n++ {
			if err := s.check(w); err != nil {
				t.Fatal(err)
			}
			done, err := s.final(w)
			if err != nil {
				t.Fatal(err)
			}
			if done {
				return
			}
			if n == calm {
				s.close, s.fail = false, false
			}
			steps := s.steps(w)
			names := slices.Sorted(maps.Keys(steps))
			if n >= calm {
				names = slices.DeleteFunc(names, func(s string) bool { return strings.HasPrefix(s, "lose") })
			}
			if len(names) == 0 || n > 20_000 {
				t.Fatalf("stuck after %d steps", n)
			}
			w = steps[names[r.IntN(len(names))]]()
		}
	})
}
