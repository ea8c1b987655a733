package actors

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every task that does not run says what it waits for, wherever it stands.
func TestStanding(t *testing.T) {
	hog := make(chan struct{})
	closeHog := sync.OnceFunc(func() { close(hog) })
	defer closeHog()
	c := newCluster(t, 1, map[string]TaskFunc{
		"hog":   func(*TaskContext, []byte) ([]byte, error) { <-hog; return nil, nil },
		"yield": block,
	}, func(c *Config) { c.CPUs = 1 })
	head, worker := c.head.ID(), c.nodes[1].ID()
	ctx := testContext(t)
	cl := c.client()
	job := c.job()
	_, err := job.SubmitAll([]TaskSpec{
		{Name: "runs", Func: "hog", Node: worker}, {Name: "queues", Func: "hog", Node: worker}, {Name: "waits", Func: "yield", Node: head},
	})
	require.NoError(t, err)
	gate, err := gates.Spawn(ctx, cl, NoArg, OnNode(head), Name("the gate"), ConcurrencyGroup("control", 1))
	require.NoError(t, err)
	open := gateWait.Call(ctx, gate, NoArg)
	behind := gateWait.Call(ctx, gate, NoArg)
	never := square.Call(ctx, cl, Val(1), CPUs(99), Name("never"))
	after := square.Call(ctx, cl, never, Name("after"))
	pool := gates.Start(ctx, cl, NoArg, CPUs(98), Name("pool"))

	conn, err := Dial(ctx, c.head.Address(), "secret")
	require.NoError(t, err)
	defer conn.Close()
	want := map[string]string{
		"runs": "RUNNING: ", "queues": "QUEUED: a CPU of its node", "waits": "BLOCKED: input or credit, from or for the tasks it works with",
		"never": "QUEUED: a node that has 99 CPU; there is none", "after": "WAITING: argument 0, which test.square " + never.ID()[1:] + " makes",
		"more.gate.wait": "QUEUED: its actor, which is busy; 0 calls are before it",
		"pool":           "QUEUED: a node that has 98 CPU; there is none",
	}
	var got map[string]string
	eventually(t, func() bool {
		list, err := ListTasks(ctx, conn, 100)
		require.NoError(t, err)
		got = make(map[string]string)
		for _, i := range list {
			if i.State != "RUNNING" || i.Name == "runs" {
				got[i.Name] = i.State + ": " + i.Why
			}
		}
		return maps.Equal(got, want)
	}, "%v", &got)

	list, err := ListActors(ctx, conn, 100)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, ActorInfo{ID: gate.ID(), Job: cl.Job(), Name: "the gate", Class: "more.gate", State: "ALIVE", Node: head, Calls: 2}, list[0])
	require.Equal(t, "PENDING", list[1].State)
	require.Equal(t, want["pool"], "QUEUED: "+list[1].Why)
	list, err = ListActors(ctx, conn, 1)
	require.NoError(t, err)
	require.Len(t, list, 1)

	closeHog()
	for _, r := range []interface{ Cancel() }{never, after, open, behind} {
		r.Cancel()
	}
	gate.Kill()
	pool.Kill()
	job.Finish(context.Canceled)
	eventually(t, func() bool { return len(c.head.Tasks(ctx, 100)) == 0 })
}
