package shuffle

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"manta/actors"
	"manta/bench"
	"manta/bench/limits"
	exchange "manta/shuffle"
)

// Run measures. A mode that fails is a result with an error. Nothing is left behind.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := c.close(); err == nil && e != nil {
			report, err = nil, e
		}
	}()
	s := shape{Rows: o.RowsPerBatch, Columns: o.Columns, Partitions: o.Partitions, Skew: o.Skew}
	in := makeInput(s, 1)
	defer in.release()
	runs := map[exchange.Mode][]Result{}
	var machine []Limits
	for i := range o.Runs {
		o.Progress("round %d of %d: the machine's limits", i+1, o.Runs)
		l, err := measureLimits(&o, s, in)
		if err != nil {
			return nil, err
		}
		machine = append(machine, l)
		for _, mode := range o.Modes {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if r := runs[mode]; len(r) > 0 && r[len(r)-1].Error != "" {
				continue
			}
			o.Progress("round %d of %d: %s", i+1, o.Runs, mode)
			debug.FreeOSMemory()
			before := limits.Spin()
			r, err := c.measure(ctx, &o, s, mode, slow{})
			if err == nil && o.Slow > 0 {
				r, err = c.measureSlow(ctx, &o, s, mode, r)
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if err != nil {
				r.Error = err.Error()
			}
			r.SpinBefore, r.SpinAfter = before, limits.Spin()
			runs[mode] = append(runs[mode], r)
		}
	}
	report = &Report{Machine: bench.ThisMachine(), Versions: bench.Versions()}
	for _, mode := range o.Modes {
		report.Results = append(report.Results, summarize(&o, runs[mode], medians(machine)))
	}
	return report, nil
}

// measureSlow runs the exchange again with a slow reader, after a run without.
func (c *cluster) measureSlow(ctx context.Context, o *Options, s shape, mode exchange.Mode, without Result) (Result, error) {
	share := float64(without.Bytes) / float64(o.Partitions)
	r, err := c.measure(ctx, o, s, mode, slow{
		Rate: max(1, int64(share/without.Seconds)/int64(o.Slow)),
		For:  time.Duration(5*without.Seconds*float64(time.Second)) + time.Second,
	})
	r.Slow = o.Slow
	if err == nil {
		r.OthersSpeed = without.OthersSeconds / r.OthersSeconds
	}
	return r, err
}

// measure runs one exchange. The reader of partition 0 is as slow as it is told.
func (c *cluster) measure(ctx context.Context, o *Options, s shape, mode exchange.Mode, first slow) (r Result, err error) {
	r = Result{
		Mode: mode, Processes: o.Processes, Producers: o.Producers, Partitions: o.Partitions,
		RowsPerBatch: o.RowsPerBatch, Columns: o.Columns, Skew: o.Skew, ExchangeMiB: mib(o.Memory),
	}
	job, err := c.head.NewJob(ctx, actors.JobSpec{Name: "bench shuffle " + string(mode)})
	if err != nil {
		return r, err
	}
	defer func() { job.Finish(err) }()
	edge := c.edge(o, job.ID(), mode)
	data, err := edge.MarshalBinary()
	if err != nil {
		return r, err
	}
	var prepare, all []actors.TaskSpec
	total := o.Bytes / s.width()
	for i, node := range edge.Producers {
		n := int64(o.Producers)
		rows := total*int64(i+1)/n - total*int64(i)/n
		arg := encode(run{Shape: s, Edge: data, Index: i, Rows: rows})
		prepare = append(prepare, actors.TaskSpec{Func: "prepare", Arg: arg, Node: node})
		all = append(all, actors.TaskSpec{Func: "produce", Arg: arg, Node: node})
	}
	for p, node := range edge.Consumers {
		arg := run{Shape: s, Edge: data, Index: p}
		if p == 0 {
			arg.Slow = first
		}
		all = append(all, actors.TaskSpec{Func: "consume", Arg: encode(arg), Node: node})
	}
	if _, err := wait(ctx, job, prepare); err != nil {
		return r, err
	}
	if _, err := c.onEach(ctx, job, "begin"); err != nil {
		return r, err
	}
	start := time.Now()
	results, err := wait(ctx, job, all)
	elapsed := time.Since(start)
	if err != nil {
		return r, err
	}
	after, err := c.onEach(ctx, job, "end")
	if err != nil {
		return r, err
	}
	r.Seconds = elapsed.Seconds()
	if err := r.count(o, s, results); err != nil {
		return r, err
	}
	for _, d := range results[o.Producers+min(1, o.Partitions-1):] {
		r.OthersSeconds = max(r.OthersSeconds, d.Took.Seconds())
	}
	for p, at := range edge.Consumers {
		for _, from := range edge.Producers {
			if from != at { // every producer sends a partition about as much
				r.Crossed += results[o.Producers+p].Rows * s.width() / int64(o.Producers)
			}
		}
	}
	var cpu time.Duration
	for _, a := range after {
		cpu += a.Process.CPU
		r.PeakRSSMiB += mib(a.Process.RSS)
		r.ExchangePeakMiB = max(r.ExchangePeakMiB, mib(a.Stats.PeakBusy))
		r.BytesSpilled += a.Spilled
		r.Watchdog += a.Stats.Stalls
	}
	r.GBpsPerCore = limits.Rate(r.Bytes, cpu)
	return r, nil
}

