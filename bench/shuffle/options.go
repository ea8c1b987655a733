package shuffle

import (
	"errors"
	"fmt"
	"os/exec"

	"manta/bench"
	exchange "manta/shuffle"
)

// Options say what Run measures. Zero fields take their defaults.
type Options struct {
	Bytes        int64           // of the batches' values; default 1 GiB
	RowsPerBatch int             // as producers write them; default 2,048
	Columns      int             // of 8 bytes; default 8
	Partitions   int             // default 16
	Producers    int             // default 2
	Skew         float64         // partition k gets a share in proportion to 1/(k+1)^Skew; default 0, all the same
	Modes        []exchange.Mode // default all
	Processes    int             // 1 to 3; default 1
	TLS          bool            // connections between processes are encrypted
	Runs         int             // of each mode, interleaved; default 3
	Slow         int             // the reader of partition 0 is so many times slower than the others; default 0, it is not

	Memory      int64  // of exchanges, a node; default 256 MiB
	StoreMemory int64  // of the object store, a node; default 1 GiB
	Dir         string // where nodes keep their files; default the system's folder for temporary files

	// Spawn makes the command of a further process, which must call Serve with its standard input. Needed for
	// more than one process.
	Spawn    func(ServeConfig) *exec.Cmd
	Progress func(format string, args ...any) // told what is going on; may be nil
}

// Validate fills in the defaults and says what is wrong.
func (o *Options) Validate() error {
	set(&o.Bytes, 1<<30)
	set(&o.RowsPerBatch, 2048)
	set(&o.Columns, 8)
	set(&o.Partitions, 16)
	set(&o.Producers, 2)
	set(&o.Processes, 1)
	set(&o.Runs, 3)
	set(&o.Memory, 256<<20)
	set(&o.StoreMemory, 1<<30)
	if len(o.Modes) == 0 {
		o.Modes = exchange.Modes
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	switch {
	case o.Bytes < 0 || o.Memory < 0 || o.StoreMemory < 0:
		return errors.New("bench: sizes are positive")
	case o.RowsPerBatch < 1 || o.RowsPerBatch > 1<<20:
		return fmt.Errorf("bench: %d rows per batch; give 1 to %d", o.RowsPerBatch, 1<<20)
	case o.Columns < 1 || o.Columns > 1000:
		return fmt.Errorf("bench: %d columns; give 1 to 1000", o.Columns)
	case o.Partitions < 1 || o.Partitions > 1<<16:
		return fmt.Errorf("bench: %d partitions; give 1 to %d", o.Partitions, 1<<16)
	case o.Producers < 1 || o.Producers > 1<<12:
		return fmt.Errorf("bench: %d producers; give 1 to %d", o.Producers, 1<<12)
	case !(o.Skew >= 0 && o.Skew <= 10):
		return fmt.Errorf("bench: skew %v; give 0 to 10", o.Skew)
	case o.Processes < 1 || o.Processes > 3:
		return fmt.Errorf("bench: %d processes; give 1, 2 or 3", o.Processes)
	case o.Processes > 1 && o.Spawn == nil:
		return errors.New("bench: nothing starts further processes")
	case o.Slow < 0 || o.Slow == 1 || o.Slow > 0 && o.Partitions < 2:
		return fmt.Errorf("bench: a reader %d times slower than the others; give at least 2, and 2 partitions", o.Slow)
	case o.Runs < 1:
		return fmt.Errorf("bench: %d runs; give at least 1", o.Runs)
	}
	for _, m := range o.Modes {
		if _, err := exchange.ParseMode(string(m)); err != nil {
			return err
		}
	}
	return nil
}

func set[T int | int64](v *T, to T) {
	if *v == 0 {
		*v = to
	}
}

// Report is the outcome of Run.
type Report struct {
	Machine  bench.Machine     `json:"machine"`
	Versions map[string]string `json:"versions"`
	Results  []Result          `json:"results"`
}

// Limits are what the machine does without an exchange, in GB (10^9 bytes) a second.
type Limits struct {
	Memcpy    float64 `json:"memcpy"`    // copied by as many threads as there are producers and cores
	Partition float64 `json:"partition"` // the kernel alone, by as many threads
	TCP       float64 `json:"tcp"`       // one stream over loopback
	Disk      float64 `json:"disk"`      // a file written, then read
	DiskWrite float64 `json:"disk_write"`
	DiskRead  float64 `json:"disk_read"`
	// For each second of processor time: what a busy machine changes less. TCP counts both ends.
	PartitionPerCore float64 `json:"partition_per_core"`
	TCPPerCore       float64 `json:"tcp_per_core"`
}

// Result is what was measured for one mode: the run of median time. Peaks are of the worst run.
type Result struct {
	Mode         exchange.Mode `json:"mode"`
	Processes    int           `json:"processes"`
	Producers    int           `json:"producers"`
	Partitions   int           `json:"partitions"`
	RowsPerBatch int           `json:"rows_per_batch"`
	Columns      int           `json:"columns"`
	Skew         float64       `json:"skew"`
	Error        string        `json:"error,omitempty"` // why the mode gave no figure

	Bytes         int64   `json:"bytes"`
	PartitionSkew float64 `json:"partition_skew"` // bytes of the largest partition over the mean
	Crossed       int64   `json:"crossed_bytes"`  // of them, from process to process
	Seconds       float64 `json:"seconds"`        // median
	SecondsMin    float64 `json:"seconds_min"`
	SecondsMax    float64 `json:"seconds_max"`
	GBps          float64 `json:"gbps"`
	GBpsPerCore   float64 `json:"gbps_per_core"` // bytes for each second of processor time, of all processes
	Limits        Limits  `json:"limit_gbps"`    // medians
	// OfLimit compares GBps with what the resources of the mode would allow: the kernel within a process; TCP for
	// the bytes that cross between processes; writing, reading and TCP one after another for disk.
	OfLimit float64 `json:"of_limit"`
	// OfLimitPerCore is the same of processor time: within a process the kernel's, between processes that of the
	// kernel and of TCP for the bytes that cross. 0 for disk.
	OfLimitPerCore float64 `json:"of_limit_per_core"`

	// With a slow reader: its factor, the time until all others had everything, and their speed beside that of a run
	// without a slow one just before.
	Slow          int     `json:"slow_factor,omitempty"`
	OthersSeconds float64 `json:"others_seconds,omitempty"`
	OthersSpeed   float64 `json:"others_speed,omitempty"`

	PeakRSSMiB      float64 `json:"peak_rss_mib"`      // of all processes together
	ExchangePeakMiB float64 `json:"exchange_peak_mib"` // of the node that used most
	ExchangeMiB     float64 `json:"exchange_limit_mib"`
	References      int64   `json:"references"`
	Objects         int64   `json:"objects"`
	ControlMessages int64   `json:"control_messages"`
	CreditWait      float64 `json:"credit_wait_s"`
	BytesCopied     int64   `json:"copied_bytes"`
	BytesSpilled    int64   `json:"spilled_bytes"` // by the exchange and by the object store
	Watchdog        int64   `json:"watchdog"`      // times that an exchange stood still

	SpinBefore float64 `json:"spin_before"` // 10^9 steps a second on all cores, before and after the median run
	SpinAfter  float64 `json:"spin_after"`
}
