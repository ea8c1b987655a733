package core

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// table is a core with nodes, and what it has started.
type table struct {
	t     *testing.T
	c     *Core
	next  ID
	start map[NodeID][]*Start
	ready map[ID]*Ready
}

func newTable(t *testing.T, cpus ...int64) *table {
	b := &table{t: t, c: New(Config{}), start: make(map[NodeID][]*Start), ready: make(map[ID]*Ready), next: 1}
	for i, cpu := range cpus {
		b.node(NodeSpec{ID: NodeID(fmt.Sprint("n", i)), CPU: cpu, Memory: 100, Labels: map[string]string{"zone": fmt.Sprint(i % 2)}})
	}
	b.c.StartJob("a")
	b.c.StartJob("b")
	return b
}

func (b *table) node(s NodeSpec) { b.c.NodeUp(s); b.take() }

func (b *table) take() {
	for _, o := range b.c.Take() {
		switch m := o.Msg.(type) {
		case *Start:
			b.start[o.To] = append(b.start[o.To], m)
		case *Ready:
			b.ready[m.ID] = m
		}
	}
}

func (b *table) submit(job JobID, opt Options) ID {
	id := b.next
	b.next++
	if opt.CPU == 0 {
		opt.CPU = 1000
	}
	if opt.Group == 0 {
		opt.Bundle = -1
	}
	b.handle(&Submit{Spec: &Spec{ID: id, Job: job, Func: string(job), Results: 1, Opt: &opt}})
	return id
}

func (b *table) handle(m any) { b.c.Handle("n0", m); b.take() }

// on says where a task was started last; "" if nowhere.
func (b *table) on(id ID) NodeID {
	for n, list := range b.start {
		for _, s := range list {
			if s.Spec.ID == id {
				return n
			}
		}
	}
	return ""
}

func (b *table) done(id ID) {
	n := b.on(id)
	require.NotEmpty(b.t, n)
	b.c.Handle(n, &Done{ID: id, Results: []Value{{}}, Nanos: 1e9})
	b.take()
}

func TestPlacement(t *testing.T) {
	b := newTable(t, 2000, 2000, 2000)
	require.Equal(t, NodeID("n0"), b.on(b.submit("a", Options{})), "the first, up to half")
	require.Equal(t, NodeID("n1"), b.on(b.submit("a", Options{})))
	require.Equal(t, NodeID("n2"), b.on(b.submit("a", Options{})))
	require.Equal(t, NodeID("n1"), b.on(b.submit("a", Options{Demand: Demand{Node: "n1"}})))
	hard := b.submit("a", Options{Demand: Demand{Node: "n1"}})
	require.Empty(t, b.on(hard), "it waits for that node")
	require.NotEmpty(t, b.on(b.submit("a", Options{Demand: Demand{Labels: "zone=0"}})))
	require.NotEmpty(t, b.on(b.submit("a", Options{Demand: Demand{Labels: "zone!=1"}})))
	require.Empty(t, b.on(b.submit("a", Options{Demand: Demand{Labels: "zone=0"}})), "all is taken")
	gone := b.submit("a", Options{Demand: Demand{Node: "n9"}})
	require.Contains(t, b.ready[gone].Failure.Kinds, FailUnschedulable)
	b.c.NodeDown("n1", "test")
	b.take()
	require.Contains(t, b.ready[hard].Failure.Kinds, FailUnschedulable, "its node is gone")
}

func TestMemoryAndCustomResources(t *testing.T) {
	b := newTable(t, 4000)
	b.node(NodeSpec{ID: "gpu", CPU: 4000, Memory: 100, Custom: "gpu=2000"})
	require.Equal(t, NodeID("gpu"), b.on(b.submit("a", Options{Demand: Demand{Custom: "gpu=1500"}})))
	second := b.submit("a", Options{Demand: Demand{Custom: "gpu=1000"}})
	require.Empty(t, b.on(second))
	big := b.submit("a", Options{Demand: Demand{Memory: 80}})
	require.NotEmpty(t, b.on(big))
	b.submit("a", Options{Demand: Demand{Memory: 80}})
	require.Empty(t, b.on(b.submit("a", Options{Demand: Demand{Memory: 80}})))
}

func TestSpread(t *testing.T) {
	b := newTable(t, 4000, 4000, 4000)
	seen := make(map[NodeID]int)
	for range 6 {
		seen[b.on(b.submit("a", Options{Demand: Demand{Spread: true}}))]++
	}
	require.Equal(t, map[NodeID]int{"n0": 2, "n1": 2, "n2": 2}, seen)
}

// Whoever came first, two jobs run the same number of tasks; within one, priority decides and then the order.
func TestFairShare(t *testing.T) {
	b := newTable(t, 4000)
	var a []ID
	for range 20 {
		a = append(a, b.submit("a", Options{}))
	}
	low := b.submit("b", Options{})
	high := b.submit("b", Options{Demand: Demand{Priority: 1}})
	require.Len(t, b.start["n0"], 4)
	b.done(a[0])
	require.NotEmpty(t, b.on(high))
	require.Empty(t, b.on(low))
	b.done(a[1])
	require.NotEmpty(t, b.on(low))
	require.EqualValues(t, 2000, b.c.jobs["a"].used)
	require.EqualValues(t, 2000, b.c.jobs["b"].used)
	b.done(high)
	require.NotEmpty(t, b.on(a[4]), "in order")
	require.Empty(t, b.on(a[5]))
}

