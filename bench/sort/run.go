package sort

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"manta/actors"
	"manta/bench"
	"manta/bench/limits"
	"manta/objectstore"
	exchange "manta/shuffle"
)

// Run measures. A mode that fails is a result with an error. Nothing is left behind.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "manta-bench-sort-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// What is garbage counts in the process's memory, too.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(o.Memory * 7 / 8))

	o.Progress("making %d MiB of records", o.Bytes>>20)
	want, err := generateAll(&o, dir)
	if err != nil {
		return nil, err
	}
	w := &worker{dir: dir, sorters: make(chan *sorter, o.Cores)}
	w.exchange = exchange.NewService(exchange.Config{MemoryLimit: o.exchangeMemory(), Dir: filepath.Join(dir, "exchange")})
	n, err := actors.Start(ctx, actors.Config{
		DataDir: dir, InProcess: actors.NewHub(), CPUs: o.Cores, Services: []actors.Service{w.exchange}, Tasks: w.tasks(),
		Store: objectstore.Config{Dir: filepath.Join(dir, "store"), MemoryLimit: o.storeMemory()},
		// A benchmark takes every core; a heartbeat may come late.
		Heartbeat: time.Second, Lease: 20 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()

	runs := map[exchange.Mode][]Result{}
	var machine []Limits
	for i := range o.Runs {
		o.Progress("round %d of %d: the machine's limits", i+1, o.Runs)
		l, err := measureLimits(&o, dir)
		if err != nil {
			return nil, err
		}
		machine = append(machine, l)
		for range cap(w.sorters) {
			w.sorters <- newSorter(dir, o.sorterMemory())
		}
		for _, mode := range o.Modes {
			o.Progress("round %d of %d: %s", i+1, o.Runs, mode)
			debug.FreeOSMemory()
			before := limits.Spin()
			r, err := (&sorting{o: &o, node: n, worker: w, mode: mode, want: want}).run(ctx)
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				r.Error = err.Error()
			}
			r.SpinBefore, r.SpinAfter = before, limits.Spin()
			runs[mode] = append(runs[mode], r)
		}
		for range cap(w.sorters) {
			<-w.sorters
		}
	}
	report = &Report{Machine: bench.ThisMachine(), Versions: bench.Versions()}
	for _, mode := range o.Modes {
		report.Results = append(report.Results, summarize(runs[mode], machine))
	}
	return report, nil
}

// generateAll makes an input for each core.
func generateAll(o *Options, dir string) (all summary, err error) {
	parts := make([]summary, o.Cores)
	total, n := o.Bytes/recordBytes, int64(o.Cores)
	var g errgroup.Group
	for i := range o.Cores {
		g.Go(func() (err error) {
			records := total*int64(i+1)/n - total*int64(i)/n
			parts[i], err = generate(input(dir, i), uint64(i+1), records)
			return err
		})
	}
	err = g.Wait()
	for _, p := range parts {
		all.add(p)
	}
	return all, err
}

// measureLimits measures the machine once.
func measureLimits(o *Options, dir string) (l Limits, err error) {
	amount := min(o.Bytes, 1<<30)
	l.Memcpy = limits.Memcpy(o.Cores, amount)
	if l.TCP, err = limits.TCP(amount); err != nil {
		return l, err
	}
	write, read, err := limits.Disk(dir, amount)
	if err != nil {
		return l, err
	}
	l.Disk = 1 / (1/write + 1/read)
	l.Sort = sortInMemory(o)
	return l, nil
}

// sortInMemory sorts random records on every core.
func sortInMemory(o *Options) float64 {
	memory := min(o.sorterMemory(), 64<<20, o.Bytes/int64(o.Cores)+recordBytes)
	sorters := make([]*sorter, o.Cores)
	for i := range sorters {
		s := newSorter("", memory)
		random := rand.New(rand.NewPCG(uint64(i), 5))
		for len(s.data) < cap(s.data) {
			s.entries = append(s.entries, entry{random.Uint64(), uint32(len(s.entries))})
			s.data = s.data[:len(s.data)+recordBytes]
		}
		sorters[i] = s
	}
	var wg sync.WaitGroup
	bytes := int64(0)
	start := time.Now()
	for _, s := range sorters {
		bytes += int64(len(s.data))
		wg.Go(s.order)
	}
	wg.Wait()
	return limits.Rate(bytes, time.Since(start))
}

// sorting is one sort.
type sorting struct {
	o      *Options
	node   *actors.Node
	worker *worker
	mode   exchange.Mode
	want   summary

	r    Result
	all  []done // of all tasks
	edge []byte
	job  *actors.Job
}

func (s *sorting) run(ctx context.Context) (Result, error) {
	o, n := s.o, s.node
	s.r = Result{
		Mode: s.mode, Records: s.want.Records, Bytes: s.want.Records * recordBytes, Ranges: o.ranges(s.mode), Cores: o.Cores,
		MemoryMiB: mib(o.Memory), ExchangeMiB: mib(o.exchangeMemory()),
	}
	defer s.removeOutput()
	stalls, stored := s.worker.exchange.Stats().Stalls, n.Store().Stats().BytesSpilled
	limits.ResetPeak()
	before := limits.ThisProcess()
	start := time.Now()
	err := s.sort(ctx)
	elapsed := time.Since(start)
	after := limits.ThisProcess()
	if err != nil {
		return s.r, err
	}
	s.r.Seconds = elapsed.Seconds()
	s.r.GBps = limits.Rate(s.r.Bytes, elapsed)
	s.r.GBpsPerCore = limits.Rate(s.r.Bytes, after.CPU-before.CPU)
	s.r.MBpsPerCPUWall = s.r.GBps * 1000 / float64(o.Cores)
	s.r.PeakRSSMiB = mib(after.RSS)
	stats := s.worker.exchange.Stats()
	s.r.ExchangePeakMiB, s.r.Watchdog = mib(stats.PeakBusy), stats.Stalls-stalls
	s.r.BytesSpilled += n.Store().Stats().BytesSpilled - stored
	return s.r, s.check()
}

