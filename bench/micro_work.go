package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	"manta/actors"
)

// The tasks and actors of the microbenchmark. They are declared in every process, so that a node of the same binary can run them.

type microServer struct{}

func (*microServer) Small(context.Context, actors.None) (int, error) { return 0, nil }
func (*microServer) SmallArg(_ context.Context, x int) (int, error)  { return x, nil }

// SmallBatch submits n tasks and gets their results.
func (*microServer) SmallBatch(ctx context.Context, n int) (actors.None, error) {
	return actors.None{}, microTasks(ctx, actors.From(ctx), n)
}

// microClient is an actor that calls others.
type microClient struct{ servers []*actors.Handle[microServer] }

func (c *microClient) Batch(ctx context.Context, n int) (actors.None, error) {
	refs := make([]*actors.Ref[int], 0, n*len(c.servers))
	for _, s := range c.servers {
		for range n {
			refs = append(refs, microSmall.Call(ctx, s, actors.NoArg))
		}
	}
	return actors.None{}, getAll(ctx, refs)
}

func (c *microClient) BatchArg(ctx context.Context, n int) (actors.None, error) {
	x, err := actors.Put(ctx, actors.From(ctx), 0)
	if err != nil {
		return actors.None{}, err
	}
	refs := make([]*actors.Ref[int], 0, n*len(c.servers))
	for _, s := range c.servers {
		for range n {
			refs = append(refs, microSmallArg.Call(ctx, s, x))
		}
	}
	return actors.None{}, getAll(ctx, refs)
}

// microSpread is a task's argument: call the servers in turn, n times in all.
type microSpread struct {
	Servers []*actors.Handle[microServer]
	N       int
}

// microPuts is a task's argument: put n values of so many bytes.
type microPuts struct{ N, Bytes int }

// microRemote is a task's argument: run the row as a client that is not on the head, for so long.
type microRemote struct {
	Row   string
	For   time.Duration
	Runs  int
	Bytes int
}

var (
	microTask    = actors.NewTask("bench.small", func(context.Context, actors.None) (int, error) { return 0, nil })
	microServe   = actors.NewActor("bench.server", func(context.Context, actors.None) (*microServer, error) { return &microServer{}, nil })
	microSmall   = actors.Method(microServe, "small", (*microServer).Small)
	microBatch   = actors.Method(microServe, "batch", (*microServer).SmallBatch)
	microClients = actors.NewActor("bench.client", func(_ context.Context, servers []*actors.Handle[microServer]) (*microClient, error) {
		return &microClient{servers}, nil
	})
	microSmallArg       = actors.Method(microServe, "small_arg", (*microServer).SmallArg)
	microClientBatch    = actors.Method(microClients, "batch", (*microClient).Batch)
	microClientBatchArg = actors.Method(microClients, "batch_arg", (*microClient).BatchArg)

	microPutTask = actors.NewTask("bench.put", func(ctx context.Context, p microPuts) (actors.None, error) {
		c := actors.From(ctx)
		if p.Bytes == 0 {
			for range p.N {
				r, err := actors.Put(ctx, c, 0)
				if err != nil {
					return actors.None{}, err
				}
				r.Release()
			}
			return actors.None{}, nil
		}
		data := microBytes(p.Bytes)
		for range p.N {
			r, err := actors.Put(ctx, c, data)
			if err != nil {
				return actors.None{}, err
			}
			r.Release()
		}
		return actors.None{}, nil
	})
	microSpreadTask = actors.NewTask("bench.spread", func(ctx context.Context, s microSpread) (actors.None, error) {
		refs := make([]*actors.Ref[int], s.N)
		for i := range refs {
			refs[i] = microSmall.Call(ctx, s.Servers[i%len(s.Servers)], actors.NoArg)
		}
		return actors.None{}, getAll(ctx, refs)
	})
	microRemoteTask = actors.NewTask("bench.remote", func(ctx context.Context, r microRemote) (float64, error) {
		e := &microEnv{client: actors.From(ctx), perRow: r.For, runs: r.Runs, big: r.Bytes}
		for _, row := range microRows {
			if row.name == r.Row {
				return e.time(ctx, row)
			}
		}
		return 0, fmt.Errorf("no row is named %q", r.Row)
	})

	microSumLists = actors.NewGather("bench.sum_lists", func(_ context.Context, lists [][]int) (n int, err error) {
		for _, l := range lists {
			n += len(l)
		}
		return n, nil
	})
	microLists = actors.NewMulti("bench.lists", func(_ context.Context, n int) ([][]int, error) {
		out := make([][]int, n)
		for i := range out {
			out[i] = microList()
		}
		return out, nil
	})
	microBlock = actors.NewTask("bench.block", func(ctx context.Context, d time.Duration) (int, error) {
		for end := time.Now().Add(d); time.Now().Before(end) && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
		}
		return 0, context.Cause(ctx)
	})
)

func microList() []int {
	l := make([]int, 10_000)
	for i := range l {
		l[i] = i
	}
	return l
}

var microData struct {
	sync.Mutex
	b []byte
}

// microBytes is so many bytes, made once in a process.
func microBytes(n int) []byte {
	microData.Lock()
	defer microData.Unlock()
	if len(microData.b) < n {
		microData.b = make([]byte, n)
		for i := range microData.b {
			microData.b[i] = byte(i)
		}
	}
	return microData.b[:n]
}

func microTasks(ctx context.Context, c *actors.Client, n int) error {
	refs := make([]*actors.Ref[int], n)
	for i := range refs {
		refs[i] = microTask.Call(ctx, c, actors.NoArg)
	}
	return getAll(ctx, refs)
}

// getAll gets the values and releases their references.
func getAll[T any](ctx context.Context, refs []*actors.Ref[T]) error {
	for _, r := range refs {
		if _, err := r.Get(ctx); err != nil {
			return err
		}
		r.Release()
	}
	return nil
}
