package credit

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"
)

var long = flag.Bool("long", false, "check the larger scopes, too")

var errStuck = errors.New("I4: stuck")

// explore visits all states of a flow, and returns how many there are and what is wrong with one.
func (f *flow) explore(most int) (states int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	first := f.start()
	// 128 bits of a state stand for it: that two of so few states have the same is out of the question.
	hash := func(n *net) xxh3.Uint128 { return xxh3.HashString128(n.key()) }
	seen := map[xxh3.Uint128]struct{}{hash(first): {}}
	todo := []*net{first}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if err := f.check(n); err != nil {
			return len(seen), err
		}
		done, err := f.final(n)
		if err != nil {
			return len(seen), err
		}
		next := f.moves(n)
		if len(next) == 0 && !done {
			return len(seen), errStuck
		}
		// No state comes back to a former one, since every step sends, takes or ends something; so where no state is
		// stuck all come to their end.
		for _, to := range next {
			k := hash(to)
			if _, known := seen[k]; known {
				continue
			}
			seen[k] = struct{}{}
			if len(seen) > most {
				return len(seen), fmt.Errorf("more than %d states: make the scope smaller", most)
			}
			todo = append(todo, to)
		}
	}
	return len(seen), nil
}

// scan has the tasks of a script, to outputs.
func scan(outputs []int, script ...[][]int) stage {
	return stage{tasks: len(script), outputs: outputs, script: script}
}

// to is the script of a task with one output.
func to(partitions ...int) [][]int { return [][]int{partitions} }

const one, two = 2 * unit, unit // sizes of batches of which a window holds one, or two

// plans are the scopes: every operator that reads several edges in an order of its own.
func plans() map[string]*flow {
	return map[string]*flow{
		// Two sides by hash, the build side first.
		"join": {size: one, stages: []stage{
			scan([]int{0}, to(0, 1), to(1, 0)), scan([]int{1}, to(0, 1), to(1, 0)),
			{tasks: 2, reads: inOrder, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 2}, {from: 1, to: 2}}},
		// Each of two consumers wants a batch of the one side and then one of the other, and gets them the other way round.
		"merge": {size: one, stages: []stage{
			scan([]int{0}, to(0, 0, 0, 1)), scan([]int{1}, to(1, 1, 1, 0)),
			{tasks: 2, reads: alternate, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 2}, {from: 1, to: 2}}},
		// Two joins in a row of which each task skips another one.
		"out of step": {size: one, large: true, stages: []stage{
			scan([]int{0}, to(0, 1, 0, 1), to(1)), scan([]int{1}, to(0, 1, 0, 1), to(1)),
			{tasks: 2, reads: disordered, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 2}, {from: 1, to: 2}}},
		"union": {size: two, large: true, stages: []stage{
			scan([]int{0}, to(0, 1)), scan([]int{1}, to(1, 0, 0)),
			{tasks: 2, reads: anyOrder, inputs: []int{0, 1}, outputs: []int{2}}, {tasks: 1, inputs: []int{2}},
		}, edges: []edgeOf{{from: 0, to: 2}, {from: 1, to: 2}, {from: 2, to: 3}}},
		"limit": {size: one, stages: []stage{
			scan([]int{0}, to(0, 0, 0), to(0, 0, 0), to(0, 0)),
			{tasks: 1, inputs: []int{0}, outputs: []int{1}, stop: 2}, {tasks: 1, inputs: []int{1}},
		}, edges: []edgeOf{{from: 0, to: 1}, {from: 1, to: 2}}},
		"3 to 3": {size: one, large: true, stages: []stage{
			scan([]int{0}, to(0, 1), to(1, 2), to(2, 0)), {tasks: 3, inputs: []int{0}},
		}, edges: []edgeOf{{from: 0, to: 1}}},
		// One stage feeds both sides of a join: the side that is read later is stored.
		"diamond": {size: one, stages: []stage{
			scan([]int{0, 1}, [][]int{{0, 0, 0, 1}, {0, 0, 0, 1}}, [][]int{{1, 0}, {1, 0}}),
			{tasks: 2, reads: inOrder, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 1, stored: true}, {from: 0, to: 1, stored: true}}},
		"narrow diamond": {size: one, stages: []stage{
			scan([]int{0, 1}, [][]int{{0, 0, 0}, {0, 0, 0}}), {tasks: 1, reads: inOrder, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 1, stored: true}, {from: 0, to: 1, stored: true}}},
		// A broadcast side and a hashed side.
		"broadcast": {size: one, stages: []stage{
			scan([]int{0}, to(toEach, toEach, toEach)), scan([]int{1}, to(0, 0, 1, 1)),
			{tasks: 2, reads: disordered, inputs: []int{0, 1}},
		}, edges: []edgeOf{{from: 0, to: 2, stored: true}, {from: 1, to: 2}}},
		// Several readers, at different distances from the join.
		"shared": {size: one, large: true, stages: []stage{
			scan([]int{0, 1}, [][]int{{0, 1}, {0, 1}}, [][]int{{1, 0}, {0, 0}}),
			{tasks: 2, inputs: []int{0}, outputs: []int{2}},
			{tasks: 2, reads: inOrder, inputs: []int{2, 1}},
		}, edges: []edgeOf{{from: 0, to: 1, stored: true}, {from: 0, to: 2, stored: true}, {from: 1, to: 2}}},
	}
}

