package route

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"manta/actors/core"
)

var long = flag.Bool("long", false, "look deeper")

var scripts = map[string][2][]string{
	"plain":     {{"plain", "plain", "plain"}, {"plain"}},
	"switching": {{"plain", "head", "plain"}, {"plain", "head"}},
	"again":     {{"plain", "again", "plain"}, {"plain"}},
	"cancelled": {{"plain", "plain", "cancel", "head"}, {"plain", "cancel"}},
}

// key describes a world, so that no two that differ have the same: core and router are functions of what they were told.
func (w *world) key() string {
	var b strings.Builder
	fmt.Fprint(&b, w.made, w.dead, w.known, w.killed, w.log, w.begun, w.ends, w.stopped)
	for _, key := range slices.SortedFunc(maps.Keys(w.ways), func(a, b [2]core.NodeID) int { return strings.Compare(string(a[0]+a[1]), string(b[0]+b[1])) }) {
		fmt.Fprint(&b, "|", key)
		for _, m := range w.ways[key] {
			b.WriteString(text(m))
		}
	}
	for _, n := range []core.NodeID{"a", "b"} {
		if l := w.lives[n]; l != nil {
			fmt.Fprint(&b, "+", n, *l)
		}
	}
	for _, k := range w.r.sorted() {
		fmt.Fprint(&b, "-", k.spec.ID, k.way, k.at, k.seq > k.from.known, k.from.fence != 0, k.from.last == k, k.canceled, len(k.from.back))
	}
	for _, a := range w.r.actors {
		fmt.Fprint(&b, a.at, a.pinned)
	}
	return b.String()
}

// All that can happen to the calls of two callers of an actor that is restarted, moves and dies with its node, to the depth that fits:
// each begins at most once and in its turn, each ends once, and nothing is left.
func TestScopes(t *testing.T) {
	deepest := 7
	if *long {
		deepest = 11
	}
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := func(path []step) *world {
				w := newWorld(t, scripts[name], 2, true)
				for _, s := range path {
					w.do(s)
				}
				return w
			}
			seen := map[[32]byte]bool{}
			level := [][]step{nil}
			for d := 0; len(level) > 0 && d <= deepest; d++ {
				var next [][]step
				for _, path := range level {
					w := after(path)
					steps := w.steps()
					w.rest()
					if d == deepest {
						continue
					}
					for _, s := range steps {
						w := after(path)
						w.do(s)
						if key := sha256.Sum256([]byte(w.key())); !seen[key] {
							seen[key] = true
							next = append(next, append(slices.Clone(path), s))
						}
					}
				}
				level = next
			}
			t.Logf("%d states", len(seen))
		})
	}
}

// Long scripts, at random.
func TestWalks(t *testing.T) {
	seeds := uint64(3000)
	if *long {
		seeds = 100_000
	}
	straight := 0
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		var script [2][]string
		for i := range script {
			for range 1 + rng.IntN(12) {
				script[i] = append(script[i], []string{"plain", "plain", "plain", "plain", "head", "again", "cancel"}[rng.IntN(7)])
			}
			if script[i][0] == "cancel" {
				script[i][0] = "plain"
			}
		}
		w := newWorld(t, script, rng.IntN(3), seed%2 == 0)
		w.trace = append(w.trace, fmt.Sprint("seed ", seed, script))
		for {
			steps := w.steps()
			if rng.IntN(20) > 0 {
				steps = slices.DeleteFunc(steps, func(s step) bool { return s.kind == "restart" || s.kind == "crash" })
			}
			if len(steps) == 0 {
				break
			}
			w.do(steps[rng.IntN(len(steps))])
		}
		w.rest()
		for _, how := range w.ends {
			if how == "straight" {
				straight++
			}
		}
	}
	if straight < int(seeds) {
		t.Fatalf("only %d calls went straight", straight)
	}
	t.Logf("%d calls went straight", straight)
}

// The calls of a task are found without a look at those of others, and in whatever order they end.
func TestChildren(t *testing.T) {
	r := New()
	actor, parents, each := core.ID(1), 5, 40
	r.Where(actor, "a", 0)
	left := map[core.ID][]core.ID{}
	next := core.ID(100)
	for range each {
		for p := range parents { // 0 is the driver, which nobody cancels
			r.Call(&core.Spec{ID: next, Job: worldJob, Kind: core.KindCall, Results: 1, Actor: actor, Parent: core.ID(p)}, true)
			left[core.ID(p)] = append(left[core.ID(p)], next)
			next++
		}
	}
	if got := r.Children(0); got != nil {
		t.Fatalf("the driver's: %v", got)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range each {
		for p := range core.ID(parents) {
			if got := r.Children(p); p != 0 && !slices.Equal(got, left[p]) {
				t.Fatalf("of %d: %v, not %v", p, got, left[p])
			}
			k := rng.IntN(len(left[p]))
			if !r.Answered(left[p][k], "a") {
				t.Fatal("not asked")
			}
			left[p] = slices.Delete(left[p], k, k+1)
		}
	}
	r.Drop(actor)
	if !r.Idle() {
		t.Fatalf("left: %+v", r)
	}
}
