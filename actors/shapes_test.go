package actors

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Shapes of programs in which systems of this kind are known to have leaked, hung, lost or doubled something.

var (
	shapeEcho = NewTask("shape.echo", func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
	shapeHold = NewActor("shape.holder", func(_ context.Context, refs []*Ref[[]byte]) (*shapeHolder, error) {
		return &shapeHolder{refs: refs}, nil
	})
	shapeDrop = Method(shapeHold, "drop", (*shapeHolder).Drop)
	shapePut  = NewTask("shape.put", func(ctx context.Context, n int) (*Ref[[]byte], error) {
		return Put(ctx, From(ctx), make([]byte, n))
	}, Retries(0))
	shapeRuns  atomic.Int64
	shapeMake  = NewTask("shape.make", func(_ context.Context, n int) ([]byte, error) { shapeRuns.Add(1); return make([]byte, n), nil })
	shapeItems = NewGenerator("shape.items", func(_ context.Context, n int, yield func([]byte) error) error {
		for range n {
			if err := yield(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	})
	shapeChildren atomic.Int64
	shapeForever  = NewTask("shape.forever", func(ctx context.Context, _ None) (None, error) {
		shapeChildren.Add(1)
		defer shapeChildren.Add(-1)
		<-ctx.Done()
		return None{}, context.Cause(ctx)
	})
	shapeParent = NewTask("shape.parent", func(ctx context.Context, _ None) (None, error) {
		shapeForever.Call(ctx, From(ctx), NoArg)
		for shapeChildren.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		return None{}, errOdd
	})
)

type shapeHolder struct{ refs []*Ref[[]byte] }

func (h *shapeHolder) Drop(context.Context, None) (None, error) { h.refs = nil; return None{}, nil }

// objects counts the values in all stores of live nodes, after a collection.
func (c *cluster) objects() (n int) {
	runtime.GC()
	for _, node := range c.nodes {
		if node.ctx.Err() == nil {
			n += int(node.store.Stats().Objects)
		}
	}
	return n
}

func (c *cluster) emptied() {
	c.t.Helper()
	eventually(c.t, func() bool { return c.objects() == 0 }, "values are left in stores")
}

// die ends a node as if its process were gone: it says nothing any more.
func (c *cluster) die(n *Node) {
	c.hub.mu.Lock()
	delete(c.hub.nodes, n.id)
	delete(c.hub.links, n.id)
	c.hub.mu.Unlock()
	n.fail(errors.New("killed"))
	n.server.Stop()
	c.head.head.leave(n.id, "killed")
}

// A loop that makes values and rebinds the names keeps a few, though nothing is released.
func TestShapeLoopDoesNotGrow(t *testing.T) {
	c := newCluster(t, 1, nil, func(cfg *Config) { cfg.Store.MemoryLimit = 64 << 20 })
	cl := c.client()
	ctx := testContext(t)
	for i := range 60 {
		put, err := Put(ctx, cl, make([]byte, 1<<20))
		require.NoError(t, err)
		back := shapeEcho.Call(ctx, cl, put)
		_, err = back.Get(ctx)
		require.NoError(t, err)
		if i%10 == 9 {
			eventually(t, func() bool { return c.objects() <= 3 })
		}
	}
	c.emptied()
}

// References given to an actor's constructor are freed when the actor drops them, or ends.
func TestShapeConstructorReferences(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	for _, drop := range []bool{true, false} {
		ref := shapeMake.Call(ctx, cl, Val(1<<20))
		h, err := shapeHold.Spawn(ctx, cl, Val([]*Ref[[]byte]{ref}))
		require.NoError(t, err)
		_, _, err = Wait(ctx, []*Ref[[]byte]{ref}, 1)
		require.NoError(t, err)
		ref.Release()
		time.Sleep(20 * time.Millisecond) // in which it would go
		require.Equal(t, 1, c.objects(), "the actor has it")
		if drop {
			get(t, shapeDrop.Call(ctx, h, NoArg))
		} else {
			h.Kill()
		}
		if drop {
			c.emptied()
		}
		h.Release()
		c.emptied()
	}
}

// Borrowers that end at once leave nothing, and take nothing from others.
func TestShapeBorrowersEndAtOnce(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	ref := shapeMake.Call(ctx, cl, Val(1<<20))
	var all []*Ref[[]*Ref[[]byte]]
	for range 300 {
		all = append(all, pass.Call(ctx, cl, Val([]*Ref[[]byte]{ref, ref}), Spread()))
	}
	for _, r := range all {
		get(t, r)
		r.Release()
	}
	require.Len(t, get(t, ref), 1<<20)
	ref.Release()
	c.emptied()
}

// What a task put outlives the task: small values also its node. A large one is lost with its node, and the error says why.
func TestShapePutOutlivesItsTask(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	victim := c.nodes[1]
	small := get(t, shapePut.Call(ctx, cl, Val(1000), OnNode(victim.ID())))
	big := get(t, shapePut.Call(ctx, cl, Val(1<<20), OnNode(victim.ID())))
	require.Equal(t, 1<<20, get(t, length.Call(ctx, cl, big, OnNode(victim.ID()))))
	c.die(victim)
	require.Len(t, get(t, small), 1000)
	_, err := big.Get(ctx)
	require.ErrorIs(t, err, ErrObjectLost)
	require.ErrorContains(t, err, "Put")
}

// Values that are lost are made again with what they were made of; without retries the error says so.
func TestShapeLineage(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	victim := c.nodes[1]
	a := shapeMake.Call(ctx, cl, Val(1<<20), NearNode(victim.ID()))
	b := shapeEcho.Call(ctx, cl, a, NearNode(victim.ID()))
	d := shapeEcho.Call(ctx, cl, b, NearNode(victim.ID()))
	once := shapeMake.Call(ctx, cl, Val(1<<20), NearNode(victim.ID()), Retries(0))
	for _, r := range []*Ref[[]byte]{d, once} { // there, so that there is no copy here
		require.Equal(t, 1<<20, get(t, length.Call(ctx, cl, r, NearNode(victim.ID()))))
	}
	a.Release()
	b.Release()
	runs := shapeRuns.Load()
	c.die(victim)
	require.Len(t, get(t, d), 1<<20)
	require.Equal(t, runs+1, shapeRuns.Load())
	_, err := once.Get(ctx)
	require.ErrorIs(t, err, ErrObjectLost)
	require.ErrorContains(t, err, "retries")
}

// A node that closes in good order while a task elsewhere needs a value of it: the task gets the value, made again.
func TestShapeNodeCloses(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	ref := shapeMake.Call(ctx, cl, Val(1<<20), NearNode(c.nodes[1].ID()))
	_, _, err := Wait(ctx, []*Ref[[]byte]{ref}, 1)
	require.NoError(t, err)
	got := make(chan error, 1)
	go func() {
		for range 50 {
			if _, err := length.Call(ctx, cl, ref, NearNode(c.nodes[2].ID())).Get(ctx); err != nil {
				got <- err
				return
			}
		}
		got <- nil
	}()
	require.NoError(t, c.nodes[1].Close())
	require.NoError(t, <-got)
}

// Items that come after their stream's handle is gone are freed where they are.
func TestShapeStreamHandleGone(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	for range 5 {
		s := shapeItems.Call(ctx, cl, Val(5), Window(1), NearNode(c.nodes[1].ID()))
		if _, err := s.Next(ctx); err != nil {
			require.NoError(t, err)
		}
		s.Release()
	}
	c.emptied()
	eventually(t, func() bool { return c.head.Runtime().Tasks == 0 }, "a generator waits for ever")
}

// Nodes that are lost take their share of what runs, and no more.
func TestShapeLostNodesShare(t *testing.T) {
	c := newCluster(t, 5, nil, func(cfg *Config) { cfg.NoTasks = cfg.Head == "" })
	cl := c.client()
	ctx := testContext(t)
	for range 400 {
		nap.Call(ctx, cl, Val(time.Hour))
	}
	running := func() (n int) {
		for _, node := range c.nodes {
			if node.ctx.Err() == nil {
				n += node.Info().RunningTasks
			}
		}
		return n
	}
	eventually(t, func() bool { return running() == 10 })
	for k := 1; k <= 2; k++ {
		low := 100
		c.die(c.nodes[k])
		for range 100 {
			time.Sleep(time.Millisecond)
			low = min(low, running())
		}
		require.Equal(t, 10-2*k, low)
	}
	c.start(c.head.Address())
	eventually(t, func() bool { return running() == 8 })
}

// What a task submitted ends with a cancel of it, also when it has failed itself; and at the end of the job in any case.
func TestShapeCancelAfterFailure(t *testing.T) {
	c := newCluster(t, 0, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	for range 3 {
		p := shapeParent.Call(ctx, cl, NoArg)
		_, err := p.Get(ctx)
		require.ErrorIs(t, err, errOdd)
		require.EqualValues(t, 1, shapeChildren.Load())
		p.Cancel()
		eventually(t, func() bool { return shapeChildren.Load() == 0 })
	}
	_, err := shapeParent.Call(ctx, cl, NoArg).Get(ctx)
	require.ErrorIs(t, err, errOdd)
	require.NoError(t, cl.Close(nil))
	require.Zero(t, shapeChildren.Load())
}

// Many goroutines get the same values, some giving up, and one reference is an argument twice.
func TestShapeManyGetters(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	var refs []*Ref[[]byte]
	for i := range 4 {
		refs = append(refs, shapeMake.Call(ctx, cl, Val(1<<20), NearNode(c.nodes[1+i%2].ID())))
	}
	var all sync.WaitGroup
	for k := range 32 {
		all.Go(func() {
			for i := range 8 {
				short, cancel := context.WithTimeout(ctx, time.Duration(1+(k+i)%7)*time.Millisecond)
				_, _ = refs[i%4].Get(short)
				cancel()
			}
			for _, r := range refs {
				b, err := r.Get(ctx)
				if err != nil || len(b) != 1<<20 {
					t.Errorf("%d bytes: %v", len(b), err)
				}
			}
		})
	}
	all.Wait()
	n := square.Call(ctx, cl, Val(3))
	require.Equal(t, 18, get(t, add.Call(ctx, cl, n, n)))
}
