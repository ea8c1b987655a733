package shuffle

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/dustin/go-humanize"

	"manta/objectstore/block"
)

// Config says what a node's exchanges may use. Zero fields take defaults.
type Config struct {
	// MemoryLimit is the node's exchange memory in bytes: queues, granted credit and fetched blocks get one half of it,
	// writers' buffers and what is in line to other nodes the other. Default 256 MiB.
	MemoryLimit int64
	// Dir is where disk mode, and streaming in a jam, keep files. Everything in it is removed at the start. Default: shuffle, in the node's data
	// directory.
	Dir string
	// BatchBytes is the size of batches on their way. Default 1 MiB.
	BatchBytes int
	// StallAfter is for how long a job's exchanges here must stand still, with a writer waiting and nobody at work, to be
	// counted in Stats.Stalls. Default 30 s.
	StallAfter time.Duration
	// Allocator is for tests. Default: a pool.
	Allocator memory.Allocator

	farewell time.Duration // a writer that fails waits so long for its readers to hear of it; 5 s
}

// Validate fills in the defaults and says what is wrong.
func (c *Config) Validate() error {
	if c.MemoryLimit == 0 {
		c.MemoryLimit = 256 << 20
	}
	if c.BatchBytes == 0 {
		c.BatchBytes = 1 << 20
	}
	if c.StallAfter == 0 {
		c.StallAfter = 30 * time.Second
	}
	if c.farewell == 0 {
		c.farewell = 5 * time.Second
	}
	if c.Allocator == nil {
		c.Allocator = block.NewPool()
	}
	if c.StallAfter < 4 {
		return errors.New("shuffle: negative time until a stall")
	}
	if c.MemoryLimit < 0 || c.BatchBytes < 0 {
		return errors.New("shuffle: negative memory limit or batch size")
	}
	if c.BatchBytes > 64<<20 {
		return fmt.Errorf("shuffle: batches of %s; at most 64 MiB", humanize.IBytes(uint64(c.BatchBytes)))
	}
	return nil
}

// String is one line for logs.
func (c *Config) String() string {
	return fmt.Sprintf("exchange memory=%s batch=%s dir=%s",
		humanize.IBytes(uint64(c.MemoryLimit)), humanize.IBytes(uint64(c.BatchBytes)), c.Dir)
}
