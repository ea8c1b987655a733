package objectstore

import (
	"fmt"
	"time"
)

// Tier counts the objects that have their bytes in one place.
type Tier struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Stats describes a store at one moment. Sizes are bytes; those of tiers are of the values alone.
type Stats struct {
	Objects int64 `json:"objects"` // not freed, in all tiers
	Bytes   int64 `json:"bytes"`

	Inline  Tier `json:"inline"`  // values of at most Config.InlineMax
	Memory  Tier `json:"memory"`  // larger values in memory, on disk besides or not
	Spilled Tier `json:"spilled"` // larger values on disk only

	MemoryUsed   int64 `json:"memory_used_bytes"`   // what values and writers take of MemoryLimit, rounding and alignment included
	MemoryPeak   int64 `json:"memory_peak_bytes"`   // the most that ever was
	MemoryLimit  int64 `json:"memory_limit_bytes"`  // see Config
	MemoryMapped int64 `json:"memory_mapped_bytes"` // memory taken from the system for values, used or kept for the next
	Unsealed     int64 `json:"unsealed_bytes"`      // part of MemoryUsed that is being written
	Waiting      int   `json:"waiting"`             // requests in line for memory

	DiskBytes int64 `json:"disk_bytes"` // of spill files, dead records included
	DiskFiles int64 `json:"disk_files"`

	Puts           int64         `json:"puts"`
	Gets           int64         `json:"gets"`
	BytesPut       int64         `json:"put_bytes"`
	BytesGot       int64         `json:"got_bytes"`
	Spills         int64         `json:"spills"`   // values written to spill files
	Restores       int64         `json:"restores"` // values read back from disk
	BytesSpilled   int64         `json:"spilled_bytes"`
	BytesRestored  int64         `json:"restored_bytes"`
	Evictions      int64         `json:"evictions"`                // values and pages of small ones dropped from memory because they are on disk too
	SpillTime      time.Duration `json:"spill_ns"`                 // that writing spilled values took, on all writers together
	RestoreTime    time.Duration `json:"restore_ns"`               // that reading large values back took, for all readers together
	SpillRate      float64       `json:"spill_bytes_per_second"`   // of large values, of one writer; 0: none yet
	RestoreRate    float64       `json:"restore_bytes_per_second"` // of large values, of one reader; 0: none yet
	BytesCompacted int64         `json:"compacted_bytes"`          // moved out of files, and of parts of Badger, that were mostly dead
	IndexBytes     int64         `json:"index_bytes"`              // of memory that the index of objects takes, beside MemoryLimit
	BadgerBytes    int64         `json:"badger_bytes"`             // of Badger's files
	Trouble        string        `json:"trouble,omitempty"`        // why the last write to disk failed; "" when it did not
}

// Stats returns the current figures.
func (s *Store) Stats() Stats {
	small := make([]smallCounts, len(s.shards))
	for i, sh := range s.shards {
		small[i] = sh.counts()
	}
	badger := s.index.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.count
	st := Stats{
		Objects: c.large.Objects,
		Bytes:   c.large.Bytes,
		Memory:  c.resident,
		Spilled: Tier{c.large.Objects - c.resident.Objects, c.large.Bytes - c.resident.Bytes},

		MemoryUsed:   s.mem.used,
		MemoryPeak:   s.mem.peak,
		MemoryLimit:  s.mem.limit,
		MemoryMapped: s.pool.mapped,
		Unsealed:     s.unsealed,
		Waiting:      len(s.mem.line),

		DiskBytes: s.disk.bytes,
		DiskFiles: int64(len(s.disk.all)),

		Puts: c.puts, Gets: c.gets, BytesPut: c.bytesPut, BytesGot: c.bytesGot,
		Spills: c.spills, Restores: c.restores, BytesSpilled: c.bytesSpilled, BytesRestored: c.bytesRestored,
		Evictions: c.evictions, SpillTime: c.spillTime, RestoreTime: c.restoreTime, BytesCompacted: c.compacted,
		SpillRate: perSecond(c.bytesSpilled, c.spillTime), RestoreRate: perSecond(c.bytesRestored, c.restoreTime),
		IndexBytes: s.refs.Bytes(), BadgerBytes: badger,
	}
	for _, n := range small {
		st.Objects += n.tier.Objects
		st.Bytes += n.tier.Bytes
		st.Inline.Objects += n.tier.Objects
		st.Inline.Bytes += n.tier.Bytes
		st.Puts += n.puts
		st.Gets += n.gets
		st.BytesPut += n.bytesPut
		st.BytesGot += n.bytesGot
		st.Restores += n.restores
		st.BytesRestored += n.bytesRestored
		st.IndexBytes += n.indexBytes
		st.BytesCompacted += n.compacted
	}
	for _, err := range []error{s.disk.trouble, s.indexTrouble} {
		if err != nil {
			st.Trouble = err.Error()
		}
	}
	return st
}

func perSecond(bytes int64, in time.Duration) float64 {
	if in <= 0 {
		return 0
	}
	return float64(bytes) / in.Seconds()
}

func (t Tier) String() string { return fmt.Sprintf("%d objects, %s", t.Objects, bytesText(t.Bytes)) }

// counters are the sums behind Stats for large values, kept as things happen. Guarded by the store's mutex.
type counters struct {
	large, resident Tier

	puts, gets, bytesPut, bytesGot                int64
	spills, restores, bytesSpilled, bytesRestored int64
	evictions, compacted                          int64
	spillTime, restoreTime                        time.Duration
}

func (t *Tier) add(e *entry)    { t.Objects, t.Bytes = t.Objects+1, t.Bytes+e.size }
func (t *Tier) remove(e *entry) { t.Objects, t.Bytes = t.Objects-1, t.Bytes-e.size }

// remove counts off an object that is dropped.
func (c *counters) remove(e *entry) {
	c.large.remove(e)
	if e.buf != nil {
		c.resident.remove(e)
	}
}

// counts returns the sums of a shard.
func (sh *shard) counts() smallCounts {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := sh.count
	n.indexBytes = sh.refs.Bytes()
	return n
}