// Arguments that are large draw a task to where they are, unless there is no room.
func TestLocality(t *testing.T) {
	b := newTable(t, 2000, 2000)
	b.c.Handle("n1", &Put{ID: 1000, Job: "a", Value: Value{Node: "n1", Key: [16]byte{1}, Size: 10 << 20}})
	arg := func() ID {
		id := b.next
		b.next++
		b.handle(&Submit{Spec: &Spec{ID: id, Job: "a", Func: "f", Results: 1, Args: []Arg{{Ref: 1000}}, Opt: &Options{Demand: Demand{CPU: 1000, Bundle: -1}}}})
		return id
	}
	require.Equal(t, NodeID("n1"), b.on(arg()))
	require.Equal(t, NodeID("n1"), b.on(arg()))
	require.Equal(t, NodeID("n0"), b.on(arg()))
}

// Tasks that are known to be short are sent ahead; those of a class that is not, or is slow, never.
func TestAhead(t *testing.T) {
	b := newTable(t, 1000)
	ids := []ID{b.submit("a", Options{}), b.submit("a", Options{}), b.submit("a", Options{})}
	require.Len(t, b.start["n0"], 1)
	b.c.Handle("n0", &Done{ID: ids[0], Results: []Value{{}}, Nanos: 1000})
	b.take()
	require.Len(t, b.start["n0"], 3, "both are sent")
	for range 1000 {
		b.submit("a", Options{})
	}
	require.LessOrEqual(t, len(b.start["n0"]), 520)
	for _, s := range b.start["n0"][2:] { // behind a slow one they come back
		b.c.Handle("n0", &Returned{ID: s.Spec.ID})
	}
	b.take()
	require.EqualValues(t, 1000, b.c.nodes["n0"].main.usedCPU)
}

func TestGroups(t *testing.T) {
	b := newTable(t, 2000, 2000)
	group := func(layout Layout, bundles string) ID {
		id := b.next
		b.next++
		b.handle(&Submit{Spec: &Spec{ID: id, Job: "a", Kind: KindGroup, Results: 1, Opt: &Options{Bundles: bundles, Layout: layout}}})
		return id
	}
	strict := group(StrictSpread, "1000,1000")
	require.NotNil(t, b.ready[strict])
	first := b.submit("a", Options{Demand: Demand{Group: strict, Bundle: 0}})
	second := b.submit("a", Options{Demand: Demand{Group: strict, Bundle: 1}})
	require.NotEqual(t, b.on(first), b.on(second))
	third := b.submit("a", Options{Demand: Demand{Group: strict, Bundle: -1}})
	require.Empty(t, b.on(third), "both bundles are taken")
	pack := group(StrictPack, "1000,1000")
	require.Nil(t, b.ready[pack], "no node has both")
	require.EqualValues(t, 1000, b.c.nodes["n0"].main.usedCPU, "nothing of it is reserved")
	b.node(NodeSpec{ID: "n2", CPU: 2000})
	require.NotNil(t, b.ready[pack])
	bad := b.submit("a", Options{Demand: Demand{Group: strict, Bundle: 7}})
	require.Contains(t, b.ready[bad].Failure.Kinds, FailUnschedulable)
	b.handle(&Release{ID: strict})
	require.Contains(t, b.ready[third].Failure.Kinds, FailUnschedulable, "its group is gone")
	b.handle(&Release{ID: pack})
	require.Zero(t, b.c.nodes["n2"].main.usedCPU)
	require.Zero(t, b.c.nodes["n1"].main.usedCPU+b.c.nodes["n0"].main.usedCPU)
}

// A task that waits makes room for another.
func TestBlocked(t *testing.T) {
	b := newTable(t, 1000)
	parent, child := b.submit("a", Options{}), b.submit("a", Options{})
	require.Empty(t, b.on(child))
	b.handle(&Blocked{ID: parent, On: true})
	require.NotEmpty(t, b.on(child))
	b.handle(&Blocked{ID: parent})
	require.Empty(t, b.on(b.submit("a", Options{})))
	b.done(child)
	b.done(parent)
	require.Zero(t, b.c.nodes["n0"].main.blocked)
}

// Whatever waits says for what.
func TestWhy(t *testing.T) {
	b := newTable(t, 1000)
	running := b.submit("a", Options{})
	b.submit("a", Options{})
	b.submit("a", Options{Demand: Demand{Labels: "zone=9"}})
	b.submit("a", Options{Demand: Demand{CPU: 9000}})
	b.handle(&Submit{Spec: &Spec{ID: b.next, Job: "a", Func: "f", Results: 1, Args: []Arg{{Ref: running}}, Opt: &Options{Demand: Demand{CPU: 1000, Bundle: -1}}}})
	var why []string
	for _, i := range b.c.Tasks(100) {
		why = append(why, i.State+": "+i.Why)
	}
	require.Equal(t, []string{
		"RUNNING: ", "QUEUED: room for 1 CPU", "QUEUED: a node with zone=9; there is none", "QUEUED: a node that has 9 CPU; there is none",
		"WAITING: argument 0, which a 1 makes",
	}, why)
	require.Len(t, b.c.Tasks(2), 2)
}

// Of a call that the core does not know of, its node is told that it was cancelled; no longer when it has told what came of it.
func TestCancelPromised(t *testing.T) {
	b := newTable(t, 1000, 1000)
	b.handle(&Put{ID: 1, Job: "a", Pending: true})
	b.c.Handle("n1", &Hold{ID: 1})
	b.c.Handle("n1", &Cancel{ID: 1, Recursive: true})
	require.Equal(t, []Out{{"n0", &Cancel{ID: 1}}}, b.c.Take())
	b.handle(&Put{ID: 1, Job: "a"})
	b.c.Handle("n1", &Cancel{ID: 1, Recursive: true})
	require.Empty(t, b.c.Take())
}
