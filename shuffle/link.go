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

	sendMu sync.Mutex // one send at a time

	mu       sync.Mutex
	channels map[uint32]*channel // guarded by mu
	next     uint32              // guarded by mu
	err      error               // guarded by mu
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
		l = &link{s: s, node: node, channels: map[uint32]*channel{}}
		l.ctx, l.cancel = context.WithCancelCause(s.ctx)
		s.links[node] = l
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
		err = l.stream.SendMsg(&frame{kind: frameHello, payload: small([]byte(l.s.node.ID()))})
	}
	if err != nil {
		l.fail(l.lost(err))
		return
	}
	l.s.running.Go(l.receive)
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
		l.sendMu.Lock()
		_ = l.stream.CloseSend()
		l.sendMu.Unlock()
	}
}

// send sends one frame, whose payload gRPC takes.
func (l *link) send(f *frame) error {
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	if err := l.stream.SendMsg(f); err != nil {
		if cause := l.failure(); cause != nil {
			return cause
		}
		if cause := context.Cause(l.ctx); cause != nil {
			err = cause
		}
		return l.lost(err)
	}
	return nil
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
		err = l.send(&frame{kind: frameOpen, channel: n, payload: small(payload)})
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

// sendBlock sends a block in as many parts as it needs. Other channels' frames may go between them.
func (o *linkOutlet) sendBlock(seq uint64, b *shared) error {
	for from := 0; ; {
		to := min(len(b.data), from+partBytes)
		f := &frame{kind: frameData, channel: o.n, a: seq, b: uint64(len(b.data)), c: uint64(from), payload: b.part(from, to)}
		if err := o.l.send(f); err != nil {
			return err
		}
		if to == len(b.data) {
			return nil
		}
		from = to
	}
}

func (o *linkOutlet) end(batches uint64, bytes int64) error {
	return o.l.send(&frame{kind: frameEnd, channel: o.n, a: batches, b: uint64(bytes)})
}

func (o *linkOutlet) fail(err error) error {
	return o.l.send(&frame{kind: frameFail, channel: o.n, payload: small(encodeFailure(err))})
}

// release ends the use of the channel's number.
func (o *linkOutlet) release() {
	o.l.mu.Lock()
	delete(o.l.channels, o.n)
	o.l.mu.Unlock()
	o.l.release()
}