// sort is what the clock runs for.
func (s *sorting) sort(ctx context.Context) (err error) {
	o, node := s.o, s.node.ID()
	var sampled []byte
	for i := range o.Cores {
		part, err := sample(input(s.worker.dir, i), 128*s.r.Ranges/o.Cores+1)
		if err != nil {
			return err
		}
		sampled = append(sampled, part...)
	}
	s.job, err = s.node.NewJob(ctx, actors.JobSpec{Name: "bench sort " + string(s.mode)})
	if err != nil {
		return err
	}
	defer func() { s.job.Finish(err) }()
	edge := &exchange.Edge{
		Job: s.job.ID(), ID: 1, Mode: s.mode,
		Producers: slices.Repeat([]actors.NodeID{node}, o.Cores), Consumers: slices.Repeat([]actors.NodeID{node}, s.r.Ranges),
	}
	if s.edge, err = edge.MarshalBinary(); err != nil {
		return err
	}
	if s.mode == exchange.Streaming && s.r.Ranges > o.Cores {
		return fmt.Errorf("bench: streaming needs a reader for each of the %d ranges at once, and there is memory for %d", s.r.Ranges, o.Cores)
	}
	s.all = make([]done, o.Cores+s.r.Ranges)
	partition := func(ctx context.Context) error {
		return s.tasks(ctx, "partition", o.Cores, o.Cores, s.all[:o.Cores], sampled)
	}
	order := func(ctx context.Context) error {
		return s.tasks(ctx, "sort", s.r.Ranges, o.Cores, s.all[o.Cores:], nil)
	}
	if s.mode != exchange.Streaming {
		if err := partition(ctx); err != nil {
			return err
		}
		return order(ctx)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return partition(ctx) })
	g.Go(func() error { return order(ctx) })
	return g.Wait()
}

// tasks runs n tasks, so many at once.
func (s *sorting) tasks(ctx context.Context, name string, n, atOnce int, results []done, sampled []byte) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i := range n {
		g.Go(func() error {
			arg, err := json.Marshal(work{Edge: s.edge, Index: i, Sample: sampled, Ranges: s.r.Ranges})
			if err != nil {
				return err
			}
			t, err := s.job.Submit(actors.TaskSpec{Func: name, Arg: arg, Node: s.node.ID()})
			if err != nil {
				return err
			}
			data, err := t.Wait(ctx)
			if err != nil {
				return err
			}
			return json.Unmarshal(data, &results[i])
		})
	}
	return g.Wait()
}

// check adds up what the tasks did and reads the output.
func (s *sorting) check() error {
	largest := int64(0)
	for i, d := range s.all {
		s.r.ControlMessages += d.Counters.ControlMessages
		s.r.CreditWait += d.Counters.CreditWait.Seconds()
		s.r.BytesSpilled += d.Spilled
		if i < s.o.Cores {
			s.r.References += d.Counters.References
			s.r.Objects += d.Counters.Objects
			s.r.BytesSpilled += d.Counters.BytesSpilled
			continue
		}
		largest = max(largest, d.Records)
	}
	s.r.LargestRange = float64(largest) * float64(s.r.Ranges) / float64(max(s.want.Records, 1))
	s.o.Progress("reading the output of %s", s.mode)
	var files []string
	for i := range s.r.Ranges {
		files = append(files, output(s.worker.dir, i))
	}
	got, err := validate(files)
	if err != nil {
		return err
	}
	if got != s.want {
		return fmt.Errorf("bench: %d records (sum %x) went in, %d (sum %x) came out", s.want.Records, s.want.Sum, got.Records, got.Sum)
	}
	s.r.Validated = true
	return nil
}

func (s *sorting) removeOutput() {
	for i := range s.r.Ranges {
		_ = os.Remove(output(s.worker.dir, i))
	}
}

func summarize(runs []Result, machine []Limits) Result {
	median := func(of func(Limits) float64) float64 {
		var v []float64
		for _, l := range machine {
			v = append(v, of(l))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	l := Limits{
		Memcpy: median(func(l Limits) float64 { return l.Memcpy }),
		TCP:    median(func(l Limits) float64 { return l.TCP }),
		Disk:   median(func(l Limits) float64 { return l.Disk }),
		Sort:   median(func(l Limits) float64 { return l.Sort }),
	}
	for _, r := range runs {
		if r.Error != "" {
			r.Limits = l
			return r
		}
	}
	slices.SortFunc(runs, func(a, b Result) int {
		if a.Seconds < b.Seconds {
			return -1
		}
		return 1
	})
	r := runs[len(runs)/2]
	r.SecondsMin, r.SecondsMax = runs[0].Seconds, runs[len(runs)-1].Seconds
	for _, x := range runs {
		r.PeakRSSMiB = max(r.PeakRSSMiB, x.PeakRSSMiB)
		r.ExchangePeakMiB = max(r.ExchangePeakMiB, x.ExchangePeakMiB)
		r.Watchdog = max(r.Watchdog, x.Watchdog)
	}
	r.Limits = l
	r.OfLimit = r.GBps * (1/l.Sort + 2/l.Disk)
	return r
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
