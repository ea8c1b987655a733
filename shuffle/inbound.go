package shuffle

import (
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// inbound is the receiving end of one node's link.
type inbound struct {
	s      *Service
	stream grpc.ServerStream
	from   actors.NodeID // owned by run; "" before hello
	kill   chan struct{} // closed when the node is dead

	sendMu sync.Mutex // one send at a time

	ports map[uint32]*port // owned by run
}

// port is a channel of a link at its receiver.
type port struct {
	in       *inbound
	n        uint32
	producer int
	queue    *streamQueue

	// The block that is arriving. Owned by run.
	seq     uint64
	block   []byte
	got     int
	total   int
	sum     uint32 // of its bytes so far
	sums    uint32 // of the blocks before
	discard bool
	active  bool
}

// run demultiplexes the stream. It never waits: what arrives was granted, so there is room.
func (in *inbound) run() error {
	err := in.loop()
	why := fmt.Errorf("%w: node %s: stream ended", ErrPeer, in.from)
	if err != nil {
		why = fmt.Errorf("%w: node %s: %w", ErrPeer, in.from, err)
	}
	for _, p := range in.ports {
		p.abandon()
		p.queue.lost(p.producer, p, why)
	}
	return err
}

func (in *inbound) loop() error {
	in.ports = map[uint32]*port{}
	for {
		var f frame
		if err := in.stream.RecvMsg(&f); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		if err := in.take(&f); err != nil {
			return err
		}
	}
}

// take handles one frame. An error ends the link: the peer does not follow the protocol.
func (in *inbound) take(f *frame) error {
	p := in.ports[f.channel]
	switch {
	case in.from == "" && f.kind == frameHello:
		if f.size() > 256 {
			f.free()
			return fmt.Errorf("%w: hello of %d bytes", errFrame, f.size())
		}
		in.from = actors.NodeID(f.bytes())
		return in.s.remember(in)
	case in.from == "":
		f.free()
		return fmt.Errorf("%w: kind %d before hello", errFrame, f.kind)
	case f.kind == frameOpen && p == nil:
		return in.open(f)
	case p == nil:
		f.free()
		return fmt.Errorf("%w: kind %d for channel %d", errFrame, f.kind, f.channel)
	}
	switch f.kind {
	case frameData:
		return p.data(f)
	case frameEnd:
		f.free()
		delete(in.ports, p.n)
		p.abandon()
		if f.a > 0 && !p.discard && f.sum != p.sums {
			p.queue.lost(p.producer, p, p.corrupt("end"))
			return nil
		}
		p.queue.end(p.producer, p, f.a, int64(f.b))
	case frameFail:
		delete(in.ports, p.n)
		p.abandon()
		p.queue.lost(p.producer, p, decodeFailure(f.bytes()))
	default:
		f.free()
		return fmt.Errorf("%w: kind %d", errFrame, f.kind)
	}
	return nil
}

// open binds a channel to its queue. What is wrong with it fails the channel, not the link.
func (in *inbound) open(f *frame) error {
	var c shufflepb.Channel
	if err := proto.Unmarshal(f.bytes(), &c); err != nil {
		return fmt.Errorf("%w: %v", errFrame, err)
	}
	p := &port{in: in, n: f.channel, producer: int(c.GetProducer())}
	in.ports[p.n] = p
	j, err := in.s.job(actors.JobID(c.GetJob()))
	if err == nil {
		p.queue, err = j.streamQueue(in.s, c.GetEdge(), c.GetPartition())
	}
	if err != nil {
		p.failed(err)
		// A queue that is over drops what is still under way.
		p.queue = newStreamQueue(in.s, "refused channel")
		p.queue.close()
		return nil
	}
	p.queue.open(p.producer, p)
	return nil
}

// data takes a part of a block.
func (p *port) data(f *frame) error {
	size := f.size()
	if !p.active {
		if f.c != 0 || f.b > 1<<40 || uint64(size) > f.b {
			f.free()
			return fmt.Errorf("%w: block of %d bytes from %d", errFrame, f.b, f.c)
		}
		ok, err := p.queue.admit(p.producer, p, f.a, int64(f.b))
		if err != nil {
			f.free()
			return err
		}
		p.active, p.seq, p.total, p.got, p.sum, p.discard = true, f.a, int(f.b), 0, 0, !ok
		if ok {
			p.block = p.in.s.mem.Allocate(p.total)
		}
	}
	if f.a != p.seq || f.c != uint64(p.got) || size > p.total-p.got || size == 0 && p.total > 0 {
		f.free()
		return fmt.Errorf("%w: part of block %d at %d", errFrame, f.a, f.c)
	}
	if p.discard {
		f.free()
	} else {
		part := p.block[p.got : p.got+size]
		f.copyTo(part)
		p.sum = crc32.Update(p.sum, castagnoli, part) // while it is in the core's cache
	}
	p.got += size
	if p.got < p.total {
		return nil
	}
	p.active = false
	switch {
	case p.discard:
	case p.sum != f.sum:
		p.abandon()
		p.queue.lost(p.producer, p, p.corrupt(fmt.Sprintf("block %d", p.seq)))
	default:
		b := p.block
		p.block = nil
		p.sums = chain(p.sums, p.sum)
		p.queue.deliver(streamItem{producer: p.producer, cost: int64(p.total), block: b})
	}
	return nil
}

// corrupt is the error of what arrived with a wrong checksum.
func (p *port) corrupt(what string) error {
	return fmt.Errorf("%w: %s of producer %d, from node %s", ErrCorrupt, what, p.producer, p.in.from)
}

// abandon frees a block that will not be complete.
func (p *port) abandon() {
	if p.block != nil {
		p.in.s.mem.Free(p.block)
		p.block = nil
	}
}

func (p *port) node() actors.NodeID { return p.in.from }

func (p *port) grant(g credit.Grant) {
	p.in.send(&frame{kind: frameGrant, channel: p.n, a: uint64(g.Total), b: uint64(g.Consumed), c: uint64(g.Window)})
}

func (p *port) closed() { p.in.send(&frame{kind: frameClosed, channel: p.n}) }

func (p *port) failed(err error) {
	p.in.send(&frame{kind: frameFail, channel: p.n, payload: small(encodeFailure(err))})
}

// send sends a small frame; the other end always reads. If the stream is broken, run ends too and tells the queues.
func (in *inbound) send(f *frame) {
	in.sendMu.Lock()
	defer in.sendMu.Unlock()
	_ = in.stream.SendMsg(f)
}

// remember lets NodeDead find the link.
func (s *Service) remember(in *inbound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reason, ok := s.dead[in.from]; ok {
		return fmt.Errorf("shuffle: node %s: %w (%s)", in.from, actors.ErrNodeDead, reason)
	}
	s.inbound[in] = in.from
	return nil
}

func (s *Service) forget(in *inbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inbound, in)
}
