package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type codedError struct{ Code int }

func (e *codedError) Error() string { return fmt.Sprint("code ", e.Code) }

func init() { RegisterErrorType[*codedError]("test.coded") }

var (
	moreCoded = NewTask("more.coded", func(_ context.Context, n int) (int, error) { return 0, fmt.Errorf("wrapped: %w", &codedError{n}) })
	moreTries atomic.Int64
	moreFlaky = NewTask("more.flaky", func(_ context.Context, n int64) (int64, error) {
		if got := moreTries.Add(1); got <= n {
			return got, errOdd
		}
		return moreTries.Load(), nil
	})
	moreBatch = NewTask("more.batch", func(_ context.Context, n int64) (arrow.RecordBatch, error) { return moreMakeBatch(n), nil })
	moreSum   = NewTask("more.sum", func(_ context.Context, b arrow.RecordBatch) (int64, error) {
		defer b.Release()
		n := int64(0)
		for _, v := range b.Column(0).(*array.Int64).Int64Values() {
			n += v
		}
		return n, nil
	})
	moreHead = NewTask("more.head", func(_ context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) {
		defer b.Release()
		return b.NewSlice(0, 10), nil
	})
	moreSame  = NewTask("more.same", func(_ context.Context, b arrow.RecordBatch) (arrow.RecordBatch, error) { return b, nil })
	moreTwice = NewMulti("more.twice", func(_ context.Context, b arrow.RecordBatch) ([]arrow.RecordBatch, error) {
		b.Retain()
		return []arrow.RecordBatch{b, b}, nil
	})
	moreHeads = NewGenerator("more.heads", func(_ context.Context, b arrow.RecordBatch, yield func(arrow.RecordBatch) error) error {
		defer b.Release()
		for i := range int64(3) {
			part := b.NewSlice(i, i+1)
			err := yield(part)
			part.Release()
			if err != nil {
				return err
			}
		}
		return nil
	})
	moreRows = NewTask("more.rows", func(_ context.Context, r array.RecordReader) (int64, error) {
		defer r.Release()
		n := int64(0)
		for r.Next() {
			n += r.RecordBatch().NumRows()
		}
		return n, r.Err()
	})
	moreProto = NewTask("more.proto", func(_ context.Context, m *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
		return wrapperspb.String(m.Value + "!"), nil
	})
	morePair = NewTask1x2("more.pair", func(_ context.Context, s string) (string, int, error) { return s + s, len(s), nil })
	moreMap  = NewTask("more.map", func(_ context.Context, m map[string][]float64) (map[string]time.Time, error) {
		out := make(map[string]time.Time)
		for k, v := range m {
			out[k] = time.Unix(int64(v[0]), 5).UTC()
		}
		return out, nil
	})

	gates    = NewActor("more.gate", func(context.Context, None) (*gate2, error) { return &gate2{open: make(chan struct{})}, nil })
	gateWait = Method(gates, "wait", (*gate2).Wait)
	gateOpen = Method(gates, "open", (*gate2).Open, InConcurrencyGroup("control"))
	gateMax  = Method(gates, "max", (*gate2).Max, InConcurrencyGroup("control"))
	gateFeed = StreamMethod(gates, "feed", (*gate2).Feed)
)

type gate2 struct {
	mu       sync.Mutex
	now, max int
	open     chan struct{}
}

func (g *gate2) Wait(ctx context.Context, _ None) (None, error) {
	g.mu.Lock()
	g.now++
	g.max = max(g.max, g.now)
	g.mu.Unlock()
	select {
	case <-g.open:
	case <-ctx.Done():
		return None{}, context.Cause(ctx)
	}
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
	return None{}, nil
}
func (g *gate2) Open(context.Context, None) (None, error) { close(g.open); return None{}, nil }
func (g *gate2) Max(context.Context, None) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.max, nil
}
func (g *gate2) Feed(_ context.Context, n int, yield func(int) error) error {
	for i := range n {
		if err := yield(i); err != nil {
			return err
		}
	}
	return nil
}

func moreMakeBatch(n int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(i)
	}
	return b.NewRecordBatch()
}

