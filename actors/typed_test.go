package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	errOdd = errors.New("odd")

	square = NewTask("test.square", func(_ context.Context, x int) (int, error) { return x * x, nil })
	add    = NewTask2("test.add", func(_ context.Context, x, y int) (int, error) { return x + y, nil })
	sum    = NewGather("test.sum", func(_ context.Context, xs []int) (n int, err error) {
		for _, x := range xs {
			n += x
		}
		return n, nil
	})
	even = NewTask("test.even", func(_ context.Context, x int) (int, error) {
		if x%2 == 1 {
			return 0, fmt.Errorf("%d: %w", x, errOdd)
		}
		return x, nil
	})
	where  = NewTask("test.where", func(ctx context.Context, _ None) (string, error) { return string(From(ctx).Node().ID()), nil })
	large  = NewTask("test.large", func(_ context.Context, n int) ([]byte, error) { return []byte(strings.Repeat("x", n)), nil })
	length = NewTask("test.length", func(_ context.Context, b []byte) (int, error) { return len(b), nil })
	parts  = NewMulti("test.parts", func(_ context.Context, n int) ([]int, error) {
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out, nil
	})
	nap = NewTask("test.nap", func(ctx context.Context, d time.Duration) (None, error) {
		select {
		case <-time.After(d):
			return None{}, nil
		case <-ctx.Done():
			return None{}, context.Cause(ctx)
		}
	})
	fib   *TaskDef[int, int]
	count = NewGenerator("test.count", func(_ context.Context, n int, yield func(int) error) error {
		for i := range n {
			if err := yield(i); err != nil {
				return err
			}
		}
		return nil
	})
	drain = NewTask("test.drain", func(ctx context.Context, in struct{ S *Stream[int] }) (n int, err error) {
		for v, err := range in.S.All(ctx) {
			if err != nil {
				return n, err
			}
			n += v
		}
		return n, nil
	})
	inside = NewTask("test.inside", func(ctx context.Context, refs []*Ref[int]) (n int, err error) {
		for _, r := range refs {
			v, err := r.Get(ctx)
			if err != nil {
				return 0, err
			}
			n += v
		}
		return n, nil
	})
	pass = NewTask("test.pass", func(_ context.Context, r []*Ref[[]byte]) ([]*Ref[[]byte], error) { return r, nil })
)

func init() {
	RegisterError("test.odd", errOdd)
	fib = NewTask("test.fib", func(ctx context.Context, n int) (int, error) {
		if n < 2 {
			return n, nil
		}
		a, b := fib.Call(ctx, From(ctx), Val(n-1)), fib.Call(ctx, From(ctx), Val(n-2))
		x, err := a.Get(ctx)
		if err != nil {
			return 0, err
		}
		y, err := b.Get(ctx)
		return x + y, err
	})
}

type counter struct {
	n    int
	seen []int
}

func (c *counter) Add(_ context.Context, x int) (int, error) { c.n += x; return c.n, nil }
func (c *counter) Note(_ context.Context, x int) (None, error) {
	c.seen = append(c.seen, x)
	return None{}, nil
}
func (c *counter) Seen(context.Context, None) ([]int, error) { return c.seen, nil }
func (c *counter) Where(ctx context.Context, _ None) (string, error) {
	return string(From(ctx).Node().ID()), nil
}
func (c *counter) Boom(context.Context, None) (None, error) { panic("boom") }

var (
	counters = NewActor("test.counter", func(_ context.Context, start int) (*counter, error) {
		if start < 0 {
			return nil, errOdd
		}
		return &counter{n: start}, nil
	})
	counterAdd   = Method(counters, "add", (*counter).Add)
	counterNote  = Method(counters, "note", (*counter).Note)
	counterSeen  = Method(counters, "seen", (*counter).Seen)
	counterWhere = Method(counters, "where", (*counter).Where)
	counterBoom  = Method(counters, "boom", (*counter).Boom)
)

// client starts a job, and checks at its end that nothing of it is left anywhere.
func (c *cluster) client() *Client {
	c.t.Helper()
	return c.clientOn(c.head)
}

func (c *cluster) clientOn(n *Node) *Client {
	c.t.Helper()
	cl, err := n.NewClient(context.Background(), JobSpec{Name: c.t.Name()})
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		require.NoError(c.t, cl.Close(nil))
		c.clean()
	})
	return cl
}

