package credit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A second attempt in the small-scope check. At any moment the readers of the first one are told to end and those of the second
// begin, while batches, ends, grants and CLOSED of the first are still under way, and its producers may not have heard of it. The
// second attempt has queues and channels of its own, the second half of the partitions, and shares the memory. Whatever
// arrives late must change nothing: the second attempt reads its own batches, all of them, and no memory is left at the end.

// first is the number of partitions of the first attempt.
func (s scope) first() int {
	if s.restart {
		return s.partitions / 2
	}
	return s.partitions
}

// restarts tries what a restart adds.
func (s scope) restarts(w *world, try func(string, func(*world))) {
	if !s.restart {
		return
	}
	if !w.restarted {
		try("restart", func(c *world) { c.restart(s) })
		return
	}
	for i := range w.links {
		if l := &w.links[i]; i%s.partitions < s.first() && (l.nData > 0 || l.tx.State() == Open) {
			// The producer of the first attempt is gone, and what was under way from it with it.
			try(fmt.Sprintf("cut %d", i), func(c *world) {
				l := &c.links[i]
				l.tx.Finish(Failed)
				l.data, l.nData, l.closed, l.grants = [4]frame{}, 0, false, [2]Grant{}
			})
		}
	}
}

// restart ends the first attempt at its readers and begins the second one.
func (w *world) restart(s scope) {
	w.restarted = true
	for p := range s.first() {
		w.queue[p] = nil
		w.closed[p] = true
		for _, ch := range w.rx[p].Close() {
			w.links[ch*s.partitions+p].closed = true
		}
	}
	for p := s.first(); p < s.partitions; p++ {
		w.rx[p] = *NewReceiver(&w.budget, s.producers)
		for prod := range s.producers {
			w.tell(prod*s.partitions+p, s)
		}
	}
}

func restartScopes() map[string]scope {
	return map[string]scope{
		"1 to 1":       {producers: 1, partitions: 2, plan: []int64{unit, 3 * unit, unit}, restart: true, close: true, fail: true},
		"1 to 1 lossy": {producers: 1, partitions: 2, plan: []int64{3 * unit}, restart: true, lossy: true},
	}
}

func TestRestart(t *testing.T) {
	scopes := restartScopes()
	if *long {
		scopes["1 to 1, two batches, lossy"] = scope{producers: 1, partitions: 2, plan: []int64{unit, 3 * unit}, restart: true, lossy: true}
		scopes["1 to 1, closing, lossy"] = scope{producers: 1, partitions: 2, plan: []int64{3 * unit}, restart: true, lossy: true, close: true, fail: true}
		scopes["2 to 1"] = scope{producers: 2, partitions: 2, plan: []int64{3 * unit}, restart: true}
		scopes["2 to 1, failing"] = scope{producers: 2, partitions: 2, plan: []int64{3 * unit}, restart: true, fail: true}
		scopes["1 to 2"] = scope{producers: 1, partitions: 4, plan: []int64{3 * unit}, restart: true}
	}
	for name, s := range scopes {
		t.Run(name, func(t *testing.T) {
			states, err := s.visit(2_000_000)
			require.NoError(t, err)
			t.Logf("%d states", states)
		})
	}
}

// Were the second attempt's channels those of the first, it would read what was meant for that.
func TestH7LateComer(t *testing.T) {
	s := restartScopes()["1 to 1"]
	s.confused = true
	_, err := s.visit(200_000)
	require.ErrorContains(t, err, "I10")
}
