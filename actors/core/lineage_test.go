package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Lineage is bounded by what it takes: of tasks with large arguments fewer are kept, the latest ones.
func TestLineageBytes(t *testing.T) {
	b := newTable(t, 64_000)
	b.c.cfg.MaxLineageBytes = 10_000
	b.node(NodeSpec{ID: "far", CPU: 1000})
	var ids []ID
	for i := range 8 {
		id := b.next
		b.next++
		ids = append(ids, id)
		arg := Arg{Val: &Value{Data: make([]byte, 3000)}}
		b.handle(&Submit{Spec: &Spec{ID: id, Job: "a", Func: "f", Results: 1, Args: []Arg{arg}, Opt: &Options{Retries: 3, Demand: Demand{CPU: 1000, Bundle: -1}}}})
		b.c.Handle(b.on(id), &Done{ID: id, Results: []Value{{Node: "far", Key: [16]byte{byte(i)}, Size: 1}}})
		b.take()
	}
	require.Equal(t, 2, b.c.Counts().Lineage)
	require.LessOrEqual(t, b.c.lineage.bytes, int64(10_000))
	b.c.NodeDown("far", "test")
	b.handle(&Want{ID: ids[0]})
	require.Contains(t, b.ready[ids[0]].Failure.Text, "there was too much of it")
	clear(b.start)
	b.handle(&Want{ID: ids[7]})
	require.NotEmpty(t, b.on(ids[7]), "it is made again")
	b.c.EndJob("a")
	require.Zero(t, b.c.lineage.bytes)
}
