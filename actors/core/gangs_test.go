package core

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// gang submits tasks that start together, each on the node it names.
func (b *table) gang(job JobID, args []Arg, nodes ...NodeID) (ids []ID) {
	first := b.next
	for _, n := range nodes {
		id := b.next
		b.next++
		opt := &Options{Demand: Demand{CPU: 1000, Bundle: -1, Node: n}, Retries: 3, Gang: first, GangSize: int32(len(nodes))}
		ids = append(ids, id)
		b.handle(&Submit{Spec: &Spec{ID: id, Job: job, Func: "g", Results: 1, Opt: opt, Args: args}})
		if len(ids) < len(nodes) {
			require.Empty(b.t, b.on(id), "the rest is not there yet")
		}
	}
	return ids
}

// A gang starts as a whole, though there are fewer CPUs; others find their CPUs as they were.
func TestGang(t *testing.T) {
	b := newTable(t, 1000, 1000)
	ids := b.gang("a", nil, "n0", "n0", "n1", "n1", "n1", "")
	for i, n := range []NodeID{"n0", "n0", "n1", "n1", "n1", "n0"} {
		require.Equal(t, n, b.on(ids[i]))
	}
	require.ElementsMatch(t, []JobID{"a"}, b.c.Uses("n1"))
	require.NotEmpty(t, b.on(b.submit("b", Options{})))
	require.NotEmpty(t, b.on(b.submit("b", Options{})))
	require.Empty(t, b.on(b.submit("b", Options{})), "these take CPUs, as ever")
	for _, id := range ids {
		b.done(id)
	}
	require.Zero(t, b.c.nodes["n0"].main.ganged+b.c.nodes["n1"].main.ganged)
	require.Equal(t, int64(1000), b.c.nodes["n0"].main.usedCPU)
	require.Empty(t, b.c.gangs)
}

// What keeps one task of a gang from starting keeps all of them.
func TestGangFails(t *testing.T) {
	b := newTable(t, 1000)
	for _, id := range b.gang("a", nil, "n0", "n9", "n0") {
		require.Contains(t, b.ready[id].Failure.Kinds, FailUnschedulable)
		require.Empty(t, b.on(id))
	}
	arg := b.submit("a", Options{Demand: Demand{Node: "n0"}})
	ids := b.gang("a", []Arg{{Ref: arg}}, "n0", "n0")
	require.Equal(t, "argument 0, which a 4 makes", b.c.info(b.c.tasks[ids[0]]).Why)
	b.handle(&Cancel{ID: ids[1]})
	for _, id := range ids {
		require.Equal(t, []string{FailCanceled}, b.ready[id].Failure.Kinds)
	}
	b.done(arg)
	require.Empty(t, b.on(ids[0]))
	// One of which the rest never comes ends with its job.
	b.handle(&Submit{Spec: &Spec{ID: 900, Job: "a", Func: "g", Results: 1, Opt: &Options{Gang: 900, GangSize: 2}}})
	require.Equal(t, "the rest of its gang: 1 of 2 tasks were submitted", b.c.info(b.c.tasks[900]).Why)
	b.c.EndJob("a")
	require.Empty(t, b.c.gangs)
	require.Empty(t, b.c.line)
}

// Gangs that find no room wait in order; a failure of a started one's task is its own, and it is not tried again.
func TestGangsWait(t *testing.T) {
	b := newTable(t, 1000, 1000)
	b.c.cfg.MaxGang = 3
	one := b.gang("a", nil, "n0", "n0")
	two := b.gang("a", nil, "n0", "n1", "n0")
	three := b.gang("b", nil, "n1")
	require.NotEmpty(t, b.on(one[0]))
	require.Empty(t, b.on(two[1]))
	require.Empty(t, b.on(three[0]), "it does not overtake")
	require.Equal(t, 4, b.c.Counts().Queued)
	require.Equal(t, "admission: room for all 3 tasks of its gang at once", b.c.info(b.c.tasks[two[1]]).Why)
	require.Equal(t, "admission: 1 gangs are before its own", b.c.info(b.c.tasks[three[0]]).Why)
	b.c.Handle("n0", &Done{ID: one[0], Failure: &Failure{Text: "no", System: true}})
	b.take()
	require.Equal(t, NodeID("n0"), b.ready[one[0]].Failure.At)
	require.NotEmpty(t, b.on(two[1]))
	require.NotEmpty(t, b.on(three[0]))
	b.done(one[1])
	for _, id := range b.gang("a", nil, "n0", "n0", "n0", "n0") {
		require.Contains(t, b.ready[id].Failure.Text, "a node takes 3")
	}
	b.c.Suspend("n1", true)
	four := b.gang("a", nil, "n1")
	require.Equal(t, "admission: its gang of 1 needs node n1, which is silent", b.c.info(b.c.tasks[four[0]]).Why)
	b.c.NodeDown("n1", "test")
	b.take()
	for _, id := range []ID{two[1], three[0], four[0]} {
		require.Contains(t, b.ready[id].Failure.Kinds, FailNodeDead)
	}
	require.Nil(t, b.ready[two[0]], "the others of its gang go on")
}
