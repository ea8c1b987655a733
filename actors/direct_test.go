package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors/core"
)

// Actors that are called from tasks and actors on other nodes, straight.
var (
	turners  = NewActor("direct.turner", func(context.Context, None) (*turner, error) { return &turner{last: make(map[string]int)}, nil })
	turn     = Method(turners, "turn", (*turner).Turn)
	turnBig  = Method(turners, "big", (*turner).Big)
	turnRef  = Method(turners, "ref", (*turner).Ref)
	turnNap  = Method(turners, "nap", (*turner).Nap)
	turnTake = Method(turners, "take", (*turner).Take)

	// takeTurns calls actors in turn, some calls with a reference as argument, and gives how many went well.
	takeTurns = NewTask("direct.take_turns", func(ctx context.Context, in turns) (done int, err error) {
		who := in.Who + randomHex(4) // of this attempt
		ref, err := Put(ctx, From(ctx), note{who, 0})
		if err != nil {
			return 0, err
		}
		var refs []*Ref[int]
		seqs := make([]int, len(in.Actors))
		for i := range in.N {
			k := i % len(in.Actors)
			seqs[k]++
			arg := Val(note{who, seqs[k]})
			if i%17 == 16 {
				arg = ref // it goes by the head, in its turn
				seqs[k]--
			}
			refs = append(refs, turn.Call(ctx, in.Actors[k], arg))
		}
		for i, r := range refs {
			_, err := r.Get(ctx)
			r.Release()
			switch {
			case err == nil:
				done++
			case !errors.Is(err, ErrActorDead):
				return done, fmt.Errorf("call %d: %w", i, err)
			}
		}
		return done, nil
	}, Retries(-1))

	// directUses makes calls straight and uses their results in every way.
	directUses = NewTask("direct.uses", func(ctx context.Context, h *Handle[turner]) (None, error) {
		first, err := turn.Call(ctx, h, Val(note{"first", 1})).Get(ctx) // by the head: it tells where the actor lives
		if err != nil || first != 1 {
			return None{}, fmt.Errorf("first: %d, %w", first, err)
		}
		for i := range 50 { // as an argument, inside one, as a value that is kept, before and after it is there
			r := turn.Call(ctx, h, Val(note{"uses", i + 1}))
			if i%3 == 0 {
				if _, err := r.Get(ctx); err != nil {
					return None{}, err
				}
			}
			sq := square.Call(ctx, From(ctx), r)
			in := inside.Call(ctx, From(ctx), Val([]*Ref[int]{r, r}))
			if i%2 == 0 {
				r.Release()
			}
			a, err := sq.Get(ctx)
			b, berr := in.Get(ctx)
			if err := errors.Join(err, berr); err != nil || a != (i+1)*(i+1) || b != 2*(i+1) {
				return None{}, fmt.Errorf("call %d: %d, %d, %w", i, a, b, err)
			}
		}
		big, err := turnBig.Call(ctx, h, Val(1<<20)).Get(ctx)
		if err != nil || len(big) != 1<<20 {
			return None{}, fmt.Errorf("large: %d, %w", len(big), err)
		}
		turnBig.Call(ctx, h, Val(1<<20)).Release() // before it is there
		inner, err := turnRef.Call(ctx, h, Val(7)).Get(ctx)
		if err != nil {
			return None{}, err
		}
		if v, err := inner[0].Get(ctx); err != nil || v != 7 {
			return None{}, fmt.Errorf("reference: %d, %w", v, err)
		}
		nap := turnNap.Call(ctx, h, Val(time.Hour))
		behind := turn.Call(ctx, h, Val(note{"behind", 1}))
		behind.Cancel()
		if _, err := behind.Get(ctx); !errors.Is(err, context.Canceled) {
			return None{}, fmt.Errorf("cancelled while it waits: %w", err)
		}
		nap.Cancel()
		if _, err := nap.Get(ctx); !errors.Is(err, context.Canceled) {
			return None{}, fmt.Errorf("cancelled while it runs: %w", err)
		}
		return None{}, nil
	}, Retries(0))

	// directFences makes an actor and calls it straight and by the head in turn, while it is busy.
	directFences = NewTask("direct.fences", func(ctx context.Context, node NodeID) (None, error) {
		h, err := turners.Spawn(ctx, From(ctx), NoArg, OnNode(node))
		if err != nil {
			return None{}, err
		}
		for i := range 20 {
			if _, err := turn.Call(ctx, h, Val(note{"fences", 3*i + 1})).Get(ctx); err != nil {
				return None{}, err
			}
			ref, err := Put(ctx, From(ctx), note{"fences", 0})
			if err != nil {
				return None{}, err
			}
			nap := turnNap.Call(ctx, h, Val(5*time.Millisecond))
			second := turn.Call(ctx, h, Val(note{"fences", 3*i + 2}))
			read := turn.Call(ctx, h, ref) // by the head
			ref.Release()
			third := turn.Call(ctx, h, Val(note{"fences", 3*i + 3}))
			_, err = nap.Get(ctx)
			for k, r := range []*Ref[int]{second, read, third} {
				n, rerr := r.Get(ctx)
				if want := 3*i + max(2, k+1); n != want && rerr == nil {
					rerr = fmt.Errorf("call %d gives %d, not %d", 3*i+k+1, n, want)
				}
				err = errors.Join(err, rerr)
			}
			if err != nil {
				return None{}, err
			}
		}
		return None{}, nil
	}, Retries(0))

	// directWaits has a call with a large argument wait behind a fence that does not come back, and cancels it.
	directWaits = NewTask("direct.waits", func(ctx context.Context, h *Handle[turner]) (None, error) {
		if _, err := turn.Call(ctx, h, Val(note{"waits", 1})).Get(ctx); err != nil {
			return None{}, err
		}
		ref, err := Put(ctx, From(ctx), note{"waits", 0})
		if err != nil {
			return None{}, err
		}
		turnNap.Call(ctx, h, Val(time.Hour))
		turn.Call(ctx, h, ref) // by the head
		kept := func() int {
			rt := From(ctx).rt
			rt.mu.Lock()
			defer rt.mu.Unlock()
			return len(rt.kept)
		}
		before := kept()
		waits := turnTake.Call(ctx, h, Val(make([]byte, 1<<20)))
		if n := kept(); n != before+1 {
			return None{}, fmt.Errorf("%d values kept, not %d", n, before+1)
		}
		waits.Cancel()
		if _, err := waits.Get(ctx); !errors.Is(err, context.Canceled) {
			return None{}, fmt.Errorf("cancelled while it waits: %w", err)
		}
		if n := kept(); n != before {
			return None{}, fmt.Errorf("%d values kept, not %d", n, before)
		}
		return None{}, nil
	}, Retries(0))

	// directHands gives the result of a call that runs.
	directHands = NewTask("direct.hands", func(ctx context.Context, h *Handle[turner]) ([]*Ref[None], error) {
		if _, err := turn.Call(ctx, h, Val(note{"hands", 1})).Get(ctx); err != nil {
			return nil, err
		}
		return []*Ref[None]{turnNap.Call(ctx, h, Val(time.Hour))}, nil
	}, Retries(0))

	directNaps = NewTask("direct.naps", func(ctx context.Context, h *Handle[turner]) (None, error) {
		if _, err := turn.Call(ctx, h, Val(note{"naps", 1})).Get(ctx); err != nil {
			return None{}, err
		}
		_, err := turnNap.Call(ctx, h, Val(time.Hour)).Get(ctx)
		return None{}, err
	}, Retries(0))
)

