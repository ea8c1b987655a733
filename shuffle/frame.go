package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"manta/shuffle/block"
)

// A frame is one message of the data plane: a fixed little-endian header, then a payload of any length. It crosses
// gRPC without protobuf, so that the rows of a block are copied into the network once and out of it once.
type frame struct {
	kind    frameKind
	channel uint32
	a, b, c uint64
	sum     uint32
	payload mem.BufferSlice // its frees are the receiver's
}

type frameKind uint8

const (
	frameHello   frameKind = iota + 1 // payload: id of the node that opens the link
	frameOpen                         // channel; payload: shufflepb.Channel
	frameData                         // channel; a: sequence, b: bytes of the whole block, c: offset of this part, sum: of the whole block
	frameEnd                          // channel; a: batches, b: bytes, sum: of all blocks' sums
	frameFail                         // channel; payload: reason. Also from receiver to sender
	frameGrant                        // channel; a: total, b: consumed, c: window. From receiver to sender
	frameClosed                       // channel. From receiver to sender
	frameFetch                        // payload: shufflepb.Fetch
	framePart                         // a: bytes of the whole block, b: offset of this part
	frameRelease                      // payload: shufflepb.Fetch without ref
)

const (
	headerBytes = 40
	// partBytes bounds the payload of a frame: a larger block is cut.
	partBytes = 3 << 20
)

var errFrame = errors.New("shuffle: bad frame")

// codec is the gRPC codec for *frame. The name is the content-subtype of our calls, so the node's other services keep
// their own.
type codec struct{}

const codecName = "manta.shuffle.frame"

func init() { encoding.RegisterCodecV2(codec{}) }

func (codec) Name() string { return codecName }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("%w: %T", errFrame, v)
	}
	h := make([]byte, headerBytes)
	h[0] = byte(f.kind)
	binary.LittleEndian.PutUint32(h[4:], f.channel)
	binary.LittleEndian.PutUint64(h[8:], f.a)
	binary.LittleEndian.PutUint64(h[16:], f.b)
	binary.LittleEndian.PutUint64(h[24:], f.c)
	binary.LittleEndian.PutUint32(h[32:], f.sum)
	out := make(mem.BufferSlice, 0, 1+len(f.payload))
	out = append(out, mem.SliceBuffer(h))
	return append(out, f.payload...), nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("%w: %T", errFrame, v)
	}
	var h [headerBytes]byte
	if data.Len() < headerBytes {
		return fmt.Errorf("%w: %d bytes", errFrame, data.Len())
	}
	data.CopyTo(h[:])
	*f = frame{
		kind:    frameKind(h[0]),
		channel: binary.LittleEndian.Uint32(h[4:]),
		a:       binary.LittleEndian.Uint64(h[8:]),
		b:       binary.LittleEndian.Uint64(h[16:]),
		c:       binary.LittleEndian.Uint64(h[24:]),
		sum:     binary.LittleEndian.Uint32(h[32:]),
		payload: data,
	}
	data.Ref()
	return nil
}

// bytes returns the payload as one slice of its own, and frees it. For small payloads.
func (f *frame) bytes() []byte {
	b := make([]byte, f.payload.Len()-headerBytes)
	f.copyTo(b)
	return b
}

// size is the length of a received payload.
func (f *frame) size() int { return f.payload.Len() - headerBytes }

// copyTo copies a received payload to dst, which is as large, and frees it.
func (f *frame) copyTo(dst []byte) {
	skip := headerBytes
	for _, b := range f.payload {
		data := b.ReadOnlyData()
		if skip >= len(data) {
			skip -= len(data)
			continue
		}
		n := copy(dst, data[skip:])
		dst, skip = dst[n:], 0
	}
	f.free()
}

func (f *frame) free() {
	f.payload.Free()
	f.payload = nil
}

// small is a payload that nobody reuses.
func small(b []byte) mem.BufferSlice { return mem.BufferSlice{mem.SliceBuffer(b)} }

// chain adds the sum of one more block to that of a channel's blocks so far.
func chain(sum, block uint32) uint32 {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], block)
	return crc32.Update(sum, castagnoli, b[:])
}

// shared is memory that the network may still read after a send: freed with its last user.
type shared struct {
	data []byte
	free func()
	refs atomic.Int32
}

func share(data []byte, free func()) *shared {
	s := &shared{data: data, free: free}
	s.refs.Store(1)
	return s
}

func shareBlock(b *block.Buffer) *shared { return share(b.Bytes(), b.Free) }

func (s *shared) release() {
	if s.refs.Add(-1) == 0 && s.free != nil {
		s.free()
	}
}

// part is bytes [from, to) as a payload that holds s until gRPC is done with it.
func (s *shared) part(from, to int) mem.BufferSlice {
	data := s.data[from:to]
	if len(data) < 4096 { // gRPC does not count references to small buffers
		return small(append([]byte(nil), data...))
	}
	s.refs.Add(1)
	return mem.BufferSlice{mem.NewBuffer(&data, sharedPool{s})}
}

// sharedPool is how gRPC says that it is done with a buffer.
type sharedPool struct{ s *shared }

func (p sharedPool) Get(int) *[]byte { panic("shuffle: not a source of memory") }
func (p sharedPool) Put(*[]byte)     { p.s.release() }
