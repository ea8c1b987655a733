package shuffle

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// link is the sending end of the connection to one other node. All channels to that node share it. It is opened with its
// first channel and closed with its last.
type link struct {
	s    *Service
	node actors.NodeID
	refs int  // guarded by Service.mu
	gone bool // guarded by Service.mu; not to be joined any more

	once   sync.Once
	wire   *wire // set by once
	ctx    context.Context
	cancel context.CancelCauseFunc

	wake chan struct{} // of transmit, capacity 1

	mu       sync.Mutex
	channels map[uint32]*channel // guarded by mu, like all below
	next     uint32
	out      fifo[outgoing]
	bytes    int64                      // of the blocks in out
	waiting  map[chan struct{}]struct{} // writers that found the link full
	closing  bool                       // no channel is left
	stopped  bool                       // transmit has ended
	err      error
}

// link returns the link to a node, held: release it once.
func (s *Service) link(node actors.NodeID) (*link, error) {
	if err := s.deadError(node); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrJobEnded
	}
	l := s.links[node]
	if l == nil {
		l = &link{
			s: s, node: node, wake: make(chan struct{}, 1),
			channels: map[uint32]*channel{}, waiting: map[chan struct{}]struct{}{},
		}
		l.ctx, l.cancel = context.WithCancelCause(s.ctx)
		s.links[node] = l
		s.usage.addLinks(1)
	}
	l.refs++
	s.mu.Unlock()
	l.once.Do(l.connect)
	if err := l.failure(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

func (l *link) connect() {
	var err error
	if l.wire, err = l.s.dial(l.ctx, l.node, linkService); err != nil {
		l.fail(l.lost(err))
		return
	}
	if !l.s.begin() {
		l.wire.close()
		l.fail(l.lost(ErrJobEnded))
		return
	}
	defer l.s.running.Done()
	l.s.running.Go(l.receive)
	l.s.running.Go(l.transmit)
}

// lost is the error of a broken connection.
func (l *link) lost(err error) error { return fmt.Errorf("%w: node %s: %w", ErrPeer, l.node, err) }

// receive hands what the other node says to the channels. It never waits for anything else.
func (l *link) receive() {
	defer l.wire.close()
	defer l.cancel(nil)
	for {
		f, err := l.wire.recv()
		if err != nil {
			if cause := context.Cause(l.ctx); cause != nil {
				err = cause
			}
			l.fail(l.lost(err))
			return
		}
		l.mu.Lock()
		c := l.channels[f.channel]
		l.mu.Unlock()
		switch {
		case f.kind == frameFail && (f.channel == 0 || c != nil):
			text, _ := l.wire.text(smallBytes) // what is cut off is still a reason
			why := decodeFailure(text)
			if f.channel == 0 {
				l.fail(l.lost(why))
				return
			}
			c.failed(fmt.Errorf("shuffle: node %s: %w", l.node, why))
		case c == nil:
		case f.kind == frameGrant:
			c.grant(credit.Grant{Total: int64(f.a), Consumed: int64(f.b), Window: int64(f.c)})
		case f.kind == frameClosed:
			c.closed()
		default:
			l.fail(l.lost(fmt.Errorf("%w: kind %d", errFrame, f.kind)))
			return
		}
	}
}

// fail ends the link and all its channels. Only the first error counts.
func (l *link) fail(err error) {
	l.s.mu.Lock()
	l.drop()
	l.s.mu.Unlock()
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = err
	channels := make([]*channel, 0, len(l.channels))
	for _, c := range l.channels {
		channels = append(channels, c)
	}
	l.mu.Unlock()
	l.cancel(err)
	if without(lostPeer) {
		return
	}
	for _, c := range channels {
		c.failed(err)
	}
}

// drop takes the link out of the service's map. Service.mu is held.
func (l *link) drop() {
	l.gone = true
	if l.s.links[l.node] == l {
		delete(l.s.links, l.node)
		l.s.usage.addLinks(-1)
	}
}

func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// release gives a hold back. The last one ends the connection, after everything that was sent.
func (l *link) release() {
	l.s.mu.Lock()
	l.refs--
	last := l.refs == 0 && !l.gone
	if last {
		l.drop()
	}
	l.s.mu.Unlock()
	if last {
		l.mu.Lock()
		l.closing = true
		l.mu.Unlock()
		poke(l.wake)
	}
}

// send puts a frame in line. Its block, if any, is taken: what may be in line is bounded by credit and by full.
func (l *link) send(o outgoing) error {
	l.mu.Lock()
	if l.err != nil || l.stopped {
		defer l.mu.Unlock()
		if o.block != nil {
			o.block.release()
		}
		return l.err // nil for a moment: receive is about to fail the channels
	}
	if o.block != nil {
		l.bytes += o.block.size
		l.s.usage.line(o.block.size)
	}
	l.out.push(o)
	l.mu.Unlock()
	poke(l.wake)
	return nil
}

// full says whether blocks should wait before they get in line; then wake is poked once there is room.
func (l *link) full(wake chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes == 0 || l.bytes < l.s.usage.lineLimit() || l.err != nil {
		return false
	}
	l.waiting[wake] = struct{}{}
	return true
}

// What transmit sends with one call to the system: enough that the call costs little beside its bytes.
const (
	sendBytes  = 1 << 20
	sendFrames = 64
)

// transmit sends what is in line, in order, so that no writer waits for the network while it holds a slot.
func (l *link) transmit() {
	defer l.abandon()
	var batch []outgoing
	for {
		l.mu.Lock()
		batch = batch[:0]
		for size := int64(0); l.out.len() > 0 && size < sendBytes && len(batch) < sendFrames; {
			o := l.out.pop()
			if o.block != nil {
				size += o.block.size
			}
			batch = append(batch, o)
		}
		closing := l.closing
		l.mu.Unlock()
		if len(batch) == 0 {
			if closing {
				_ = l.wire.end()
				return
			}
			select {
			case <-l.wake:
				continue
			case <-l.ctx.Done():
				return
			}
		}
		for i := range batch {
			batch[i].seal()
		}
		err := l.wire.send(batch...)
		for _, o := range batch {
			l.sent(o)
		}
		clear(batch)
		if err != nil {
			l.broken(err)
			return
		}
	}
}

// broken fails the link after a send failed. The other end may have said why before it left: receive gets to that first.
func (l *link) broken(err error) {
	if cause := context.Cause(l.ctx); cause != nil {
		l.fail(l.lost(cause))
		return
	}
	late := time.AfterFunc(time.Second, func() { l.fail(l.lost(err)) })
	defer late.Stop()
	<-l.ctx.Done()
}

// sent ends the wait of a frame and wakes the writers that found the link full.
func (l *link) sent(o outgoing) {
	if o.block == nil {
		return
	}
	n := o.block.size
	o.block.release()
	l.s.usage.line(-n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes -= n
	for w := range l.waiting {
		poke(w)
	}
	clear(l.waiting)
}

// abandon forgets what is in line.
func (l *link) abandon() {
	l.mu.Lock()
	rest := l.out.takeAll()
	l.stopped = true
	l.mu.Unlock()
	for _, o := range rest {
		l.sent(o)
	}
}

// open announces a channel and returns the way to send on it. It takes the caller's hold of the link.
func (l *link) open(c *channel, about *shufflepb.Channel) (*linkOutlet, error) {
	payload, err := proto.Marshal(about)
	if err != nil {
		l.release()
		return nil, err
	}
	l.mu.Lock()
	l.next++
	n := l.next
	l.channels[n] = c
	err = l.err
	l.mu.Unlock()
	out := &linkOutlet{l: l, n: n}
	if err == nil {
		err = l.send(outgoing{f: frame{kind: frameOpen, channel: n}, text: payload})
	}
	if err != nil {
		out.release()
		return nil, err
	}
	return out, nil
}

// linkOutlet sends on one channel of a link.
type linkOutlet struct {
	l    *link
	n    uint32
	sums uint32 // of the blocks that were sent; transmit's
}

// sendBlock sends a block, which is taken.
func (o *linkOutlet) sendBlock(seq uint64, b *shared) error {
	return o.l.send(outgoing{f: frame{kind: frameData, channel: o.n, a: seq}, block: b, lane: o})
}

func (o *linkOutlet) end(batches uint64, bytes int64) error {
	return o.l.send(outgoing{f: frame{kind: frameEnd, channel: o.n, a: batches, b: uint64(bytes)}, lane: o})
}

// seal gives a frame that is about to leave its sum. A batch's is made then: no task makes it while it holds a slot, and the
// system copies the bytes right after.
func (o *outgoing) seal() {
	if o.lane == nil {
		return
	}
	if o.block != nil {
		o.f.sum = o.block.checksum()
		o.lane.sums = chain(o.lane.sums, o.f.sum)
		return
	}
	o.f.sum = o.lane.sums
}

func (o *linkOutlet) fail(err error) error {
	return o.l.send(outgoing{f: frame{kind: frameFail, channel: o.n}, text: encodeFailure(err)})
}

// release ends the use of the channel's number.
func (o *linkOutlet) release() {
	o.l.mu.Lock()
	delete(o.l.channels, o.n)
	o.l.mu.Unlock()
	o.l.release()
}