// turner sees to it that the calls of each caller come in their order, each once.
type turner struct{ last map[string]int }

func (t *turner) Turn(_ context.Context, n note) (int, error) {
	if n.Seq == 0 { // has no place of its own
		return t.last[n.Who], nil
	}
	if n.Seq <= t.last[n.Who] {
		return 0, fmt.Errorf("%s calls %d after %d", n.Who, n.Seq, t.last[n.Who])
	}
	t.last[n.Who] = n.Seq
	return n.Seq, nil
}
func (t *turner) Big(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil }
func (t *turner) Ref(ctx context.Context, n int) ([]*Ref[int], error) {
	r, err := Put(ctx, From(ctx), n)
	return []*Ref[int]{r}, err
}
func (t *turner) Take(_ context.Context, data []byte) (int, error) { return len(data), nil }
func (t *turner) Nap(ctx context.Context, d time.Duration) (None, error) {
	select {
	case <-time.After(d):
		return None{}, nil
	case <-ctx.Done():
		return None{}, context.Cause(ctx)
	}
}

type turns struct {
	Who    string
	Actors []*Handle[turner]
	N      int
}

// Results of calls that went straight are references like others; calls are listed and cancelled like others.
func TestDirectCalls(t *testing.T) {
	for _, place := range []int{1, 2} { // the caller is on node 1
		t.Run(fmt.Sprint("actor on ", place), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2, nil, nil)
			cl := c.client()
			ctx := testContext(t)
			h, err := turners.Spawn(ctx, cl, NoArg, OnNode(c.nodes[place].ID()))
			require.NoError(t, err)
			get(t, directUses.Call(ctx, cl, Val(h), OnNode(c.nodes[1].ID())))

			naps := directNaps.Call(ctx, cl, Val(h), OnNode(c.nodes[1].ID()))
			var list []RunInfo
			eventually(t, func() bool {
				list = c.head.Tasks(ctx, 10)
				return len(list) == 2 && list[1].Name == "direct.turner.nap"
			}, "%v", &list)
			require.Equal(t, "RUNNING", list[1].State)
			require.Equal(t, c.nodes[place].ID(), list[1].Node)
			require.Equal(t, cl.Job(), list[1].Job)
			require.Equal(t, 1, c.head.Actors(ctx, 10)[0].Calls)
			naps.Cancel() // and with it the call
			_, err = naps.Get(ctx)
			require.ErrorIs(t, err, context.Canceled)
			eventually(t, func() bool { return len(c.head.Tasks(ctx, 10)) == 0 })
			require.Zero(t, c.head.Actors(ctx, 10)[0].Calls)
			runtime.KeepAlive(h) // an actor without a handle ends
		})
	}
}