// clean checks that no job has left anything.
func (c *cluster) clean() {
	c.t.Helper()
	c.quiet()
	eventually(c.t, func() bool {
		for _, n := range c.nodes {
			rt := n.engine
			rt.mu.Lock()
			left := len(rt.entries) + len(rt.attempts) + len(rt.instances) + len(rt.sources) + len(rt.readers) + len(rt.kept)
			rt.mu.Unlock()
			if (left > 0 || rt.direct != nil && !rt.direct.idle()) && n.ctx.Err() == nil {
				return false
			}
			if b := rt.brain; b != nil {
				b.mu.Lock()
				counts := b.core.Counts()
				b.mu.Unlock()
				if counts.Objects+counts.Tasks+counts.Streams+counts.Groups+counts.Lineage > 0 {
					return false
				}
			}
			if n.ctx.Err() == nil && n.store.Stats().Objects > 0 {
				return false
			}
		}
		return true
	}, "something of a job is left")
}

func get[T any](t *testing.T, r *Ref[T]) T {
	t.Helper()
	v, err := r.Get(testContext(t))
	require.NoError(t, err)
	return v
}

// shapes runs a test on one node, and with workers.
func shapes(t *testing.T, f func(t *testing.T, c *cluster, cl *Client)) {
	for _, workers := range []int{0, 2} {
		t.Run(fmt.Sprintf("workers=%d", workers), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, workers, nil, func(cfg *Config) {
				if workers > 0 && cfg.Head == "" {
					cfg.NoTasks = true
				}
			})
			f(t, c, c.client())
		})
	}
}

func TestTypedTasks(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		a := square.Call(ctx, cl, Val(3))
		b := square.Call(ctx, cl, a)
		require.Equal(t, 81, get(t, b))
		require.Equal(t, 90, get(t, add.Call(ctx, cl, a, b)))
		var args []Arg[int]
		for i := range 100 {
			args = append(args, Val(i))
		}
		require.Equal(t, 4950+9, get(t, sum.Call(ctx, cl, append(args, a))))
		_, err := even.Call(ctx, cl, Val(7)).Get(ctx)
		require.ErrorIs(t, err, errOdd)
		_, err = square.Call(ctx, cl, even.Call(ctx, cl, Val(7))).Get(ctx)
		require.ErrorIs(t, err, errOdd, "an argument's error")
		for i, r := range parts.Call(ctx, cl, 10, Val(10)) {
			require.Equal(t, i, get(t, r))
		}
		require.Equal(t, 55, get(t, fib.Call(ctx, cl, Val(10))))
		require.Equal(t, 1<<20, get(t, length.Call(ctx, cl, large.Call(ctx, cl, Val(1<<20)))))
		put, err := Put(ctx, cl, []byte("hello"))
		require.NoError(t, err)
		require.Equal(t, 5, get(t, length.Call(ctx, cl, put)))
		require.Equal(t, 18, get(t, inside.Call(ctx, cl, Val([]*Ref[int]{a, a}))))
		big := large.Call(ctx, cl, Val(300<<10))
		nested := get(t, pass.Call(ctx, cl, Val([]*Ref[[]byte]{big})))
		big.Release()
		require.Len(t, get(t, nested[0]), 300<<10)
	})
}

