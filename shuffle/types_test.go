package shuffle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"manta/actors"
)

func TestParseMode(t *testing.T) {
	for _, m := range Modes {
		got, err := ParseMode(string(m))
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
	_, err := ParseMode("auto")
	require.EqualError(t, err, `shuffle: unknown mode "auto" (want one of concat, disk, object-store, streaming)`)
}

func TestEdgeRefuses(t *testing.T) {
	good := Edge{Job: "j", ID: 1, Mode: Disk, Producers: []actors.NodeID{"a", "b", "a"}, Consumers: []actors.NodeID{"b"}}
	data, err := good.MarshalBinary()
	require.NoError(t, err)
	var e Edge
	require.NoError(t, e.UnmarshalBinary(data))
	require.Equal(t, good, e)
	for n := range data {
		_ = e.UnmarshalBinary(data[:n]) // any error, no panic
	}
	for _, bad := range []Edge{
		{ID: 1, Mode: Disk, Producers: good.Producers, Consumers: good.Consumers},
		{Job: "j", Mode: "x", Producers: good.Producers, Consumers: good.Consumers},
		{Job: "j", Mode: Disk, Consumers: good.Consumers},
		{Job: "j", Mode: Disk, Producers: good.Producers},
		{Job: "j", Mode: Disk, Producers: []actors.NodeID{""}, Consumers: good.Consumers},
	} {
		require.ErrorIs(t, bad.Validate(), ErrEdge)
	}
}

func TestFailureKeepsItsKind(t *testing.T) {
	err := fmt.Errorf("%w: task 1: %w", ErrProducer, &actors.NodeDeadError{Node: "n"})
	got := decodeFailure(encodeFailure(err))
	require.ErrorIs(t, got, ErrProducer)
	require.ErrorIs(t, got, actors.ErrNodeDead)
	require.False(t, errors.Is(got, ErrPeer))
	require.Equal(t, err.Error(), got.Error())
	for _, kind := range failureKinds {
		require.ErrorIs(t, decodeFailure(encodeFailure(fmt.Errorf("here: %w", kind.err))), kind.err)
	}
	require.ErrorIs(t, decodeFailure(encodeFailure(fmt.Errorf("%w: %w", ErrReader, context.Canceled))), context.Canceled)
	long := encodeFailure(errors.New(strings.Repeat("x", 1<<20)))
	require.Less(t, len(long), failureText+100)
	require.NotPanics(t, func() { _ = decodeFailure(nil).Error() })
}

func TestFifo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo[int]
		var model []int
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				v := rapid.Int().Draw(t, "v")
				f.push(v)
				model = append(model, v)
			},
			"pop": func(t *rapid.T) {
				if len(model) > 0 {
					require.Equal(t, model[0], *f.front())
					require.Equal(t, model[0], f.pop())
					model = model[1:]
				}
			},
			"replace": func(t *rapid.T) {
				if len(model) > 0 {
					f.replaceFront([]int{1, 2, 3})
					model = append([]int{1, 2, 3}, model[1:]...)
				}
			},
			"all": func(t *rapid.T) {
				if rapid.IntRange(0, 20).Draw(t, "rarely") == 0 {
					require.ElementsMatch(t, model, f.takeAll())
					model = nil
				}
			},
			"": func(t *rapid.T) { require.Equal(t, len(model), f.len()) },
		})
	})
}

// A task that is not the edge's is refused before anything is made.
func TestWrongTask(t *testing.T) {
	c := smallCluster(t, 2)
	j := c.job()
	e := c.edge(j, Streaming, 2, 2)
	s := c.service(e.Producers[0])
	tc := taskOn(context.Background(), s, e, "x")
	opts := WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema}
	for _, i := range []int{-1, 1, 2} {
		_, err := s.Writer(tc, e, i, opts)
		require.ErrorIs(t, err, ErrEdge)
	}
	for _, o := range []WriterOptions{{}, {Columns: 2, Schema: testSchema}, {Columns: 3, Schema: testSchema, Route: Route{Kind: To, Partition: 2}}, {Columns: 3, Schema: testSchema, Route: Route{Kind: 9}}} {
		_, err := s.Writer(tc, e, 0, o)
		require.ErrorIs(t, err, ErrEdge)
	}
	_, err := s.Reader(tc, e, 0, testSchema) // of the other node
	require.ErrorIs(t, err, ErrEdge)
	_, err = s.Reader(tc, e, 5, testSchema)
	require.ErrorIs(t, err, ErrEdge)
	j.Finish(nil)
	c.empty()
}
