package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"manta/planner/dist"
	"manta/shuffle"
	"manta/shuffle/credit"
)

// choice is an edge's exchange mode and why it has it; no reason where the user asked for it.
type choice struct {
	mode shuffle.Mode
	why  string
}

func (c choice) String() string {
	if c.why == "" {
		return string(c.mode)
	}
	return fmt.Sprintf("%s (%s)", c.mode, c.why)
}

// surroundings are what the choice of modes depends on besides the edge.
type surroundings struct {
	nodes    int
	stores   int64 // bytes that the stores of all nodes may hold
	exchange int64 // bytes of exchange memory of the smallest node
}

// choose gives an edge of the query's plan its mode. It is chosen once for all attempts that have the plan.
func (r *run) choose(e *dist.Edge) choice {
	c, ok := r.query.modes[e]
	if !ok {
		c = r.surroundings().choose(e, r.mode)
		if r.query.modes == nil {
			r.query.modes = map[*dist.Edge]choice{}
		}
		r.query.modes[e] = c
	}
	return c
}

func (r *run) surroundings() surroundings {
	s := surroundings{nodes: len(r.nodes)}
	for i, n := range r.nodes {
		s.stores += n.MemoryBytes / 100 * storeShare
		if memory := n.MemoryBytes / 100 * exchangeShare; i == 0 || memory < s.exchange {
			s.exchange = memory
		}
	}
	return s
}

// choose gives an edge its mode. Rows for the client always stream. An edge that must take rows which nobody reads yet
// never streams: it is stored, and what is stored can spill. Else auto takes the mode whose work is estimated to be least.
// That a node may be lost does not count: stored edges then save work, but few queries lose a node. Concat has no place in
// auto: it holds all of a task's output in memory.
func (s surroundings) choose(e *dist.Edge, asked shuffle.Mode) choice {
	switch {
	case e.To == nil:
		return choice{mode: shuffle.Streaming}
	case asked != Auto && asked != shuffle.Streaming:
		return choice{mode: asked}
	case asked == shuffle.Streaming && e.Waits():
		return choice{shuffle.ObjectStore, waitsWhy(e)}
	case asked == shuffle.Streaming:
		return choice{mode: asked}
	}
	modes := []shuffle.Mode{shuffle.Streaming, shuffle.ObjectStore, shuffle.Disk}
	why := ""
	switch {
	case e.Waits():
		modes, why = modes[1:], waitsWhy(e)+", "
	case s.reserve(e) > s.exchange/2:
		modes, why = modes[1:], fmt.Sprintf("%d channels are too many for the memory of exchanges, ", e.From.Tasks*e.Readers())
	}
	slices.SortStableFunc(modes, func(a, b shuffle.Mode) int { return cmp.Compare(s.work(e, a), s.work(e, b)) })
	return choice{modes[0], fmt.Sprintf("%s~%v, %s ~%v", why, round(s.work(e, modes[0])), modes[1], round(s.work(e, modes[1])))}
}

// waitsWhy says why an edge must take rows that nobody reads yet.
func waitsWhy(e *dist.Edge) string {
	if n := len(e.From.Outputs); n > 1 {
		return fmt.Sprintf("stage %d feeds %d edges", e.From.ID, n)
	}
	return fmt.Sprintf("%d tasks read all of it", e.Readers())
}

// reserve is the memory that the channels of a streaming edge hold on a node at least.
func (s surroundings) reserve(e *dist.Edge) int64 {
	return int64(e.From.Tasks) * int64(e.Readers()) / int64(max(s.nodes, 1)) * credit.MinWindow
}

// costs are what a mode costs for each channel, and for each byte. They were measured with bench shuffle on two cores,
// 64 to 64 tasks with next to no rows and 4 to 4 with many; what counts is how they compare.
var costs = map[shuffle.Mode]struct {
	channel time.Duration
	perGiB  time.Duration
}{
	shuffle.Streaming:   {33 * time.Microsecond, 1400 * time.Millisecond},
	shuffle.ObjectStore: {150 * time.Microsecond, 1700 * time.Millisecond},
	// Readers start when the last producer has ended, so nothing overlaps.
	shuffle.Disk: {107 * time.Microsecond, 2400 * time.Millisecond},
}

// spillPerGiB is what it costs more to put into the object store what does not fit there.
const spillPerGiB = 2500 * time.Millisecond

// work estimates what an edge takes in a mode.
func (s surroundings) work(e *dist.Edge, m shuffle.Mode) time.Duration {
	c := costs[m]
	channels := float64(e.From.Tasks) * float64(e.Readers())
	sent, stored := e.Bytes(), e.Bytes() // a broadcast is stored once and sent to each
	if e.Kind == dist.Broadcast {
		sent *= float64(e.Readers())
	}
	w := float64(c.channel)*channels + float64(c.perGiB)*sent/(1<<30)
	// Half of the stores, since other edges and queries have a part in them.
	if over := stored - float64(s.stores)/2; m == shuffle.ObjectStore && over > 0 {
		w += float64(spillPerGiB) * over / (1 << 30)
	}
	return time.Duration(min(w, float64(1<<62)))
}

// round is a duration for a reader: two digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 100 {
		unit *= 10
	}
	return d.Round(max(unit, 10*time.Microsecond))
}
