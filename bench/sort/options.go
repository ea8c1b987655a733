package sort

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"manta/bench"
	exchange "manta/shuffle"
)

// Options say what Run sorts. Zero fields take their defaults.
type Options struct {
	Bytes  int64           // of records; default 1 GiB
	Memory int64           // of the process: exchanges, store, sorting; default 1 GiB
	Modes  []exchange.Mode // default disk, object-store, streaming
	Runs   int             // of each mode, interleaved; default 1
	Cores  int             // tasks at work at once; default the machine's
	Ranges int             // default by Memory, and Cores with streaming
	Dir    string          // for inputs, spill and output; default the system's folder for temporary files

	Progress func(format string, args ...any) // told what is going on; may be nil
}

// Validate fills in the defaults and says what is wrong.
func (o *Options) Validate() error {
	if o.Bytes == 0 {
		o.Bytes = 1 << 30
	}
	if o.Memory == 0 {
		o.Memory = 1 << 30
	}
	if len(o.Modes) == 0 {
		o.Modes = []exchange.Mode{exchange.Disk, exchange.ObjectStore, exchange.Streaming}
	}
	if o.Runs == 0 {
		o.Runs = 1
	}
	if o.Cores == 0 {
		o.Cores = runtime.NumCPU()
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	switch {
	case o.Bytes < recordBytes:
		return fmt.Errorf("bench: %d bytes; a record has %d", o.Bytes, recordBytes)
	case o.Memory < 64<<20:
		return errors.New("bench: a sort needs 64 MiB of memory")
	case o.Runs < 1 || o.Cores < 1:
		return errors.New("bench: runs and cores are at least 1")
	case o.Ranges < 0 || o.Ranges > 1<<12:
		return fmt.Errorf("bench: %d ranges; give up to %d", o.Ranges, 1<<12)
	}
	for _, m := range o.Modes {
		if !slices.Contains(exchange.Modes, m) {
			return fmt.Errorf("bench: mode %q; use one of %v", m, exchange.Modes)
		}
	}
	return nil
}

// How the memory is shared: an eighth for exchanges, a sixteenth for the store, half for sorting. The rest is for batches in
// the tasks' hands, for buffers of files and for what waits to be collected.
func (o *Options) exchangeMemory() int64 { return o.Memory / 8 }
func (o *Options) storeMemory() int64    { return o.Memory / 16 }
func (o *Options) sorterMemory() int64   { return o.Memory / 2 / int64(o.Cores) }

// ranges is their number for a mode: so many that a range, 40 % larger than the mean, fits into a sorter.
func (o *Options) ranges(m exchange.Mode) int {
	switch {
	case o.Ranges > 0:
		return o.Ranges
	case m == exchange.Streaming:
		return o.Cores
	}
	fits := o.sorterMemory() * recordBytes / (recordBytes + entryBytes)
	return max(o.Cores, int(o.Bytes*14/10/fits)+1)
}

// Report is the outcome of Run.
type Report struct {
	Machine  bench.Machine     `json:"machine"`
	Versions map[string]string `json:"versions"`
	Results  []Result          `json:"results"`
}

// Limits are what the machine does without a sort, in GB a second.
type Limits struct {
	Memcpy float64 `json:"memcpy"` // copied by all cores
	TCP    float64 `json:"tcp"`    // one stream over loopback
	Disk   float64 `json:"disk"`   // a file written, then read
	Sort   float64 `json:"sort"`   // records sorted in memory, each core a part of its own; no input, no output
}

// Result is what was measured for one mode: the run of median time. Peaks are of the worst run.
type Result struct {
	Mode      exchange.Mode `json:"mode"`
	Records   int64         `json:"records"`
	Bytes     int64         `json:"bytes"`
	Ranges    int           `json:"ranges"`
	Cores     int           `json:"cores"`
	Error     string        `json:"error,omitempty"` // why the mode gave no figure
	Validated bool          `json:"validated"`       // in order, all there, with the same sum

	Seconds        float64 `json:"seconds"` // median
	SecondsMin     float64 `json:"seconds_min"`
	SecondsMax     float64 `json:"seconds_max"`
	GBps           float64 `json:"gbps"`
	GBpsPerCore    float64 `json:"gbps_per_core"`     // for each second of processor time
	MBpsPerCPUWall float64 `json:"mbps_per_cpu_wall"` // for each second and core, whether it was at work or not
	Limits         Limits  `json:"limit_gbps"`        // medians
	// OfLimit compares GBps with sorting in memory, then writing and reading everything twice: input and output, and the way
	// through files in between.
	OfLimit float64 `json:"of_limit"`

	MemoryMiB       float64 `json:"memory_limit_mib"`
	PeakRSSMiB      float64 `json:"peak_rss_mib"`
	ExchangePeakMiB float64 `json:"exchange_peak_mib"`
	ExchangeMiB     float64 `json:"exchange_limit_mib"`
	References      int64   `json:"references"`
	Objects         int64   `json:"objects"`
	ControlMessages int64   `json:"control_messages"`
	CreditWait      float64 `json:"credit_wait_s"`
	BytesSpilled    int64   `json:"spilled_bytes"` // by the exchange, the object store and the sorters
	Watchdog        int64   `json:"watchdog"`
	LargestRange    float64 `json:"largest_range"` // over the mean

	SpinBefore float64 `json:"spin_before"`
	SpinAfter  float64 `json:"spin_after"`
}