// TestPlans: no plan gets stuck or loses a batch, whatever the order of events, and when a task dies at any moment.
func TestPlans(t *testing.T) {
	for name, f := range plans() {
		for _, kill := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/kill=%v", name, kill), func(t *testing.T) {
				most := 60_000
				f := *f
				f.kill = kill
				f.calm = !*long || kill || f.large
				if *long {
					most = 50_000_000
				}
				states, err := f.explore(most)
				require.NoError(t, err)
				t.Logf("%d states", states)
			})
		}
	}
}

// switchOff switches a counter-measure off for a test.
func switchOff(t *testing.T, h hazard) {
	t.Helper()
	off[h] = true
	t.Cleanup(func() { off[h] = false })
}

// stored makes every edge of a plan a streaming one.
func (f *flow) allStreaming() *flow {
	f.calm = true
	f.edges = append([]edgeOf(nil), f.edges...)
	for i := range f.edges {
		f.edges[i].stored = false
	}
	return f
}

// The hazards by their numbers in the project's notes. TestPlans and TestExhaustive have the same scopes with their
// counter-measures on.

func TestH1Diamond(t *testing.T) {
	_, err := plans()["narrow diamond"].allStreaming().explore(60_000)
	require.ErrorIs(t, err, errStuck)
}

func TestH3Merge(t *testing.T) {
	switchOff(t, disorder)
	for _, name := range []string{"merge", "out of step"} {
		f := plans()[name]
		f.calm = true
		_, err := f.explore(60_000)
		require.ErrorIs(t, err, errStuck, name)
	}
}

// A reader that leaves gives back what it holds.
func TestH4Limit(t *testing.T) {
	switchOff(t, closing)
	f := plans()["limit"]
	f.calm = true
	_, err := f.explore(60_000)
	require.ErrorContains(t, err, "I8")
}

// One slow partition does not get all of the memory.
func TestH6Skew(t *testing.T) {
	const limit = 64 * MinWindow
	// holds is what the busiest of four channels holds after a while, its reader taking as slowly as it can.
	holds := func() int64 {
		b := NewBudget(limit, limit)
		r := NewReceiver(b, 4)
		var tx Sender
		for range 200 {
			tx.Grant(r.Grant(0))
			for tx.CanSend(MinWindow) {
				_, err := r.Arrive(0, tx.Send(MinWindow), MinWindow)
				require.NoError(t, err)
			}
			r.Take(0, MinWindow)
		}
		require.NoError(t, r.Check())
		defer r.Close()
		return r.ch[0].holds()
	}
	require.LessOrEqual(t, holds(), int64(limit/4))
	switchOff(t, skew)
	require.Greater(t, holds(), int64(limit/2))
}

// END tells how much was sent, so that a channel that lost something cannot pass for a complete one.
func TestH7ShortChannel(t *testing.T) {
	end := func() error {
		r := NewReceiver(NewBudget(0, 1), 1)
		defer r.Close()
		_, err := r.Arrive(0, 0, unit)
		require.NoError(t, err)
		return r.End(0, 2, 2*unit)
	}
	require.ErrorIs(t, end(), ErrProtocol)
	switchOff(t, short)
	require.NoError(t, end())
}

// A broadcast side that is read later is stored; streaming, it would hold up the side that is read first.
func TestH8Broadcast(t *testing.T) {
	f := plans()["broadcast"].allStreaming()
	switchOff(t, disorder)
	_, err := f.explore(60_000)
	require.ErrorIs(t, err, errStuck)
}

func TestH12Oversize(t *testing.T) {
	f := plans()["join"]
	f.calm, f.size = true, 5*unit
	_, err := f.explore(60_000)
	require.NoError(t, err)
	switchOff(t, oversize)
	_, err = f.explore(60_000)
	require.ErrorIs(t, err, errStuck)
}

// A grant that comes late does not undo a newer one. Nothing is lost here, so nothing has to be said twice.
func TestH13StaleGrant(t *testing.T) {
	s := scope{producers: 1, partitions: 1, plan: []int64{unit, unit, 2 * unit}, reorder: true}
	_, err := s.visit(200_000)
	require.NoError(t, err)
	switchOff(t, stale)
	_, err = s.visit(200_000)
	require.ErrorIs(t, err, errStuck)
}

// Each channel has a reserve, although no memory is left.
func TestH14NoMemory(t *testing.T) {
	f := plans()["join"]
	f.calm, f.size = true, two
	_, err := f.explore(60_000)
	require.NoError(t, err)
	switchOff(t, starved)
	_, err = f.explore(60_000)
	require.Error(t, err) // I5, before anything is stuck
	require.ErrorContains(t, err, "I5")
}