// count adds up what the tasks did, and refuses a run in which a row was lost or changed.
func (r *Result) count(o *Options, s shape, results []done) error {
	var wrote, read done
	var parts []int64
	for i, d := range results {
		side := &wrote
		if i >= o.Producers {
			side = &read
			parts = append(parts, d.Rows)
		}
		side.Rows += d.Rows
		side.Sum += d.Sum
		side.Counters.Add(d.Counters)
	}
	if wrote.Rows != read.Rows || wrote.Sum != read.Sum {
		return fmt.Errorf("bench: %d rows (sum %d) went in, %d (sum %d) came out", wrote.Rows, wrote.Sum, read.Rows, read.Sum)
	}
	w, n := wrote.Counters, read.Counters
	r.Bytes, r.PartitionSkew = read.Rows*s.width(), exchange.Skew(parts)
	r.References, r.Objects = w.References, w.Objects
	r.ControlMessages = w.ControlMessages + n.ControlMessages
	r.CreditWait = w.CreditWait.Seconds()
	r.BytesCopied = w.BytesCopied + n.BytesCopied
	r.BytesSpilled = w.BytesSpilled + n.BytesSpilled
	return nil
}

// onEach runs a task on every node.
func (c *cluster) onEach(ctx context.Context, job *actors.Job, name string) ([]done, error) {
	var specs []actors.TaskSpec
	for _, n := range c.nodes {
		specs = append(specs, actors.TaskSpec{Func: name, Arg: encode(run{}), Node: n})
	}
	return wait(ctx, job, specs)
}

// wait starts tasks and returns what they return. The first failure is the outcome.
func wait(ctx context.Context, job *actors.Job, specs []actors.TaskSpec) ([]done, error) {
	g, ctx := errgroup.WithContext(ctx)
	results := make([]done, len(specs))
	tasks, err := job.SubmitAll(specs)
	if err != nil {
		return nil, err
	}
	for i, t := range tasks {
		g.Go(func() error {
			data, err := t.Wait(ctx)
			if err != nil {
				return err
			}
			return json.Unmarshal(data, &results[i])
		})
	}
	return results, g.Wait()
}

// summarize takes the run of median time.
func summarize(o *Options, runs []Result, l Limits) Result {
	last := runs[len(runs)-1]
	if last.Error != "" {
		last.Limits = l
		return last
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
	if r.Slow == 0 {
		r.OthersSeconds = 0 // only something beside a slow one
	}
	r.Limits = l
	r.GBps = float64(r.Bytes) / 1e9 / r.Seconds
	r.OfLimit = r.GBps / limitOf(o, r)
	if r.Mode != exchange.Disk {
		crossed := float64(r.Crossed) / float64(r.Bytes)
		r.OfLimitPerCore = r.GBpsPerCore * (1/l.PartitionPerCore + crossed/l.TCPPerCore)
	}
	return r
}

// limitOf is the speed that the resources of a mode allow.
func limitOf(o *Options, r Result) float64 {
	crossed := float64(r.Crossed) / float64(r.Bytes)
	switch {
	case r.Mode == exchange.Disk:
		return 1 / (1/r.Limits.Disk + crossed/r.Limits.TCP)
	case o.Processes > 1:
		return r.Limits.TCP / crossed
	}
	return r.Limits.Partition
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func encode(r run) []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and bytes
	}
	return data
}