func TestTypedErrors(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		_, err := moreCoded.Call(ctx, cl, Val(7)).Get(ctx)
		var coded *codedError
		require.ErrorAs(t, err, &coded)
		require.Equal(t, 7, coded.Code)
		var run *RunError
		require.ErrorAs(t, err, &run)
		_, err = square.Call(ctx, cl, Val(1), OnNode("nowhere")).Get(ctx)
		require.ErrorIs(t, err, ErrUnschedulable)
		r := square.Call(ctx, cl, Val(1))
		r.Release()
		r.Release()
		_, err = r.Get(ctx)
		require.ErrorIs(t, err, ErrReleased)
		_, err = square.Call(ctx, cl, r).Get(ctx)
		require.ErrorIs(t, err, ErrReleased)
	})
}

func TestTypedRetryErrors(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	moreTries.Store(0)
	require.EqualValues(t, 3, get(t, moreFlaky.Call(ctx, cl, Val(int64(2)), RetryErrors(errOdd))))
	moreTries.Store(0)
	_, err := moreFlaky.Call(ctx, cl, Val(int64(2))).Get(ctx)
	require.ErrorIs(t, err, errOdd)
	require.EqualValues(t, 1, moreTries.Load(), "an error of its own is not tried again unless asked")
	moreTries.Store(0)
	_, err = moreFlaky.Call(ctx, cl, Val(int64(9)), RetryErrors(), Retries(1)).Get(ctx)
	require.ErrorIs(t, err, errOdd)
	require.EqualValues(t, 2, moreTries.Load())
	moreTries.Store(0)
	_, err = moreFlaky.Call(ctx, cl, Val(int64(9)), RetryErrors(ErrTimeout)).Get(ctx)
	require.ErrorIs(t, err, errOdd)
	require.EqualValues(t, 1, moreTries.Load(), "another error than that")
}

func TestTypedValues(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		ref := moreBatch.Call(ctx, cl, Val(int64(100_000)))
		require.EqualValues(t, 99_999*100_000/2, get(t, moreSum.Call(ctx, cl, ref)))
		b := get(t, ref)
		require.EqualValues(t, 100_000, b.NumRows())
		b.Release()
		mine := moreMakeBatch(10)
		put, err := Put(ctx, cl, mine)
		require.NoError(t, err)
		again, third := get(t, put), get(t, put)
		place := func(b arrow.RecordBatch) *int64 { return &b.Column(0).(*array.Int64).Int64Values()[0] }
		require.Same(t, place(again), place(third), "no copy on a node")
		require.NotSame(t, place(mine), place(again), "but one into the store")
		third.Release()
		again.Release()
		require.EqualValues(t, 45, get(t, moreSum.Call(ctx, cl, put)))
		reader, err := array.NewRecordReader(mine.Schema(), []arrow.RecordBatch{mine, mine})
		require.NoError(t, err)
		require.EqualValues(t, 20, get(t, moreRows.Call(ctx, cl, Val[array.RecordReader](reader))))
		reader.Release()
		mine.Release()
		require.Equal(t, "hello!", get(t, moreProto.Call(ctx, cl, Val(wrapperspb.String("hello")))).Value)
		s, n := morePair.Call(ctx, cl, Val("ab"))
		require.Equal(t, "abab", get(t, s))
		require.Equal(t, 2, get(t, n))
		require.Equal(t, map[string]time.Time{"a": time.Unix(3, 5).UTC()}, get(t, moreMap.Call(ctx, cl, Val(map[string][]float64{"a": {3}}))))
		big, err := Put(ctx, cl, make([]byte, 1<<20))
		require.NoError(t, err)
		require.NoError(t, View(ctx, big, func(b []byte) error { require.Len(t, b, 1<<20); return nil }))
		data := []byte("mine")
		arg := Val(data)
		echoed := shapeEcho.Call(ctx, cl, arg)
		copy(data, "XXXX")
		require.Equal(t, "mine", string(get(t, echoed)), "a value is what it was when it was given")
	})
}

