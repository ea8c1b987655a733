package shuffle

import (
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// link is the sending end of the stream to one other node. All channels to that node share it. It is opened with its first
// channel and closed with its last.
type link struct {
	s    *Service
	node actors.NodeID
	refs int  // guarded by Service.mu
	gone bool // guarded by Service.mu; not to be joined any more

	once   sync.Once
	stream grpc.ClientStream // set by once
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

// outgoing is a frame in line: a small one, or a block that goes in parts.
type outgoing struct {
	f     frame
	block *shared // held, or nil
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
	conn, err := l.s.node.Conn(l.node)
	if err == nil {
		l.stream, err = conn.NewStream(l.ctx, &dataService.Streams[0], linkMethod, callOptions()...)
	}
	if err == nil {
		err = l.send(outgoing{f: frame{kind: frameHello, payload: small([]byte(l.s.node.ID()))}})
	}
	if err != nil {
		l.fail(l.lost(err))
		return
	}
	l.s.running.Go(l.receive)
	l.s.running.Go(l.transmit)
}

// lost is the error of a broken stream.
func (l *link) lost(err error) error { return fmt.Errorf("%w: node %s: %w", ErrPeer, l.node, err) }

// receive hands what the other node says to the channels. It never waits for anything else.
func (l *link) receive() {
	defer l.cancel(nil)
	for {
		var f frame
		err := l.stream.RecvMsg(&f)
		if err != nil {
			if cause := context.Cause(l.ctx); cause != nil && err != io.EOF {
				err = cause
			}
			l.fail(l.lost(err))
			return
		}
		l.mu.Lock()
		c := l.channels[f.channel]
		l.mu.Unlock()
		switch {
		case c == nil:
			f.free()
		case f.kind == frameGrant:
			f.free()
			c.grant(credit.Grant{Total: int64(f.a), Consumed: int64(f.b), Window: int64(f.c)})
		case f.kind == frameClosed:
			f.free()
			c.closed()
		case f.kind == frameFail:
			c.failed(fmt.Errorf("shuffle: node %s: %w", l.node, decodeFailure(f.bytes())))
		default:
			f.free()
			l.fail(l.lost(fmt.Errorf("%w: kind %d", errFrame, f.kind)))
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

// release gives a hold back. The last one closes the stream, after everything that was sent.
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
		l.bytes += int64(len(o.block.data))
		l.s.usage.line(int64(len(o.block.data)))
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

// transmit sends what is in line, in order, so that no writer waits for the network while it holds a slot.
func (l *link) transmit() {
	defer l.abandon()
	for {
		l.mu.Lock()
		if l.out.len() == 0 {
			closing := l.closing
			l.mu.Unlock()
			if closing {
				_ = l.stream.CloseSend()
				return
			}
			select {
			case <-l.wake:
				continue
			case <-l.ctx.Done():
				return
			}
		}
		o := l.out.pop()
		l.mu.Unlock()
		err := l.write(&o)
		l.sent(o)
		if err != nil {
			if cause := context.Cause(l.ctx); cause != nil {
				err = cause
			}
			if err != io.EOF { // else receive gets the reason, and fails the channels
				l.fail(l.lost(err))
			}
			return
		}
	}
}

// write sends a frame, a block in as many parts as it needs.
func (l *link) write(o *outgoing) error {
	if o.block == nil {
		return l.stream.SendMsg(&o.f)
	}
	for from, total := 0, len(o.block.data); ; {
		to := min(total, from+partBytes)
		f := o.f
		f.b, f.c, f.payload = uint64(total), uint64(from), o.block.part(from, to)
		if err := l.stream.SendMsg(&f); err != nil || to == total {
			return err
		}
		from = to
	}
}

// sent ends the wait of a frame and wakes the writers that found the link full.
func (l *link) sent(o outgoing) {
	if o.block == nil {
		return
	}
	n := int64(len(o.block.data))
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
		err = l.send(outgoing{f: frame{kind: frameOpen, channel: n, payload: small(payload)}})
	}
	if err != nil {
		out.release()
		return nil, err
	}
	return out, nil
}

// linkOutlet sends on one channel of a link.
type linkOutlet struct {
	l *link
	n uint32
}

// sendBlock sends a block, which is taken.
func (o *linkOutlet) sendBlock(seq uint64, b *shared, sum uint32) error {
	return o.l.send(outgoing{f: frame{kind: frameData, channel: o.n, a: seq, sum: sum}, block: b})
}

func (o *linkOutlet) end(batches uint64, bytes int64, sum uint32) error {
	return o.l.send(outgoing{f: frame{kind: frameEnd, channel: o.n, a: batches, b: uint64(bytes), sum: sum}})
}

func (o *linkOutlet) fail(err error) error {
	return o.l.send(outgoing{f: frame{kind: frameFail, channel: o.n, payload: small(encodeFailure(err))}})
}

// release ends the use of the channel's number.
func (o *linkOutlet) release() {
	o.l.mu.Lock()
	delete(o.l.channels, o.n)
	o.l.mu.Unlock()
	o.l.release()
}
