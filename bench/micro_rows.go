package bench

import (
	"context"
	"fmt"
	"time"

	"manta/actors"
)

// microRow is a row of `ray microbenchmark`, under its name there. run does one iteration and says how many of the row's unit it did.
type microRow struct {
	name      string
	published float64 // Ray's figure per second, on a machine of 64 vCPUs
	setup     func(ctx context.Context, e *microEnv) (run func(ctx context.Context) (float64, error), err error)
}

// simple is a row without a setup.
func simple(n float64, f func(ctx context.Context, e *microEnv) error) func(context.Context, *microEnv) (func(context.Context) (float64, error), error) {
	return func(_ context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
		return func(ctx context.Context) (float64, error) { return n, f(ctx, e) }, nil
	}
}

// Sizes of the rows, as in Ray's benchmark but for what would only take longer here.
const (
	microBatchN  = 1000
	microActors  = 32
	microPerCall = 500 // calls to each actor in an iteration of 1:n; 5,000 there
)

// microRows is filled by init: tasks measure rows too.
var microRows []microRow

// microClientRows are run by a client in another process than the head's, as Ray's client does through its proxy.
var microClientRows = map[string]string{
	"client: get calls":                  "single client get calls",
	"client: put calls":                  "single client put calls",
	"client: put gigabytes":              "single client put gigabytes",
	"client: tasks and put batch":        "tasks and put batch",
	"client: 1:1 actor calls sync":       "1:1 actor calls sync",
	"client: 1:1 actor calls async":      "1:1 actor calls async",
	"client: 1:1 actor calls concurrent": "1:1 actor calls concurrent",
	"client: tasks and get batch":        "single client tasks and get batch",
}

func init() {
	microRows = []microRow{
		{"single client get calls", 10620, getCalls},
		{"single client put calls", 5173, simple(1, putOne)},
		{"multi client put calls", 16526, simple(1000, func(ctx context.Context, e *microEnv) error {
			return e.puts(ctx, microPuts{N: 100})
		})},
		{"single client put gigabytes", 19.9, func(_ context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
			data := microBytes(e.big)
			return func(ctx context.Context) (float64, error) {
				r, err := actors.Put(ctx, e.client, data)
				if err != nil {
					return 0, err
				}
				r.Release()
				return float64(len(data)) / 1e9, nil
			}, nil
		}},
		{"multi client put gigabytes", 38.1, func(_ context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
			return func(ctx context.Context) (float64, error) {
				return float64(e.big) / 1e9 * 10, e.puts(ctx, microPuts{N: 10, Bytes: e.big / 10})
			}, nil
		}},
		{"single client tasks and get batch", 5.80, simple(1, func(ctx context.Context, e *microEnv) error {
			return microTasks(ctx, e.client, microBatchN)
		})},
		{"single client get object containing 10k refs", 13.4, getRefs},
		{"single client wait 1k refs", 5.08, simple(1, waitRefs)},
		{"single client tasks sync", 981, simple(1, func(ctx context.Context, e *microEnv) error {
			return microTasks(ctx, e.client, 1)
		})},
		{"single client tasks async", 8041, simple(microBatchN, func(ctx context.Context, e *microEnv) error {
			return microTasks(ctx, e.client, microBatchN)
		})},
		{"multi client tasks async", 21230, func(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
			servers, err := e.servers(ctx, 4)
			return func(ctx context.Context) (float64, error) {
				const each = 10_000
				refs := make([]*actors.Ref[actors.None], len(servers))
				for i, s := range servers {
					refs[i] = microBatch.Call(ctx, s, actors.Val(each))
				}
				return float64(each * len(servers)), getAll(ctx, refs)
			}, err
		}},
		{"1:1 actor calls sync", 2012, oneToOne(1)},
		{"1:1 actor calls async", 8664, oneToOne(microBatchN)},
		{"1:1 actor calls concurrent", 5775, oneToOne(microBatchN, actors.Concurrency(16))},
		{"1:n actor calls async", 8038, oneToMany()},
		{"n:n actor calls async", 27376, manyToMany()},
		{"n:n actor calls with arg async", 2759, manyWithArg},
		{"1:1 async-actor calls sync", 1460, oneToOne(1, actors.Concurrency(1000))},
		{"1:1 async-actor calls async", 4260, oneToOne(microBatchN, actors.Concurrency(1000))},
		{"1:1 async-actor calls with args async", 2836, oneToOneArg},
		{"1:n async-actor calls async", 7383, oneToMany(actors.Concurrency(1000))},
		{"n:n async-actor calls async", 23675, manyToMany(actors.Concurrency(1000))},
		{"placement group create/removal", 765, simple(100, groups)},
		{"client: get calls", 1159, nil},
		{"client: put calls", 817, nil},
		{"client: put gigabytes", 0.156, nil},
		{"client: tasks and put batch", 14560, nil},
		{"client: 1:1 actor calls sync", 538, nil},
		{"client: 1:1 actor calls async", 1099, nil},
		{"client: 1:1 actor calls concurrent", 1085, nil},
		{"client: tasks and get batch", 1.01, nil},
		{"tasks and put batch", 0, simple(1000, func(ctx context.Context, e *microEnv) error {
			return e.puts(ctx, microPuts{N: 100})
		})},
	}
}

func getCalls(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
	r, err := actors.Put(ctx, e.client, 0)
	return func(ctx context.Context) (float64, error) {
		_, err := r.Get(ctx)
		return 1, err
	}, err
}

func putOne(ctx context.Context, e *microEnv) error {
	r, err := actors.Put(ctx, e.client, 0)
	if err == nil {
		r.Release()
	}
	return err
}