// A batch of the store that a task passes on, whole, in part or twice, is not kept by it.
func TestBatchesPassedOn(t *testing.T) {
	c := newCluster(t, 0, nil, nil)
	cl, ctx := c.client(), testContext(t)
	store := c.head.store
	before := store.Stats().MemoryUsed
	mine := moreMakeBatch(100_000)
	put, err := Put(ctx, cl, mine)
	require.NoError(t, err)
	mine.Release()
	require.Greater(t, store.Stats().MemoryUsed, before+800_000)
	head, same, twice := moreHead.Call(ctx, cl, put), moreSame.Call(ctx, cl, put), moreTwice.Call(ctx, cl, 2, put)
	for _, r := range append(twice, same, head) {
		b := get(t, r)
		require.Contains(t, []int64{10, 100_000}, b.NumRows())
		require.EqualValues(t, 9, b.Column(0).(*array.Int64).Value(9))
		b.Release()
		r.Release()
	}
	parts := moreHeads.Call(ctx, cl, put)
	put.Release()
	for b, err := range parts.All(ctx) {
		require.NoError(t, err)
		require.EqualValues(t, 1, b.NumRows())
		b.Release()
	}
	parts.Release()
	require.NoError(t, cl.Close(nil))
	eventually(t, func() bool { return store.Stats().MemoryUsed <= before })
}

// Batches lie in the store: they take its memory and not the heap's, are spilled when there are more than fit, and stay where they are as
// long as somebody has them, also after their reference and their job are gone.
func TestBatchesAreInTheStore(t *testing.T) {
	c := newCluster(t, 1, nil, nil) // stores of 16 MiB
	ctx := testContext(t)
	cl, err := c.head.NewClient(ctx, JobSpec{})
	require.NoError(t, err)
	const rows = 256 << 10 // 2 MiB
	var refs []*Ref[arrow.RecordBatch]
	mine := moreMakeBatch(rows)
	for range 20 {
		r, err := Put(ctx, cl, mine)
		require.NoError(t, err)
		refs = append(refs, r)
	}
	mine.Release()
	st := c.head.Store().Stats()
	require.EqualValues(t, 20, st.Objects)
	require.LessOrEqual(t, st.MemoryUsed, st.MemoryLimit)
	require.Positive(t, st.Spilled.Objects)
	for _, n := range c.nodes {
		for _, r := range refs {
			require.EqualValues(t, (rows-1)*rows/2, get(t, moreSum.Call(ctx, cl, r, OnNode(n.ID()))))
		}
	}
	held := get(t, refs[0])
	for _, r := range refs {
		r.Release()
	}
	require.NoError(t, cl.Close(nil))
	eventually(t, func() bool { return c.nodes[1].Store().Stats().Objects == 0 && c.head.Store().Stats().Objects <= 1 })
	require.EqualValues(t, rows-1, held.Column(0).(*array.Int64).Value(rows-1))
	held.Release()
	c.clean()
}

func TestTypedConcurrency(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		h, err := gates.Spawn(ctx, cl, NoArg, Concurrency(3), ConcurrencyGroup("control", 1), MaxPendingCalls(6))
		require.NoError(t, err)
		var calls []*Ref[None]
		for range 5 {
			calls = append(calls, gateWait.Call(ctx, h, NoArg))
		}
		eventually(t, func() bool { return get(t, gateMax.Call(ctx, h, NoArg)) == 3 })
		one := gateWait.Call(ctx, h, NoArg)
		_, err = gateWait.Call(ctx, h, NoArg).Get(ctx)
		require.ErrorIs(t, err, ErrPendingCalls)
		one.Cancel()
		_, err = one.Get(ctx)
		require.ErrorIs(t, err, context.Canceled)
		get(t, gateOpen.Call(ctx, h, NoArg))
		for _, r := range calls {
			get(t, r)
		}
		n := 0
		for v, err := range gateFeed.Call(ctx, h, Val(100), Window(5)).All(ctx) {
			require.NoError(t, err)
			require.Equal(t, n, v)
			n++
		}
		require.Equal(t, 100, n)
	})
}

