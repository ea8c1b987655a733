package actors

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

// The head tells what the stores of all living nodes have: how much, the largest objects, and what made them.
func TestListMemory(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	ctx := testContext(t)
	conn, err := Dial(ctx, c.head.Address(), "secret")
	require.NoError(t, err)
	defer conn.Close()

	cl := c.client()
	put, err := Put(ctx, cl, make([]byte, 300_000))
	require.NoError(t, err)
	made := large.Call(ctx, cl, Val(200_000), OnNode(c.nodes[2].ID()))
	_, err = made.Get(ctx)
	require.NoError(t, err)

	list, err := ListMemory(ctx, conn, 10)
	require.NoError(t, err)
	require.Len(t, list, 3)
	found := map[string]NodeMemory{}
	for _, n := range list {
		require.Empty(t, n.Error)
		require.Len(t, n.Objects, int(n.Store.Objects))
		for _, o := range n.Objects {
			found[o.Label] = n
			require.Equal(t, "memory", o.Tier)
			require.Equal(t, []string{o.Owner}, o.Holders)
			require.WithinDuration(t, time.Now(), o.Created, time.Minute)
		}
	}
	require.Equal(t, c.head.ID(), found["put"].Node)
	require.Equal(t, c.nodes[2].ID(), found["test.large"].Node)
	at := slices.IndexFunc(found["put"].Objects, func(o objectstore.ObjectInfo) bool { return o.Label == "put" })
	require.Greater(t, found["put"].Objects[at].Size, int64(300_000-1))

	list, err = ListMemory(ctx, conn, 0)
	require.NoError(t, err)
	for _, n := range list {
		require.Empty(t, n.Objects)
		require.Positive(t, n.Store.MemoryLimit)
	}
	put.Release()
	made.Release()

	require.NoError(t, c.nodes[2].Close())
	eventually(t, func() bool {
		list, err := ListMemory(ctx, conn, 10)
		return err == nil && len(list) == 2 && list[0].Error == "" && list[1].Error == "" && list[0].Store.Objects+list[1].Store.Objects == 0
	})

	other, err := Dial(ctx, c.nodes[1].Address(), "secret")
	if err == nil {
		_ = other.Close()
	}
	require.ErrorIs(t, err, ErrNotHead)
}
