package shuffle

import (
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"golang.org/x/sync/errgroup"

	"manta/objectstore/block"
	"manta/shuffle/rows"
)

const chunk = 1 << 20 // of writes and reads

// rate is GB a second.
func rate(bytes int64, d time.Duration) float64 { return float64(bytes) / 1e9 / d.Seconds() }

// perCore is GB for each second of processor time that do takes for the bytes.
func perCore(bytes int64, do func() error) (float64, error) {
	before := thisProcess().CPU
	err := do()
	return rate(bytes, max(thisProcess().CPU-before, 1)), err
}

// threads is how many copies of a limit's work run side by side.
func (o *Options) threads() int { return min(o.Producers, runtime.NumCPU()) }

// limits measures the machine once. in is what producers write.
func limits(o *Options, s shape, in *input) (l Limits, err error) {
	n := o.threads()
	l.Memcpy = memcpy(n, min(o.Bytes, 4<<30))
	amount := min(o.Bytes, 1<<30)
	if l.PartitionPerCore, err = perCore(amount, func() (err error) {
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
	if l.TCPPerCore, err = perCore(amount, func() (err error) {
		l.TCP, err = tcp(amount)
		return err
	}); err != nil {
		return l, err
	}
	if l.DiskWrite, l.DiskRead, err = disk(o.Dir, amount); err != nil {
		return l, err
	}
	l.Disk = 1 / (1/l.DiskWrite + 1/l.DiskRead)
	return l, nil
}

// memcpy copies between buffers that no cache holds.
func memcpy(threads int, bytes int64) float64 {
	const size = 64 << 20
	rounds := max(1, bytes/size/int64(threads))
	var start time.Time
	var ready, done sync.WaitGroup
	gate := make(chan struct{})
	for range threads {
		ready.Add(1)
		done.Go(func() {
			a, b := make([]byte, size), make([]byte, size)
			copy(a, b) // touches both
			ready.Done()
			<-gate
			for range rounds {
				copy(a, b)
			}
		})
	}
	ready.Wait()
	start = time.Now()
	close(gate)
	done.Wait()
	return rate(size*rounds*int64(threads), time.Since(start))
}

// kernel scatters the input into batches of the size that a writer would make, and drops them.
func kernel(o *Options, s shape, in *input, threads int, bytes int64) (float64, error) {
	target := o.Memory * 3 / 8 / int64(o.Producers) / 4 / int64(s.Partitions)
	target = min(chunk, max(target, 1<<10))
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
	return rate(bytes, time.Since(start)), err
}

// tcp sends bytes through one connection over loopback.
func tcp(bytes int64) (float64, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	out, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return 0, err
	}
	defer out.Close()
	in, err := listener.Accept()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	var g errgroup.Group
	start := time.Now()
	g.Go(func() error {
		defer out.Close()
		data := make([]byte, chunk)
		for left := bytes; left > 0; left -= chunk {
			if _, err := out.Write(data[:min(left, chunk)]); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error {
		defer in.Close()
		data := make([]byte, chunk)
		for {
			if _, err := in.Read(data); err != nil {
				if err == io.EOF {
					return nil
				}
				return err
			}
		}
	})
	err = g.Wait()
	return rate(bytes, time.Since(start)), err
}

// disk writes a file and reads it, as an exchange does: through the system's cache, without waiting for the device.
func disk(dir string, bytes int64) (write, read float64, err error) {
	f, err := os.CreateTemp(dir, "manta-bench-shuffle-")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	data := make([]byte, chunk)
	start := time.Now()
	for left := bytes; left > 0; left -= chunk {
		if _, err := f.Write(data[:min(left, chunk)]); err != nil {
			return 0, 0, err
		}
	}
	write = rate(bytes, time.Since(start))
	start = time.Now()
	for at := int64(0); at < bytes; at += chunk {
		if _, err := f.ReadAt(data[:min(bytes-at, chunk)], at); err != nil {
			return 0, 0, err
		}
	}
	return write, rate(bytes, time.Since(start)), nil
}

// spin counts steps of simple arithmetic on all cores, in 10^9 a second.
func spin() float64 {
	const steps = 10_000_000
	n := runtime.NumCPU()
	var wg sync.WaitGroup
	start := time.Now()
	for i := range n {
		wg.Go(func() {
			x := uint64(i + 1)
			for range steps {
				x ^= x << 13
				x ^= x >> 7
				x ^= x << 17
			}
			spun.Store(&i, x)
		})
	}
	wg.Wait()
	spun.Clear()
	return float64(steps) * float64(n) / 1e9 / time.Since(start).Seconds()
}

// spun keeps the compiler from leaving the work out.
var spun sync.Map

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