// puts has ten tasks put.
func (e *microEnv) puts(ctx context.Context, p microPuts) error {
	refs := make([]*actors.Ref[actors.None], 10)
	for i := range refs {
		refs[i] = microPutTask.Call(ctx, e.client, actors.Val(p))
	}
	return getAll(ctx, refs)
}

func getRefs(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
	refs := make([]*actors.Ref[int], 10_000)
	for i := range refs {
		var err error
		if refs[i], err = actors.Put(ctx, e.client, 1); err != nil {
			return nil, err
		}
	}
	list, err := actors.Put(ctx, e.client, refs)
	return func(ctx context.Context) (float64, error) {
		got, err := list.Get(ctx)
		for _, r := range got {
			r.Release()
		}
		return 1, err
	}, err
}

func waitRefs(ctx context.Context, e *microEnv) error {
	left := make([]*actors.Ref[int], microBatchN)
	for i := range left {
		left[i] = microTask.Call(ctx, e.client, actors.NoArg)
	}
	for len(left) > 0 {
		ready, rest, err := actors.Wait(ctx, left, 1)
		if err != nil {
			return err
		}
		ready[0].Release()
		left = rest
	}
	return nil
}

// servers makes actors that end with their handles.
func (e *microEnv) servers(ctx context.Context, n int, opts ...actors.Option) ([]*actors.Handle[microServer], error) {
	hs := make([]*actors.Handle[microServer], n)
	for i := range hs {
		var err error
		if hs[i], err = microServe.Spawn(ctx, e.client, actors.NoArg, append(opts, actors.Spread())...); err != nil {
			return nil, err
		}
	}
	return hs, nil
}

func oneToOne(n int, opts ...actors.Option) func(context.Context, *microEnv) (func(context.Context) (float64, error), error) {
	return func(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
		s, err := e.servers(ctx, 1, opts...)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) (float64, error) {
			refs := make([]*actors.Ref[int], n)
			for i := range refs {
				refs[i] = microSmall.Call(ctx, s[0], actors.NoArg)
			}
			return float64(n), getAll(ctx, refs)
		}, nil
	}
}

func oneToOneArg(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
	c, err := e.clients(ctx, 1, 1, actors.Concurrency(1000))
	return func(ctx context.Context) (float64, error) {
		return microBatchN, getAll(ctx, []*actors.Ref[actors.None]{microClientBatchArg.Call(ctx, c[0], actors.Val(microBatchN))})
	}, err
}

// clients makes n clients with so many actors each.
func (e *microEnv) clients(ctx context.Context, n, each int, opts ...actors.Option) ([]*actors.Handle[microClient], error) {
	cs := make([]*actors.Handle[microClient], n)
	for i := range cs {
		s, err := e.servers(ctx, each, opts...)
		if err != nil {
			return nil, err
		}
		if cs[i], err = microClients.Spawn(ctx, e.client, actors.Val(s), actors.Spread()); err != nil {
			return nil, err
		}
	}
	return cs, nil
}

func oneToMany(opts ...actors.Option) func(context.Context, *microEnv) (func(context.Context) (float64, error), error) {
	return func(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
		c, err := e.clients(ctx, 1, microActors, opts...)
		return func(ctx context.Context) (float64, error) {
			return microPerCall * microActors, getAll(ctx, []*actors.Ref[actors.None]{microClientBatch.Call(ctx, c[0], actors.Val(microPerCall))})
		}, err
	}
}

func manyToMany(opts ...actors.Option) func(context.Context, *microEnv) (func(context.Context) (float64, error), error) {
	return func(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
		s, err := e.servers(ctx, microActors, opts...)
		return func(ctx context.Context) (float64, error) {
			const each, n = 5000, 4
			refs := make([]*actors.Ref[actors.None], n)
			for i := range refs {
				refs[i] = microSpreadTask.Call(ctx, e.client, actors.Val(microSpread{s, each}))
			}
			return each * n, getAll(ctx, refs)
		}, err
	}
}

func manyWithArg(ctx context.Context, e *microEnv) (func(context.Context) (float64, error), error) {
	cs, err := e.clients(ctx, microActors, 1)
	return func(ctx context.Context) (float64, error) {
		refs := make([]*actors.Ref[actors.None], len(cs))
		for i, c := range cs {
			refs[i] = microClientBatchArg.Call(ctx, c, actors.Val(microBatchN))
		}
		return float64(microBatchN * len(cs)), getAll(ctx, refs)
	}, err
}

func groups(ctx context.Context, e *microEnv) error {
	for range 100 {
		g := actors.NewPlacementGroup(ctx, e.client, actors.Pack, 0.001)
		if err := g.Ready(ctx); err != nil {
			return err
		}
		g.Remove()
	}
	return nil
}

// measure gives a row's rate; 0 if it is not measured here.
func (e *microEnv) measure(ctx context.Context, row microRow) (rate float64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", row.name, err)
		}
	}()
	if of, ok := microClientRows[row.name]; ok {
		if !e.cross {
			return 0, nil
		}
		r := microRemoteTask.Call(ctx, e.client, actors.Val(microRemote{Row: of, For: e.perRow, Runs: e.runs, Bytes: e.big}))
		defer r.Release()
		return r.Get(ctx)
	}
	return e.time(ctx, row)
}

// time is the median of some runs.
func (e *microEnv) time(ctx context.Context, row microRow) (float64, error) {
	run, err := row.setup(ctx, e)
	if err != nil {
		return 0, err
	}
	if _, err := run(ctx); err != nil { // once for nothing
		return 0, err
	}
	rates := make([]float64, 0, e.runs)
	for range e.runs {
		var units float64
		begun := time.Now()
		for time.Since(begun) < e.perRow {
			n, err := run(ctx)
			if err != nil {
				return 0, err
			}
			units += n
		}
		rates = append(rates, units/time.Since(begun).Seconds())
	}
	return median(rates), nil
}
