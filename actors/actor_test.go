package actors

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func echo(_ context.Context, _ NodeID, m proto.Message) (proto.Message, error) { return m, nil }

func text(s string) *wrapperspb.StringValue { return wrapperspb.String(s) }

func TestAsk(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	ctx := testContext(t)
	for _, n := range c.nodes {
		_, err := n.Spawn("echo", func(_ context.Context, from NodeID, m proto.Message) (proto.Message, error) {
			return text(fmt.Sprintf("%s asks %s", from, m.(*wrapperspb.StringValue).Value)), nil
		})
		require.NoError(t, err)
		_, err = n.Spawn("fail", func(context.Context, NodeID, proto.Message) (proto.Message, error) {
			return nil, fmt.Errorf("in a way: %w", errSpecial)
		})
		require.NoError(t, err)
		_, err = n.Spawn("panic", func(context.Context, NodeID, proto.Message) (proto.Message, error) { panic("oh no") })
		require.NoError(t, err)
		_, err = n.Spawn("nil", func(context.Context, NodeID, proto.Message) (proto.Message, error) { return nil, nil })
		require.NoError(t, err)
		_, err = n.Spawn("large", func(context.Context, NodeID, proto.Message) (proto.Message, error) {
			return text(strings.Repeat("x", MaxMessage)), nil
		})
		require.NoError(t, err)
	}
	for _, from := range c.nodes {
		for _, to := range c.nodes {
			got, err := from.Ask(ctx, Address{to.ID(), "echo"}, text("time"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%s asks time", from.ID()), got.(*wrapperspb.StringValue).Value)

			got, err = from.Ask(ctx, Address{to.ID(), "nil"}, text(""))
			require.NoError(t, err)
			require.Nil(t, got)

			_, err = from.Ask(ctx, Address{to.ID(), "fail"}, text(""))
			require.ErrorIs(t, err, errSpecial)
			require.ErrorContains(t, err, "in a way")
			_, err = from.Ask(ctx, Address{to.ID(), "panic"}, text(""))
			require.ErrorIs(t, err, ErrPanic)
			_, err = from.Ask(ctx, Address{to.ID(), "nobody"}, text(""))
			require.ErrorIs(t, err, ErrActorNotFound)
			_, err = from.Ask(ctx, Address{to.ID(), "\xff"}, text(""))
			require.ErrorIs(t, err, ErrActorNotFound)
			_, err = from.Ask(ctx, Address{to.ID(), "echo"}, text(strings.Repeat("x", MaxMessage)))
			require.ErrorIs(t, err, ErrTooLarge)
			if from != to {
				_, err = from.Ask(ctx, Address{to.ID(), "large"}, text(""))
				require.ErrorIs(t, err, ErrTooLarge)
			}
			_, err = from.Ask(ctx, Address{to.ID(), "echo"}, text(strings.Repeat("x", MaxMessage-1024)))
			require.NoError(t, err)
		}
		_, err := from.Ask(ctx, Address{"node-nowhere", "echo"}, text(""))
		require.ErrorIs(t, err, ErrNodeDead)
	}
}

func TestSpawnNames(t *testing.T) {
	c := newCluster(t, 0, nil, nil)
	for _, name := range []string{"", "@tasks", strings.Repeat("x", 257), "\xff"} {
		_, err := c.head.Spawn(name, echo)
		require.Error(t, err)
	}
	a, err := c.head.Spawn("a", echo)
	require.NoError(t, err)
	require.Equal(t, Address{c.head.ID(), "a"}, a.Address())
	_, err = c.head.Spawn("a", echo)
	require.ErrorIs(t, err, ErrActorExists)
	a.Stop()
	a.Stop()
	_, err = c.head.Spawn("a", echo)
	require.NoError(t, err, "the name is free")
}

// An actor handles one message at a time. When it stops, what it works on is
// cancelled and what waits is answered.
func TestActorStops(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	busy := make(chan struct{})
	var mu sync.Mutex
	handled := 0
	a, err := c.nodes[1].Spawn("slow", func(ctx context.Context, _ NodeID, _ proto.Message) (proto.Message, error) {
		if !mu.TryLock() {
			t.Error("two messages at a time")
			return nil, nil
		}
		defer mu.Unlock()
		handled++
		close(busy)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	require.NoError(t, err)
	errs := make(chan error, 20)
	for i := range 20 {
		go func() {
			_, err := c.nodes[i%2].Ask(testContext(t), a.Address(), text(""))
			errs <- err
		}()
	}
	<-busy
	a.Stop()
	for range 20 {
		require.ErrorIs(t, <-errs, ErrActorNotFound)
	}
	<-a.done
	require.Equal(t, 1, handled)
}

func TestAskDeadline(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	for _, n := range c.nodes {
		ended := make(chan error, 20)
		a, err := n.Spawn("slow", func(ctx context.Context, _ NodeID, _ proto.Message) (proto.Message, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		})
		require.NoError(t, err)
		for limit, reached := 30*time.Millisecond, false; !reached; limit *= 2 { // on a busy machine it may not get there in time
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			_, err = c.head.Ask(ctx, a.Address(), text(""))
			cancel()
			require.Error(t, err)
			require.True(t, errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded), "%v", err)
			select {
			case err := <-ended:
				reached = true
				require.ErrorIs(t, err, context.DeadlineExceeded, "the handler learns of the deadline")
			case <-time.After(limit):
				require.Less(t, limit, patience, "the handler does not learn of the deadline")
			}
		}

		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = c.head.Ask(ctx, a.Address(), text(""))
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A request to a node that dies fails as soon as the death is known, long before
// its deadline.
func TestAskDeadNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2, nil, quick)
	victim := c.nodes[1]
	asked, release := make(chan struct{}, 2), make(chan struct{})
	defer close(release)
	a, err := victim.Spawn("stuck", func(context.Context, NodeID, proto.Message) (proto.Message, error) {
		asked <- struct{}{}
		<-release // deaf to its context, like a process that is gone
		return nil, nil
	})
	require.NoError(t, err)
	errs := make(chan error, 2)
	for _, from := range []*Node{c.head, c.nodes[2]} {
		go func() {
			_, err := from.Ask(testContext(t), a.Address(), text(""))
			errs <- err
		}()
	}
	<-asked
	victim.fail(errors.New("test"))
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, ErrNodeDead)
		require.ErrorContains(t, err, string(victim.ID()))
	}
	for _, from := range []*Node{c.head, c.nodes[2]} {
		_, err = from.Ask(testContext(t), a.Address(), text(""))
		require.ErrorIs(t, err, ErrNodeDead)
	}
}

// What a node remembers of requests goes away with later ones, and with time.
func TestDedupIsBounded(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	to, err := c.nodes[1].Spawn("echo", echo)
	require.NoError(t, err)
	// The mark does not pass a request that is open: let the first poke be answered.
	eventually(t, func() bool {
		c.head.control.mu.Lock()
		defer c.head.control.mu.Unlock()
		o := c.head.control.out[c.nodes[1].ID()]
		return o == nil || o.box.Waiting() == 0
	})
	for range 500 {
		_, err := c.head.Ask(testContext(t), to.Address(), text("x"))
		require.NoError(t, err)
	}
	control := c.nodes[1].control
	eventually(t, func() bool { // again, if something else was open all the while
		_, err := c.head.Ask(testContext(t), to.Address(), text("x"))
		require.NoError(t, err)
		control.mu.Lock()
		defer control.mu.Unlock()
		return control.in[c.head.ID()].Len() <= 5
	}, "requests are remembered for ever")
}
