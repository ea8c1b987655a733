package shuffle

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
)

// A frame is one message of the data plane: a fixed little-endian header, then a payload of any length.
type frame struct {
	kind    frameKind
	channel uint32
	a, b, c uint64
	sum     uint32
	size    int64 // of the payload
}

type frameKind uint8

const (
	frameHello   frameKind = iota + 1 // payload: id of the node that opens the connection
	frameOpen                         // channel; payload: shufflepb.Channel
	frameData                         // channel; a: sequence, sum: of the parts of the payload, which is a batch (see format)
	frameEnd                          // channel; a: batches, b: bytes, sum: of all blocks' sums
	frameFail                         // channel, or 0 for all; payload: reason. Also from receiver to sender
	frameGrant                        // channel; a: total, b: consumed, c: window. From receiver to sender
	frameClosed                       // channel. From receiver to sender
	frameFetch                        // a: fate of what is given back; payload: shufflepb.Fetch
	framePart                         // a: bytes of the whole block, b: offset of this part, sum: of this part, if it is an object's
	frameRelease                      // a: fate; payload: shufflepb.Fetch without ref
)

const (
	headerBytes = 44
	// partBytes bounds a part of a block that is fetched.
	partBytes = 1 << 20
	// smallBytes bounds the payload of a frame without rows.
	smallBytes = 4 << 20
)

var errFrame = errors.New("shuffle: bad frame")

// appendTo appends the header.
func (f *frame) appendTo(h []byte) []byte {
	h = append(h, byte(f.kind), 0, 0, 0)
	h = binary.LittleEndian.AppendUint32(h, f.channel)
	h = binary.LittleEndian.AppendUint64(h, f.a)
	h = binary.LittleEndian.AppendUint64(h, f.b)
	h = binary.LittleEndian.AppendUint64(h, f.c)
	h = binary.LittleEndian.AppendUint32(h, f.sum)
	return binary.LittleEndian.AppendUint64(h, uint64(f.size))
}

// parse reads a header.
func (f *frame) parse(h []byte) error {
	*f = frame{
		kind:    frameKind(h[0]),
		channel: binary.LittleEndian.Uint32(h[4:]),
		a:       binary.LittleEndian.Uint64(h[8:]),
		b:       binary.LittleEndian.Uint64(h[16:]),
		c:       binary.LittleEndian.Uint64(h[24:]),
		sum:     binary.LittleEndian.Uint32(h[32:]),
		size:    int64(binary.LittleEndian.Uint64(h[36:])),
	}
	if f.size < 0 || f.size > 1<<40 {
		return errFrame
	}
	return nil
}

// outgoing is a frame on its way out, with its payload: a few bytes that nobody changes, or a block.
type outgoing struct {
	f     frame
	text  []byte
	block *shared     // held, or nil
	lane  *linkOutlet // of data and END, which have sums
}

// shared is a block in memory that several may use: freed with its last user.
type shared struct {
	parts [][]byte // one after another
	size  int64
	free  func()
	refs  atomic.Int32
	sum   atomic.Uint64 // the checksum, once it was asked for, and a bit that says so
}

// share is the first hold of a block in one piece.
func share(data []byte, free func()) *shared {
	s := &shared{parts: [][]byte{data}, size: int64(len(data)), free: free}
	s.refs.Store(1)
	return s
}

// known is a checksum that was made.
func known(sum uint32) uint64 { return 1<<32 | uint64(sum) }

// checksum is that of the parts. Any number of goroutines may ask for it.
func (s *shared) checksum() uint32 {
	if sum := s.sum.Load(); sum != 0 {
		return uint32(sum)
	}
	var sum partSums
	for _, p := range s.parts {
		sum.add(p)
	}
	s.sum.Store(known(sum.sum()))
	return sum.sum()
}

func (s *shared) release() {
	if s.refs.Add(-1) == 0 && s.free != nil {
		s.free()
	}
}