// Each kind of message is lost and comes twice: every call is made once, in its turn.
func TestDirectFaults(t *testing.T) {
	for _, kind := range []string{"Where", "Call", "Answer", "Fence", "Fenced"} {
		for _, fault := range []Fault{{Kind: kind, Lose: 1, First: 1}, {Kind: kind, Repeat: 1}} {
			t.Run(fmt.Sprint(kind, " ", fault.Lose, fault.Repeat), func(t *testing.T) {
				t.Parallel()
				faults := NewFaults(1, fault)
				c := newCluster(t, 2, nil, func(cfg *Config) { cfg.Faults = faults })
				cl := c.client()
				get(t, directFences.Call(testContext(t), cl, Val(c.nodes[2].ID()), OnNode(c.nodes[1].ID())))
				require.Positive(t, faults.Hits(), "the fault did not happen")
			})
		}
	}
}

// An actor that is made again elsewhere is found again; the calls that it had fail, those that had not begun do not.
func TestDirectActorMoves(t *testing.T) {
	c := newCluster(t, 3, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	h, err := turners.Spawn(ctx, cl, NoArg, NearNode(c.nodes[2].ID()), Restarts(-1))
	require.NoError(t, err)
	for k := range 6 {
		run := takeTurns.Call(ctx, cl, Val(turns{fmt.Sprint(k), []*Handle[turner]{h}, 2000}), NearNode(c.nodes[1].ID()))
		switch k {
		case 2:
			c.die(c.nodes[2])
		case 4:
			h.Restart()
		}
		done := get(t, run)
		if k != 2 && k != 4 {
			require.Equal(t, 2000, done)
		}
	}
}

// A call that is cancelled while it waits in line leaves no argument in the store.
func TestDirectCancelFrees(t *testing.T) {
	faults := NewFaults(1, Fault{Kind: "Fenced", Lose: 1})
	c := newCluster(t, 2, nil, func(cfg *Config) { cfg.Faults = faults })
	cl := c.client()
	ctx := testContext(t)
	h, err := turners.Spawn(ctx, cl, NoArg, OnNode(c.nodes[2].ID()))
	require.NoError(t, err)
	get(t, directWaits.Call(ctx, cl, Val(h), OnNode(c.nodes[1].ID())))
}

// A call that went straight is cancelled by whoever has the reference of its result.
func TestDirectCancelFromElsewhere(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	h, err := turners.Spawn(ctx, cl, NoArg, OnNode(c.nodes[2].ID()))
	require.NoError(t, err)
	nap := get(t, directHands.Call(ctx, cl, Val(h), OnNode(c.nodes[1].ID())))[0]
	nap.Cancel()
	_, err = nap.Get(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

// What comes straight and is no call of an actor does not begin.
func TestOnlyCallsComeStraight(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	rt, cl := c.nodes[1].engine, c.client()
	const id = core.ID(7)
	rt.startCall(c.nodes[2].ID(), &core.Call{Spec: &core.Spec{
		ID: id, Job: core.JobID(cl.Job()), Kind: core.KindCreate, Results: 1, Func: "direct.turner", Actor: id, Opt: &taskDefaults,
	}})
	rt.mu.Lock()
	defer rt.mu.Unlock()
	require.NotContains(t, rt.instances, id)
	require.NotContains(t, rt.attempts, attemptKey{id, 0})
}

// Where an actor lives is known as long as there is a handle, the newest word of it once its node is heard of, and then forgotten.
func TestDirectWhere(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	n := c.nodes[1]
	d, s := n.engine.direct, n.engine.session(c.client().Job())
	const actor = core.ID(7)
	idle := func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.early) == 0 && d.r.Idle()
	}
	d.where(&core.Where{Actor: actor, Node: "late", Incarnation: 1})
	require.True(t, idle(), "nobody has a handle")
	e := s.learn(actor)
	d.where(&core.Where{Actor: actor, Node: "late", Incarnation: 1})
	d.where(&core.Where{Actor: actor, Node: "late", Incarnation: 2})
	d.mu.Lock()
	require.EqualValues(t, 2, d.early[actor].Incarnation)
	require.True(t, d.r.Idle())
	d.mu.Unlock()
	n.applyNodes(1<<40, []NodeInfo{c.head.Info(), n.Info(), {ID: "late", State: NodeAlive}})
	require.False(t, idle())
	d.drop(actor) // late word of an earlier handle
	require.False(t, idle(), "it has a handle")
	e.drop()
	require.True(t, idle())
}

// A node that is dead gets no link again, not from what is still sent to it and not when the head has forgotten it.
func TestNoLinkToTheDead(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	n, dead := c.nodes[1], c.nodes[2].ID()
	version := uint64(1) << 40 // later than whatever the head says meanwhile
	state := func(id NodeID, s NodeState) {
		version++
		n.applyNodes(version, []NodeInfo{c.head.Info(), n.Info(), {ID: id, State: s}})
	}
	linked := func(id NodeID) bool {
		n.links.mu.Lock()
		defer n.links.mu.Unlock()
		return n.links.peers[id] != nil
	}
	n.links.send(dead, &core.Free{})
	require.True(t, linked(dead))
	state(dead, NodeAlive)
	require.True(t, linked(dead))
	state(dead, NodeDead)
	require.False(t, linked(dead))
	n.engine.direct.reply(dead, &core.Answer{ID: 1})
	require.False(t, linked(dead), "it is known to be dead")
	state("another", NodeAlive)
	n.engine.direct.reply(dead, &core.Answer{ID: 1})
	require.False(t, linked(dead), "it was forgotten by the head")

	n.links.send("unheard", &core.Free{})
	require.True(t, linked("unheard"))
	state("unheard", NodeDead)
	require.False(t, linked("unheard"), "it was dead when it was first heard of")
}

// A job that ends, and a node that dies, while calls are on their way leave nothing.
func TestDirectEnds(t *testing.T) {
	c := newCluster(t, 3, nil, nil)
	ctx := testContext(t)
	for k := range 4 {
		cl, err := c.head.NewClient(ctx, JobSpec{})
		require.NoError(t, err)
		var hs []*Handle[turner]
		for range 4 {
			h, err := turners.Spawn(ctx, cl, NoArg, Spread())
			require.NoError(t, err)
			hs = append(hs, h)
		}
		get(t, takeTurns.Call(ctx, cl, Val(turns{"warm", hs, 100}), NearNode(c.nodes[1].ID())))
		takeTurns.Call(ctx, cl, Val(turns{"cut", hs, 20_000}), NearNode(c.nodes[1].ID()))
		time.Sleep(time.Duration(k) * 3 * time.Millisecond)
		if k == 3 {
			c.die(c.nodes[1])
		}
		require.NoError(t, cl.Close(nil))
		c.clean()
	}
}
