package shuffle

import (
	"runtime"
	"slices"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"manta/bench/limits"
	"manta/objectstore/block"
	"manta/shuffle/rows"
)

// threads is how many copies of a limit's work run side by side.
func (o *Options) threads() int { return min(o.Producers, runtime.NumCPU()) }

// measureLimits measures the machine once. in is what producers write.
func measureLimits(o *Options, s shape, in *input) (l Limits, err error) {
	n := o.threads()
	l.Memcpy = limits.Memcpy(n, min(o.Bytes, 4<<30))
	amount := min(o.Bytes, 1<<30)
	if l.PartitionPerCore, err = limits.PerCore(amount, func() (err error) {
		l.Partition, err = kernel(o, s, in, 1, amount)
		return err
	}); err != nil {
		return l, err
	}
	if n > 1 {
		if l.Partition, err = kernel(o, s, in, n, amount*int64(n)); err != nil {
			return l, err
		}
	}
	if l.TCPPerCore, err = limits.PerCore(amount, func() (err error) {
		l.TCP, err = limits.TCP(amount)
		return err
	}); err != nil {
		return l, err
	}
	if l.DiskWrite, l.DiskRead, err = limits.Disk(o.Dir, amount); err != nil {
		return l, err
	}
	l.Disk = 1 / (1/l.DiskWrite + 1/l.DiskRead)
	return l, nil
}

// kernel scatters the input into batches of the size that a writer would make, and drops them.
func kernel(o *Options, s shape, in *input, threads int, bytes int64) (float64, error) {
	target := o.Memory * 3 / 8 / int64(o.Producers) / 2 / int64(s.Partitions)
	target = min(1<<20, max(target, 1<<10))
	mem := block.NewPool()
	schema := s.schema()
	drop := func(_ int, b arrow.RecordBatch) error { b.Release(); return nil }
	var g errgroup.Group
	start := time.Now()
	for range threads {
		g.Go(func() error {
			k := rows.New(mem, schema, s.Partitions, target)
			defer k.Release()
			_, err := in.each(bytes/int64(threads)/s.width(), func(b arrow.RecordBatch) error {
				return k.Scatter(b, s.Columns, drop)
			})
			if err != nil {
				return err
			}
			return k.Flush(drop)
		})
	}
	err := g.Wait()
	return limits.Rate(bytes, time.Since(start)), err
}

// medians takes the median of each limit.
func medians(all []Limits) Limits {
	of := func(field func(Limits) float64) float64 {
		var v []float64
		for _, l := range all {
			v = append(v, field(l))
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	return Limits{
		Memcpy:           of(func(l Limits) float64 { return l.Memcpy }),
		Partition:        of(func(l Limits) float64 { return l.Partition }),
		PartitionPerCore: of(func(l Limits) float64 { return l.PartitionPerCore }),
		TCP:              of(func(l Limits) float64 { return l.TCP }),
		TCPPerCore:       of(func(l Limits) float64 { return l.TCPPerCore }),
		Disk:             of(func(l Limits) float64 { return l.Disk }),
		DiskWrite:        of(func(l Limits) float64 { return l.DiskWrite }),
		DiskRead:         of(func(l Limits) float64 { return l.DiskRead }),
	}
}