// A detached actor outlives its job and is found from another one; a call that was made before a restart is made once or again as it was asked.
func TestTypedDetachedAndRestarts(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	ctx := testContext(t)
	first, err := c.head.NewClient(ctx, JobSpec{})
	require.NoError(t, err)
	_, err = counters.Spawn(ctx, first, Val(5), Name("forever"), Detached(), OnNode(c.nodes[1].ID()))
	require.NoError(t, err)
	require.NoError(t, first.Close(nil))

	second, err := c.head.NewClient(ctx, JobSpec{})
	require.NoError(t, err)
	h, err := counters.Find(ctx, second, "forever")
	require.NoError(t, err)
	require.Equal(t, 6, get(t, counterAdd.Call(ctx, h, Val(1))))
	h.Kill()
	_, err = counterAdd.Call(ctx, h, Val(1)).Get(ctx)
	require.ErrorIs(t, err, ErrActorDead)
	_, err = counters.Find(ctx, second, "forever")
	require.ErrorIs(t, err, ErrActorNotFound)

	victim := c.nodes[1]
	again, err := counters.Spawn(ctx, second, Val(100), Restarts(1), NearNode(victim.ID()))
	require.NoError(t, err)
	require.Equal(t, string(victim.ID()), get(t, counterWhere.Call(ctx, again, NoArg)))
	require.Equal(t, 101, get(t, counterAdd.Call(ctx, again, Val(1))))
	gate, err := gates.Spawn(ctx, second, NoArg, NearNode(victim.ID()), Restarts(-1))
	require.NoError(t, err)
	once := gateWait.Call(ctx, gate, NoArg)
	eventually(t, func() bool { return get(t, gateMax.Call(ctx, gate, NoArg)) == 1 }, "the call has not begun")
	c.die(victim)
	_, err = once.Get(ctx)
	require.ErrorIs(t, err, ErrActorDead)
	require.ErrorIs(t, err, ErrNodeDead)
	require.Equal(t, 101, get(t, counterAdd.Call(ctx, again, Val(1))), "its state is made anew")
	require.NoError(t, second.Close(nil))
	c.clean()
}

// A driver may be at any node; its job ends with it.
func TestTypedDriverAtWorker(t *testing.T) {
	c := newCluster(t, 2, nil, nil)
	ctx := testContext(t)
	cl := c.clientOn(c.nodes[1])
	require.Equal(t, 81, get(t, square.Call(ctx, cl, square.Call(ctx, cl, Val(3)))))
	require.Equal(t, 21, get(t, fib.Call(ctx, cl, Val(8))))
	require.NoError(t, cl.Close(errors.New("enough")))
	jobs := c.head.Jobs()
	require.Equal(t, JobFailed, jobs[len(jobs)-1].State)
	require.Equal(t, "enough", jobs[len(jobs)-1].Error)

	lost, err := c.nodes[2].NewClient(ctx, JobSpec{})
	require.NoError(t, err)
	r := shapeForever.Call(ctx, lost, NoArg, OnNode(c.head.ID()))
	eventually(t, func() bool { return shapeChildren.Load() == 1 })
	c.die(c.nodes[2])
	eventually(t, func() bool { return shapeChildren.Load() == 0 })
	_ = r
}

// The context of a job that is stopped ends, and what it runs.
func TestTypedStopJob(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	running := nap.Call(ctx, cl, Val(time.Hour))
	eventually(t, func() bool { return len(c.head.Tasks(testContext(t), 10)) == 1 })
	require.NoError(t, c.head.StopJob(cl.Job(), "test"))
	_, err := running.Get(ctx)
	require.Error(t, err)
	<-cl.Context().Done()
	require.ErrorIs(t, context.Cause(cl.Context()), ErrJobStopped)
}

func TestPlacementGroups(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	g := NewPlacementGroup(ctx, cl, StrictSpread, 1, 1)
	require.NoError(t, g.Ready(ctx))
	a, b := get(t, where.Call(ctx, cl, NoArg, InGroup(g, 0))), get(t, where.Call(ctx, cl, NoArg, InGroup(g, 1)))
	require.NotEqual(t, a, b)
	no := NewPlacementGroup(ctx, cl, StrictPack, 3)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, no.Ready(short), context.DeadlineExceeded)
	no.Remove()
	g.Remove()
	eventually(t, func() bool { return c.head.Runtime().Groups == 0 })
}

func TestMainRuns(t *testing.T) {
	for _, name := range []string{EnvHead, EnvJoin, EnvToken, EnvCPUs} {
		require.NoError(t, os.Unsetenv(name))
	}
	require.NoError(t, mainOf(testContext(t), func(ctx context.Context, c *Client) error {
		n, err := square.Call(ctx, c, Val(5)).Get(ctx)
		if err == nil && n != 25 {
			err = fmt.Errorf("%d", n)
		}
		return err
	}))
	err := mainOf(testContext(t), func(context.Context, *Client) error { return errOdd })
	require.ErrorIs(t, err, errOdd)
}
