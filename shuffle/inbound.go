package shuffle

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/credit"
	"manta/shuffle/flat"
	"manta/shuffle/shufflepb"
)

// inbound is the receiving end of one node's link.
type inbound struct {
	s    *Service
	wire *wire
	from actors.NodeID

	answers *answers

	ports map[uint32]*port // owned by run
}

// port is a channel of a link at its receiver. It is owned by run.
type port struct {
	in       *inbound
	n        uint32
	producer int
	queue    *streamQueue
	types    uint64 // of the rows
	sums     uint32 // of the blocks that were delivered
	dropped  bool   // one was not
}

// run demultiplexes the connection. It waits for nothing but bytes: what arrives was granted, so there is room.
func (in *inbound) run() {
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() { in.answers.send(in.wire, done) })
	err := in.loop()
	why := fmt.Errorf("%w: node %s: connection ended", ErrPeer, in.from)
	if err != nil {
		why = fmt.Errorf("%w: node %s: %w", ErrPeer, in.from, err)
	}
	for _, p := range in.ports {
		p.queue.lost(p.producer, p, why)
	}
	// A peer that breaks the protocol may not read either.
	_ = in.wire.conn.SetDeadline(time.Now().Add(time.Second))
	close(done)
	sending.Wait()
	if err != nil {
		in.wire.refuse(err)
	}
}

func (in *inbound) loop() error {
	in.ports = map[uint32]*port{}
	for {
		f, err := in.wire.recv()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = in.take(&f)
		}
		if err != nil {
			return err
		}
	}
}

// take handles one frame. An error ends the link: the peer does not follow the protocol, or is gone.
func (in *inbound) take(f *frame) error {
	p := in.ports[f.channel]
	switch {
	case f.kind == frameOpen && p == nil && f.channel != 0:
		return in.open(f)
	case p == nil:
		return fmt.Errorf("%w: kind %d for channel %d", errFrame, f.kind, f.channel)
	}
	switch f.kind {
	case frameData:
		return p.data(f)
	case frameEnd:
		delete(in.ports, p.n)
		if f.a > 0 && !p.dropped && f.sum != p.sums {
			p.queue.lost(p.producer, p, p.corrupt("end"))
			return nil
		}
		p.queue.end(p.producer, p, f.a, int64(f.b))
	case frameFail:
		text, err := in.wire.text(smallBytes)
		if err != nil {
			return err
		}
		delete(in.ports, p.n)
		p.queue.lost(p.producer, p, decodeFailure(text))
	default:
		return fmt.Errorf("%w: kind %d", errFrame, f.kind)
	}
	return nil
}

// open binds a channel to its queue. What is wrong with it fails the channel, not the link.
func (in *inbound) open(f *frame) error {
	var c shufflepb.Channel
	text, err := in.wire.text(smallBytes)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(text, &c); err != nil {
		return fmt.Errorf("%w: %v", errFrame, err)
	}
	p := &port{in: in, n: f.channel, producer: int(c.GetProducer()), types: c.GetTypes()}
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

// data takes a block.
func (p *port) data(f *frame) error {
	ok, err := p.queue.admit(p.producer, p, f.a, f.size)
	if err != nil {
		return err
	}
	if !ok {
		p.dropped = true
		return nil
	}
	format := p.queue.formatOf()
	if err := format.check(p.types); err != nil {
		p.dropped = true
		p.queue.lost(p.producer, p, fmt.Errorf("producer %d, on node %s: %w", p.producer, p.in.from, err))
		return nil
	}
	mem := p.in.s.mem
	block, sum, err := p.in.wire.readBatch(mem, format)
	if err != nil || sum != f.sum {
		if block != nil {
			mem.Free(block)
		}
		if err != nil && !errors.Is(err, flat.ErrCorrupt) {
			return err
		}
		p.dropped = true
		p.queue.lost(p.producer, p, p.corrupt(fmt.Sprintf("block %d", f.a)))
		return nil
	}
	p.sums = chain(p.sums, sum)
	p.queue.deliver(streamItem{producer: p.producer, cost: f.size, block: block})
	if without(behind) {
		p.queue.awaitEmpty()
	}
	return nil
}

// corrupt is the error of what arrived with a wrong checksum.
func (p *port) corrupt(what string) error {
	return fmt.Errorf("%w: %s of producer %d, from node %s", ErrCorrupt, what, p.producer, p.in.from)
}

func (p *port) node() actors.NodeID { return p.in.from }

func (p *port) grant(g credit.Grant) {
	p.in.answers.put(outgoing{f: frame{kind: frameGrant, channel: p.n, a: uint64(g.Total), b: uint64(g.Consumed), c: uint64(g.Window)}})
}

func (p *port) closed() { p.in.answers.put(outgoing{f: frame{kind: frameClosed, channel: p.n}}) }

func (p *port) failed(err error) {
	p.in.answers.put(outgoing{f: frame{kind: frameFail, channel: p.n}, text: encodeFailure(err)})
}
