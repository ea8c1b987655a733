package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

var fetchLen = NewTask("fetch.len", func(_ context.Context, b []byte) (int, error) { return len(b), nil })

// A value of another node is fetched once for all who want it here, and goes everywhere when nobody holds it any more.
func TestFetchedValuesAreKept(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	made, used := c.nodes[1], c.nodes[2]
	cl := c.client()
	ctx := testContext(t)
	r := shapeMake.Call(ctx, cl, Val(1<<20), OnNode(made.ID()))
	_, err := fetchLen.Call(ctx, cl, r, OnNode(made.ID())).Get(ctx)
	require.NoError(t, err)
	puts := made.Store().Stats().Gets
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			n, err := fetchLen.Call(ctx, cl, r, OnNode(used.ID())).Get(ctx)
			if err != nil || n != 1<<20 {
				t.Errorf("%d: %v", n, err)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, made.Store().Stats().Gets-puts, "it is fetched once")
	require.EqualValues(t, 1, used.Store().Stats().Objects)
	r.Release()
	eventually(t, func() bool {
		return made.Store().Stats().Objects+used.Store().Stats().Objects == 0
	}, "the copy goes with the value")
}

// Copies take a part of the store's memory, and the latest stay.
func TestFetchedValuesAreBounded(t *testing.T) {
	c := newCluster(t, 2, nil, nil) // stores of 16 MiB
	cl := c.client()
	ctx := testContext(t)
	var refs []*Ref[[]byte]
	for range 6 {
		r := shapeMake.Call(ctx, cl, Val(700<<10), OnNode(c.nodes[1].ID()))
		refs = append(refs, r)
		n, err := fetchLen.Call(ctx, cl, r, OnNode(c.nodes[2].ID())).Get(ctx)
		require.NoError(t, err)
		require.Equal(t, 700<<10, n)
		require.LessOrEqual(t, c.nodes[2].Store().Stats().Objects, int64(2))
	}
	large := shapeMake.Call(ctx, cl, Val(3<<20), OnNode(c.nodes[1].ID()))
	n, err := fetchLen.Call(ctx, cl, large, OnNode(c.nodes[2].ID())).Get(ctx)
	require.NoError(t, err)
	require.Equal(t, 3<<20, n)
	require.EqualValues(t, 2, c.nodes[2].Store().Stats().Objects, "one that is too large is not kept")
	for _, r := range append(refs, large) {
		r.Release()
	}
}

var fetchFull = NewTask("fetch.full", func(context.Context, None) (None, error) {
	return None{}, fmt.Errorf("a table of 1 TB: %w", ErrOutOfMemory)
})

// Values larger than the memory of the stores that they are in travel all the same; what finds no room at all says so, also to other processes.
func TestLargerThanMemory(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	const size = 40 << 20 // in stores of 16 MiB
	here, err := Put(ctx, cl, make([]byte, size))
	require.NoError(t, err)
	there := shapeMake.Call(ctx, cl, Val(size), OnNode(c.nodes[1].ID()))
	for _, r := range []*Ref[[]byte]{here, there} {
		for _, n := range c.nodes {
			got, err := fetchLen.Call(ctx, cl, r, OnNode(n.ID())).Get(ctx)
			require.NoError(t, err)
			require.Equal(t, size, got)
		}
	}
	tight := newCluster(t, 0, nil, func(c *Config) { c.Store.DiskLimit = 1 << 20 })
	_, err = Put(ctx, tight.client(), make([]byte, size))
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.ErrorIs(t, err, objectstore.ErrFull)
	_, err = fetchFull.Call(ctx, cl, NoArg, OnNode(c.nodes[1].ID())).Get(ctx)
	require.ErrorIs(t, err, ErrOutOfMemory)
}
