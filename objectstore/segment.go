package objectstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/zeebo/xxh3"

	"manta/objectstore/refcount"
)

// segment is a run of small values that is written to Badger as one entry. A page has one for each time that it
// was written. Guarded by its shard's mutex.
type segment struct {
	num   uint32 // in shard.segments
	seq   uint64 // in its key; no two segments of a store have the same
	page  *page  // nil once it is known to be gone
	base  int    // where it starts in the page
	end   int
	slots []refcount.Slot // of its values, until it is on disk; freed ones too
	live  int
	bytes int64 // of the live values
	size  int64 // on disk

	born time.Time

	values   int  // that were alive when it was stored
	stuck    bool // cannot be compacted
	kept     bool // is being compacted: it stays, even without live values
	stored   bool
	writing  bool
	dead     []uint32 // offsets of values freed since it was stored; kept only for a restart
	deadSaid int      // of them on disk
	moved    []uint32 // offsets of values that a compaction has just taken elsewhere
	hot      map[uint32]hotCopy

	next  uint32 // where the value after the one that was last read back starts, about
	run   uint8  // how many were read back in that order
	whole bool   // is being read back as a whole
}

// hotCopy is where a value that was read back is in memory.
type hotCopy struct {
	page *page
	at   int
}

// spot is where a small value is: at an offset in its segment's page, and as far from the base on disk.
type spot struct {
	segment uint32
	off     uint32
	size    uint32
	sum     uint32 // low half of its XXH3; valid once stored
	label   uint16 // what made it: one of the store's labels
}

func checksum32(b []byte) uint32 { return uint32(xxh3.Hash(b)) }

// A segment on disk is the image of its part of the page, then a directory:
//
//	for each value: id 16, offset 4, size 4, checksum 4, owner 4 (number in the list that follows)
//	owners: each its length as a varint, and the name
//	values 4, owners 4, length of the image 4, magic 4
//
// Numbers are little endian.
const (
	segmentMagic = 0x31535a4d
	dirEntry     = 32
	dirFooter    = 16
)

// dirItem is one entry of a directory.
type dirItem struct {
	id    ID
	off   uint32 // in the image
	size  uint32
	sum   uint32
	owner string
}

// appendDirectory completes the image in b.
func appendDirectory(b []byte, items []dirItem) []byte {
	image := len(b)
	numbers := map[string]uint32{}
	var names []string
	for i := range items {
		it := &items[i]
		n, ok := numbers[it.owner]
		if !ok {
			n = uint32(len(names))
			numbers[it.owner] = n
			names = append(names, it.owner)
		}
		b = append(b, it.id[:]...)
		for _, v := range []uint32{it.off, it.size, it.sum, n} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	for _, name := range names {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	for _, v := range []int{len(items), len(names), image, segmentMagic} {
		b = binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return b
}

var errDirectory = errors.New("malformed segment")

// parseDirectory reads what appendDirectory wrote, and nothing else.
func parseDirectory(b []byte) (items []dirItem, image int, err error) {
	if len(b) < dirFooter {
		return nil, 0, errDirectory
	}
	foot := b[len(b)-dirFooter:]
	u32 := binary.LittleEndian.Uint32
	values, owners, img := int(u32(foot)), int(u32(foot[4:])), int(u32(foot[8:]))
	rest := len(b) - dirFooter - img
	if u32(foot[12:]) != segmentMagic || rest < 0 || values > rest/dirEntry || owners > rest-values*dirEntry {
		return nil, 0, errDirectory
	}
	dir, names := b[img:img+values*dirEntry], b[img+values*dirEntry:len(b)-dirFooter]
	list := make([]string, owners)
	for i := range list {
		n, w := binary.Uvarint(names)
		if w <= 0 || n > uint64(len(names)-w) {
			return nil, 0, errDirectory
		}
		list[i] = string(names[w : w+int(n)])
		names = names[w+int(n):]
	}
	items = make([]dirItem, values)
	for i := range items {
		d := dir[i*dirEntry:]
		it := dirItem{id: ID(d[:16]), off: u32(d[16:]), size: u32(d[20:]), sum: u32(d[24:])}
		owner := u32(d[28:])
		if int(owner) >= owners || int64(it.off)+int64(it.size) > int64(img) {
			return nil, 0, errDirectory
		}
		it.owner = list[owner]
		items[i] = it
	}
	return items, img, nil
}

func segmentKey(shard int, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'s', byte(shard)}, seq)
}

// deadKey is the key of the list of values of a segment that are gone.
func deadKey(shard int, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{'t', byte(shard)}, seq)
}

// cut takes a value out of a stored segment, into dst.
func (v spot) cut(b []byte, base int, dst []byte) error {
	from := int64(v.off) - int64(base)
	if from < 0 || from+int64(v.size) > int64(len(b)) || int(v.size) != len(dst) {
		return fmt.Errorf("%w: %d bytes at %d of %d", errDirectory, v.size, from, len(b))
	}
	copy(dst, b[from:])
	if checksum32(dst) != v.sum {
		return errors.New("wrong checksum")
	}
	return nil
}
