package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"
)

// Options say what Run measures. Zero fields take their defaults.
type Options struct {
	Dir     string        // where stores and files are made; default the system's folder for temporary files
	Sizes   []int64       // of values; default 100 B, 10 KiB, 1 MiB, 100 MiB, 1 GiB
	Callers []int         // default 1, 2, 8
	Rounds  int           // of each measurement; default 5
	Round   time.Duration // least length of a round; default 200 ms
	Spill   int64         // bytes written through a quarter of that in memory; default 1 GiB, four values at least

	Objects int64 // also keep that many values of 100 B; 0: none
	Through int64 // also write that many bytes through a tenth of that in memory, and read them back; 0: none

	Progress func(format string, args ...any) // told what is going on; may be nil
}

// Result is what was measured for values of one size with one number of callers. Rates of several callers are
// their sum; GB are 10^9 bytes. A field that makes no sense for a size is 0.
type Result struct {
	ValueBytes        int64   `json:"value_bytes"`
	Callers           int     `json:"callers"`
	MemcpyGBps        float64 `json:"memcpy_gbps"`
	PutGBps           float64 `json:"put_gbps"`          // put and release, into recycled memory
	MemcpyFreshGBps   float64 `json:"memcpy_fresh_gbps"` // into memory that the process did not have before
	PutFreshGBps      float64 `json:"put_fresh_gbps"`
	ReadGBps          float64 `json:"read_gbps"`             // reading all bytes of a slice: the limit of get_gbps
	GetGBps           float64 `json:"get_gbps"`              // get, read all bytes, release
	GetCopiesBytes    int64   `json:"get_copies_bytes"`      // memory taken by 100 readers that hold one object together
	SmallPutPerS      float64 `json:"small_put_per_s"`       // values that stay
	SmallPutFreshPerS float64 `json:"small_put_fresh_per_s"` // into memory that the process did not have before
	SmallGetPerS      float64 `json:"small_get_per_s"`       // of those, in random order
	SpillGBps         float64 `json:"spill_gbps"`
	RestoreGBps       float64 `json:"restore_gbps"`
	DiskWriteGBps     float64 `json:"disk_write_gbps"` // plain files of the same bytes in the same folder
	DiskReadGBps      float64 `json:"disk_read_gbps"`
	PutP99us          float64 `json:"put_p99_us"`
	IndexBytes        float64 `json:"index_bytes_per_object"` // memory of the store's index for each small object
	RSSMiB            float64 `json:"rss_mib"`                // highest of the process during these measurements
}

func (o Options) withDefaults() Options {
	if len(o.Sizes) == 0 {
		o.Sizes = []int64{100, 10 << 10, 1 << 20, 100 << 20, 1 << 30}
	}
	if len(o.Callers) == 0 {
		o.Callers = []int{1, 2, 8}
	}
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Round == 0 {
		o.Round = 200 * time.Millisecond
	}
	if o.Spill == 0 {
		o.Spill = 1 << 30
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	return o
}

// Report is the outcome of Run.
type Report struct {
	Results []Result
	Many    *Many
	Through *Through
}

// Run measures. It leaves nothing behind.
func Run(ctx context.Context, o Options) (r Report, err error) {
	o = o.withDefaults()
	dir, err := os.MkdirTemp(o.Dir, "manta-bench-store-")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	step := 0
	fresh := func() string {
		step++
		return filepath.Join(dir, fmt.Sprint(step))
	}
	for _, size := range o.Sizes {
		src := source(size)
		for _, callers := range o.Callers {
			if ctx.Err() != nil {
				return r, context.Cause(ctx)
			}
			o.Progress("values of %d bytes, %d callers", size, callers)
			debug.FreeOSMemory()
			resetPeak()
			m := &measurement{o: o, src: src, size: size, callers: callers, fresh: fresh}
			result, err := m.run(ctx)
			if err != nil {
				return r, fmt.Errorf("values of %d bytes, %d callers: %w", size, callers, err)
			}
			r.Results = append(r.Results, result)
		}
	}
	if o.Objects > 0 {
		o.Progress("%d small objects", o.Objects)
		if r.Many, err = measureMany(ctx, fresh(), o.Objects); err != nil {
			return r, fmt.Errorf("%d small objects: %w", o.Objects, err)
		}
	}
	if o.Through > 0 {
		o.Progress("%d bytes through a tenth of that", o.Through)
		if r.Through, err = measureThrough(ctx, fresh(), o.Through); err != nil {
			return r, fmt.Errorf("%d bytes through a tenth: %w", o.Through, err)
		}
	}
	return r, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) == 0 {
		return 0
	}
	return v[len(v)/2]
}
