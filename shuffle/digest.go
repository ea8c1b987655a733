package shuffle

import (
	"encoding/binary"

	"github.com/zeebo/xxh3"
)

// digest is the checksum of bytes that come in any pieces: the low half of XXH3. A flipped bit goes unseen once in 2^32 times;
// CRC-32C, with the processor's help, takes three times as long.
type digest struct{ h xxh3.Hasher }

func (d *digest) reset() { d.h.Reset() }

func (d *digest) add(p []byte) { _, _ = d.h.Write(p) }

func (d *digest) sum() uint32 { return uint32(d.h.Sum64()) }

// sumOf is the checksum of bytes that lie in one piece.
func sumOf(p []byte) uint32 { return uint32(xxh3.Hash(p)) }

// chain adds the sum of one more block to that of a channel's blocks so far.
func chain(sum, block uint32) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], sum)
	binary.LittleEndian.PutUint32(b[4:], block)
	return sumOf(b[:])
}
