package bench

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"manta/actors"
)

// envelope is what one node must be able to hold. After each step everything must have been given back.
func (e *microEnv) envelope(ctx context.Context, progress func(string, ...any)) (out []MicroEnvelope, err error) {
	steps := []struct {
		name string
		n    int
		run  func(ctx context.Context, n int, full func()) error
	}{
		{"10,000 arguments of one task", 10_000, e.manyArgs},
		{"3,000 results of one task", 3000, e.manyResults},
		{"10,000 values in one get", 10_000, e.manyGets},
		{"1,000,000 queued tasks", 1_000_000, e.manyQueued},
		{"10,000 actors", 10_000, e.manyActors},
	}
	for _, s := range steps {
		progress("%s", s.name)
		before := heapBytes()
		var each float64
		begun := time.Now()
		var paused time.Duration
		full := func() {
			at := time.Now()
			each = float64(int64(heapBytes())-int64(before)) / float64(s.n)
			paused += time.Since(at)
		}
		if err := s.run(ctx, s.n, full); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		out = append(out, MicroEnvelope{Name: s.name, Seconds: (time.Since(begun) - paused).Seconds(), BytesEach: each})
		if err := e.allBack(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return out, nil
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// allBack waits until no object is left and no slot is taken.
func (e *microEnv) allBack(ctx context.Context) error {
	n := e.client.Node()
	for end := time.Now().Add(20 * time.Second); ; {
		runtime.GC()
		held := n.Runtime()
		if held.Objects == 0 && held.Tasks == 0 && held.Actors == 0 && n.Info().RunningTasks == 0 && n.Store().Stats().Objects == 0 {
			return nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("not everything was given back: %+v, %d tasks running, %d objects stored", held, n.Info().RunningTasks, n.Store().Stats().Objects)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (e *microEnv) manyArgs(ctx context.Context, n int, full func()) error {
	args := make([]actors.Arg[[]int], n)
	list := microList()
	for i := range args {
		r, err := actors.Put(ctx, e.client, list)
		if err != nil {
			return err
		}
		args[i] = r
	}
	full()
	sum, err := microSumLists.Call(ctx, e.client, args).Get(ctx)
	if err == nil && sum != n*len(list) {
		err = fmt.Errorf("the sum is %d", sum)
	}
	return err
}

func (e *microEnv) manyResults(ctx context.Context, n int, full func()) error {
	refs := microLists.Call(ctx, e.client, n, actors.Val(n))
	for _, r := range refs {
		l, err := r.Get(ctx)
		if err != nil || len(l) != 10_000 {
			return fmt.Errorf("a list of %d: %w", len(l), err)
		}
	}
	full()
	runtime.KeepAlive(refs)
	return nil
}

func (e *microEnv) manyGets(ctx context.Context, n int, full func()) error {
	refs := make([]*actors.Ref[[]int], n)
	list := microList()
	for i := range refs {
		var err error
		if refs[i], err = actors.Put(ctx, e.client, list); err != nil {
			return err
		}
	}
	full()
	for _, r := range refs {
		if _, err := r.Get(ctx); err != nil {
			return err
		}
	}
	return nil
}

// manyQueued queues tasks behind ones that take every CPU, lets those go, and gets every result.
func (e *microEnv) manyQueued(ctx context.Context, n int, full func()) error {
	blockers := make([]*actors.Ref[int], e.client.Node().Config().CPUs)
	for i := range blockers {
		blockers[i] = microBlock.Call(ctx, e.client, actors.Val(time.Hour))
	}
	refs := make([]*actors.Ref[int], n)
	for i := range refs {
		refs[i] = microTask.Call(ctx, e.client, actors.NoArg)
	}
	full()
	for _, b := range blockers {
		b.Cancel()
	}
	return getAll(ctx, refs)
}

func (e *microEnv) manyActors(ctx context.Context, n int, full func()) error {
	hs := make([]*actors.Handle[microServer], n)
	for i := range hs {
		hs[i] = microServe.Start(ctx, e.client, actors.NoArg)
	}
	refs := make([]*actors.Ref[int], n)
	for i, h := range hs {
		refs[i] = microSmall.Call(ctx, h, actors.NoArg)
	}
	if err := getAll(ctx, refs); err != nil {
		return err
	}
	full()
	for _, h := range hs {
		h.Release()
	}
	return nil
}
