package objectstore

import (
	"fmt"
	"time"
)

// Defaults of a Config.
const (
	DefaultMemoryLimit = 256 << 20
	DefaultInlineMax   = 100 << 10
	DefaultSpillFile   = 100 << 20
	DefaultSpillers    = 2
	DefaultWait        = 5 * time.Second
)

// maxInline keeps an inline value with its entry within what one Badger write may hold at our table size.
const maxInline = 1<<20 - 4096

// Config says where a store keeps its data and how much of it. Zero fields take their defaults.
type Config struct {
	Dir          string        // data directory, made when missing; owned by one store at a time
	MemoryLimit  int64         // bytes of the memory tier, never exceeded
	DiskLimit    int64         // bytes of spill files; 0 is no limit of our own
	InlineMax    int           // values up to this many bytes are small: they live in pages, and in Badger; -1: none
	Shared       bool          // other processes may map large values; see Object.Mapping
	Recover      bool          // objects on disk outlive the process; see Open
	SpillFile    int64         // a spill file that has reached this many bytes is followed by the next
	SpillWriters int           // how many goroutines write spill files
	Wait         time.Duration // how long a request for memory waits while nothing at all gets free

	sharedIn    []string      // where to make shared memory; replaced in tests
	files       filesystem    // replaced in tests of faults
	flushWindow time.Duration // shorter in tests
	logFile     int64         // size of a file of Badger's log; smaller in tests
}

func (c Config) withDefaults() Config {
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit
	}
	if c.InlineMax == 0 {
		c.InlineMax = DefaultInlineMax
	}
	if c.SpillFile == 0 {
		c.SpillFile = DefaultSpillFile
	}
	if c.SpillWriters == 0 {
		c.SpillWriters = DefaultSpillers
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.flushWindow == 0 {
		c.flushWindow = flushWindow
	}
	if c.logFile == 0 {
		c.logFile = 64 << 20
	}
	if c.sharedIn == nil {
		c.sharedIn = []string{sharedFolder, c.Dir}
	}
	if c.files == nil {
		c.files = osFiles{}
	}
	return c
}

// Validate says what is wrong with the config; the error matches ErrConfig.
func (c Config) Validate() error {
	switch {
	case c.Dir == "":
		return fmt.Errorf("%w: Dir is empty", ErrConfig)
	case c.MemoryLimit < 0:
		return fmt.Errorf("%w: MemoryLimit is %d", ErrConfig, c.MemoryLimit)
	case c.DiskLimit < 0:
		return fmt.Errorf("%w: DiskLimit is %d", ErrConfig, c.DiskLimit)
	case c.InlineMax < -1 || c.InlineMax > maxInline:
		return fmt.Errorf("%w: InlineMax is %d, and must be between -1 and %d", ErrConfig, c.InlineMax, maxInline)
	case c.SpillFile < 0:
		return fmt.Errorf("%w: SpillFile is %d", ErrConfig, c.SpillFile)
	case c.SpillWriters < 0:
		return fmt.Errorf("%w: SpillWriters is %d", ErrConfig, c.SpillWriters)
	case c.Wait < 0:
		return fmt.Errorf("%w: Wait is %v", ErrConfig, c.Wait)
	}
	return nil
}

func (c Config) String() string {
	c = c.withDefaults()
	disk := "no limit"
	if c.DiskLimit > 0 {
		disk = bytesText(c.DiskLimit)
	}
	return fmt.Sprintf("dir %s, memory %s, disk %s, inline up to %s", c.Dir, bytesText(c.MemoryLimit), disk, bytesText(int64(c.InlineMax)))
}
