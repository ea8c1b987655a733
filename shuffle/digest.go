package shuffle

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// digest is the checksum of bytes that come in any pieces: XXH3 of one chunk after another, chained, and half of it. A
// flipped bit goes unseen once in 2^32 times; CRC-32C, with the processor's help, takes three times as long. Whole chunks are
// summed where they lie; XXH3 copies what comes in pieces.
type digest struct {
	all  uint64 // of the chunks so far
	h    xxh3.Hasher
	part int // of a chunk, in h
}

// sumChunk is read and summed in turn, while it is in the core's cache.
const sumChunk = 128 << 10

func (d *digest) reset() { d.all, d.part = 0, 0 }

func (d *digest) add(p []byte) {
	for len(p) > 0 {
		if d.part == 0 && len(p) >= sumChunk {
			d.all = link64(d.all, xxh3.Hash(p[:sumChunk]))
			p = p[sumChunk:]
			continue
		}
		if d.part == 0 {
			d.h.Reset()
		}
		n := min(len(p), sumChunk-d.part)
		_, _ = d.h.Write(p[:n])
		p = p[n:]
		if d.part += n; d.part == sumChunk {
			d.cut()
		}
	}
}

// cut ends a chunk.
func (d *digest) cut() {
	if d.part > 0 {
		d.all = link64(d.all, d.h.Sum64())
		d.part = 0
	}
}

func (d *digest) sum() uint32 {
	d.cut()
	return half(d.all)
}

// partSums is the checksum of a batch's parts: each has chunks of its own, so that no byte is copied.
type partSums uint64

// add adds a part, or whole chunks of one.
func (s *partSums) add(p []byte) {
	for len(p) > 0 {
		n := min(len(p), sumChunk)
		*s = partSums(link64(uint64(*s), xxh3.Hash(p[:n])))
		p = p[n:]
	}
}

func (s partSums) sum() uint32 { return half(uint64(s)) }

// sumOf is the checksum of bytes that lie in one piece.
func sumOf(p []byte) uint32 {
	var s partSums
	s.add(p)
	return s.sum()
}

// link64 adds a hash to a chain of them.
func link64(all, next uint64) uint64 {
	return (bits.RotateLeft64(all, 23) ^ next) * 0x9E3779B97F4A7C15
}

// half is the better mixed one.
func half(all uint64) uint32 { return uint32(all >> 32) }

// chain adds the sum of one more block to that of a channel's blocks so far.
func chain(sum, block uint32) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], sum)
	binary.LittleEndian.PutUint32(b[4:], block)
	return uint32(xxh3.Hash(b[:]))
}