func TestTypedActors(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		h, err := counters.Spawn(ctx, cl, Val(10), Name("hits"))
		require.NoError(t, err)
		require.Equal(t, 15, get(t, counterAdd.Call(ctx, h, Val(5))))
		_, err = counters.Spawn(ctx, cl, Val(1), Name("hits"))
		require.ErrorIs(t, err, ErrActorExists)
		same, err := counters.Spawn(ctx, cl, Val(1), Name("hits"), GetOrCreate())
		require.NoError(t, err)
		require.Equal(t, 16, get(t, counterAdd.Call(ctx, same, Val(1))))
		found, err := counters.Find(ctx, cl, "hits")
		require.NoError(t, err)
		require.Equal(t, 17, get(t, counterAdd.Call(ctx, found, Val(1))))
		_, err = counters.Find(ctx, cl, "misses")
		require.ErrorIs(t, err, ErrActorNotFound)
		_, err = counterBoom.Call(ctx, h, NoArg).Get(ctx)
		require.ErrorIs(t, err, ErrPanic)
		var run *RunError
		require.ErrorAs(t, err, &run)
		require.Contains(t, run.Stack, "Boom")
		_, err = counters.Spawn(ctx, cl, Val(-1))
		require.ErrorIs(t, err, errOdd)
		for i := range 200 {
			arg := Val(i)
			if i%7 == 0 {
				arg = square.Call(ctx, cl, Val(i)) // waits, and those behind it
			}
			counterNote.Call(ctx, h, arg)
		}
		seen := get(t, counterSeen.Call(ctx, h, NoArg))
		require.Len(t, seen, 200)
		for i, x := range seen {
			if i%7 == 0 {
				i *= i
			}
			require.Equal(t, i, x)
		}
		h.Kill()
		_, err = counterAdd.Call(ctx, h, Val(1)).Get(ctx)
		require.ErrorIs(t, err, ErrActorDead)
	})
}

func TestTypedStreams(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		s := count.Call(ctx, cl, Val(1000), Window(7))
		n := 0
		for v, err := range s.All(ctx) {
			require.NoError(t, err)
			require.Equal(t, n, v)
			if n++; n == 300 {
				break
			}
		}
		// The rest goes to a task, which stops nowhere.
		rest := get(t, drain.Call(ctx, cl, Val(struct{ S *Stream[int] }{s})))
		require.Equal(t, 999*1000/2-299*300/2, rest)

		two := count.Call(ctx, cl, Val(50), Readers(2), Window(3))
		sums := make(chan int, 2)
		for k := range 2 {
			r := two.Reader(k)
			go func() {
				n := 0
				for v, err := range r.All(ctx) {
					if err != nil {
						n = -1 << 30
					}
					n += v
				}
				sums <- n
			}()
		}
		require.Equal(t, 1225, <-sums)
		require.Equal(t, 1225, <-sums)

		snd, open := Open[string](ctx, cl)
		go func() {
			for i := range 10 {
				_ = snd.Send(ctx, fmt.Sprint(i))
			}
			snd.Close(errOdd)
		}()
		var got []string
		var last error
		for v, err := range open.All(ctx) {
			if err != nil {
				last = err
				break
			}
			got = append(got, v)
		}
		require.Len(t, got, 10)
		require.ErrorIs(t, last, errOdd)
	})
}

func TestTypedRelease(t *testing.T) {
	c := newCluster(t, 1, nil, nil)
	cl := c.client()
	ctx := testContext(t)
	for i := range 20 {
		r := large.Call(ctx, cl, Val(1<<20))
		require.Equal(t, 1<<20, get(t, length.Call(ctx, cl, r)))
		if i%2 == 0 {
			r.Release()
		}
	}
	eventually(t, func() bool {
		runtime.GC()
		objects := 0
		for _, n := range c.nodes {
			objects += int(n.store.Stats().Objects)
		}
		return objects == 0
	})
}

func TestTypedCancel(t *testing.T) {
	shapes(t, func(t *testing.T, c *cluster, cl *Client) {
		ctx := testContext(t)
		var naps []*Ref[None]
		for range 20 {
			naps = append(naps, nap.Call(ctx, cl, Val(time.Hour)))
		}
		time.Sleep(20 * time.Millisecond)
		for _, r := range naps {
			r.Cancel()
		}
		for _, r := range naps {
			_, err := r.Get(ctx)
			require.ErrorIs(t, err, context.Canceled)
		}
		_, err := nap.Call(ctx, cl, Val(time.Hour), Timeout(20*time.Millisecond)).Get(ctx)
		require.ErrorIs(t, err, ErrTaskTimeout)
		quick, slow := nap.Call(ctx, cl, Val(time.Duration(0))), nap.Call(ctx, cl, Val(time.Hour))
		ready, rest, err := Wait(ctx, []*Ref[None]{slow, quick}, 1)
		require.NoError(t, err)
		require.Equal(t, []*Ref[None]{quick}, ready)
		require.Equal(t, []*Ref[None]{slow}, rest)
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		ready, _, err = Wait(short, rest, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, ready)
	})
}
