package planner

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/planner/wire"
)

// headOf is the SQL part of the head of an embedded cluster.
func headOf(c *Client) *Service { return c.Embedded().Nodes[0].sql }

// losing makes a cluster whose queries lose the last of its nodes each time they were submitted, `losses` times.
func losing(t *testing.T, nodes, losses int) *Client {
	c := cluster(t, Config{Nodes: nodes, CPUs: 1, Memory: 256 << 20})
	headOf(c).submitted = func(*run) {
		if losses > 0 {
			losses--
			lose(t, c)
		}
	}
	return c
}

// lose closes the last node.
func lose(t *testing.T, c *Client) {
	e := c.Embedded()
	last := len(e.Nodes) - 1
	if err := e.Nodes[last].Close(); err != nil {
		t.Error(err)
	}
	e.Nodes = e.Nodes[:last]
}

// A query that loses a node gives its answer all the same, and nobody notices but for the statistics.
func TestRestart(t *testing.T) {
	o := newOracle(t)
	sql := "SELECT n, count(*), sum(d) FROM big JOIN dim ON big.k = dim.k GROUP BY n"
	want := o.answer(t, sql)
	for _, mode := range []string{"auto", "streaming", "object-store", "disk", "concat"} {
		t.Run(mode, func(t *testing.T) {
			c := losing(t, 4, 2)
			options := Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0), BroadcastBytes: bytesOf(0)}
			r, err := c.Query(context.Background(), sql, options)
			require.NoError(t, err)
			var got answer
			for r.Next() {
				got.rows = append(got.rows, texts(r.RecordBatch())...)
			}
			require.NoError(t, r.Err())
			got.names, got.types = want.names, r.Types()
			requireSame(t, want, got, false, sql)
			require.Equal(t, 2, r.Stats().Restarts)
			last := r.Job()
			r.Release()

			require.Eventually(t, func() bool { // the last one's end is known to the client first
				jobs, err := c.Jobs(context.Background())
				return err == nil && len(jobs) == 3 && jobs[2].State != actors.JobRunning
			}, time.Minute, time.Millisecond)
			jobs, err := c.Jobs(context.Background())
			require.NoError(t, err)
			var states []actors.JobState
			for _, j := range jobs {
				states = append(states, j.State)
			}
			require.Equal(t, []actors.JobState{actors.JobFailed, actors.JobFailed, actors.JobSucceeded}, states)
			require.Contains(t, jobs[2].Name, "(restart 2)")
			require.Equal(t, string(jobs[2].ID), last)

			text, err := c.ExplainAnalyze(context.Background(), sql, options)
			require.NoError(t, err)
			require.NotContains(t, text, "Started again")
		})
	}
}

// A node may be lost when the tasks have been given to it and have not been told so, or while they wait for their admission.
func TestLostBeforeTheStart(t *testing.T) {
	o := newOracle(t)
	sql := "SELECT k, count(*) FROM big GROUP BY k"
	want := o.answer(t, sql)
	for _, mode := range []string{"streaming", "disk"} {
		c := cluster(t, Config{Nodes: 4, CPUs: 1, Memory: 256 << 20})
		losses := 2
		headOf(c).planned = func(*run) {
			if losses--; losses >= 0 {
				lose(t, c)
			}
		}
		got, stats := query(t, c, sql, Options{Tables: o.tables, Shuffle: mode, ReplicateBytes: bytesOf(0)})
		requireSame(t, want, got, false, mode)
		require.Equal(t, 2, stats.Restarts)
		require.Zero(t, stats.TasksKept)
	}
}

func TestRestartsAreExplained(t *testing.T) {
	o := newOracle(t)
	c := losing(t, 3, 1)
	lost := c.Embedded().Nodes[2].ID()
	text, err := c.ExplainAnalyze(context.Background(), "SELECT k, count(*) FROM big GROUP BY k", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	require.Contains(t, text, "Started again, all of it: ")
	require.Contains(t, text, string(lost))
}

// A query that fails for a reason of its own after a restart tells both.
func TestRestartThatFails(t *testing.T) {
	o := newOracle(t)
	c := losing(t, 3, 1)
	err := fails(c, "SELECT error('it broke here') FROM big WHERE id = 6100", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.ErrorContains(t, err, "it broke here")
}

func TestRestartsAreBounded(t *testing.T) {
	o := newOracle(t)
	c := losing(t, maxRestarts+2, maxRestarts+1)
	last := c.Embedded().Nodes[1].ID()
	err := fails(c, "SELECT k, count(*) FROM big GROUP BY k", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.ErrorContains(t, err, "given up after 3 restarts")
	require.ErrorContains(t, err, string(last))
}

// Once rows have gone to the client a lost node is an error, never a short or a doubled result.
func TestNoRestartOnceRowsWereSent(t *testing.T) {
	o := newOracle(t)
	c := cluster(t, Config{Nodes: 3, CPUs: 1, Memory: 256 << 20})
	headOf(c).submitted = func(r *run) { r.out.limit = 0 }
	lost := c.Embedded().Nodes[2].ID()
	r, err := c.Query(context.Background(), "SELECT a.id, b.s FROM big a, big b", Options{Tables: o.tables, ReplicateBytes: bytesOf(0)})
	require.NoError(t, err)
	defer r.Release()
	require.True(t, r.Next(), "%v", r.Err())
	lose(t, c)
	for r.Next() {
	}
	require.ErrorContains(t, r.Err(), "a part of its result was sent already")
	require.ErrorContains(t, r.Err(), string(lost))
	jobs, err := c.Jobs(context.Background())
	require.NoError(t, err)
	require.Len(t, jobs, 1)
}

func TestOutbox(t *testing.T) {
	var sent []*wire.QueryEvent
	block := func(n int) *wire.QueryEvent {
		return &wire.QueryEvent{Event: &wire.QueryEvent_Block{Block: make([]byte, n)}}
	}
	o := outbox{limit: 10, send: func(e *wire.QueryEvent) error {
		sent = append(sent, e)
		return nil
	}}
	events := []*wire.QueryEvent{block(4), block(6), block(1), block(2)}
	require.NoError(t, o.put(block(9)))
	o.drop()
	for i, e := range events[:2] {
		require.NoError(t, o.put(e))
		require.False(t, o.opened.Load())
		require.Empty(t, sent, i)
	}
	require.NoError(t, o.put(events[2]))
	require.True(t, o.opened.Load())
	require.NoError(t, o.put(events[3]))
	require.True(t, slices.Equal(events, sent))
	require.Empty(t, o.held)
}
