package objectstore

import (
	"fmt"
	"time"
)

// Tier counts the objects that have their bytes in one place.
type Tier struct{ Objects, Bytes int64 }

// Stats describes a store at one moment. Sizes are bytes; those of tiers are of the values alone.
type Stats struct {
	Objects, Bytes int64 // not freed, in all tiers

	Inline  Tier // values of at most Config.InlineMax
	Memory  Tier // larger values in memory, on disk besides or not
	Spilled Tier // larger values on disk only

	MemoryUsed   int64 // what values and writers take of MemoryLimit, rounding and alignment included
	MemoryPeak   int64 // the most that ever was
	MemoryLimit  int64
	MemoryMapped int64 // memory taken from the system for large values, used or kept for the next
	Unsealed     int64 // part of MemoryUsed that is being written
	Waiting      int   // requests in line for memory

	DiskBytes int64 // of spill files, dead records included
	DiskFiles int64

	Puts, Gets         int64
	BytesPut, BytesGot int64
	Spills, Restores   int64 // values written to spill files; values read back from disk
	BytesSpilled       int64
	BytesRestored      int64
	Evictions          int64         // values and pages of small ones dropped from memory because they are on disk too
	SpillTime          time.Duration // that writing spilled values took, on all writers together
	RestoreTime        time.Duration // that reading large values back took, for all readers together
	BytesCompacted     int64         // moved out of files, and of parts of Badger, that were mostly dead
	IndexBytes         int64         // of memory that the index of objects takes, beside MemoryLimit
	BadgerBytes        int64         // of Badger's files
	Trouble            string        // why the last write to disk failed; "" when it did not
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
