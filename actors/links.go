package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"manta/actors/core"
	"manta/actors/internal/wire"
	"manta/actors/link"
)

const (
	frameItems = 512     // of a frame, at most
	frameBytes = 4 << 20 // of a frame's items, about
	ackAfter   = 10 * time.Millisecond
	ackItems   = 1024
)

// links are this node's links to others, for the typed runtime: the shell around package link.
type links struct {
	n       *Node
	receive func(from NodeID, msgs []any)

	mu     sync.Mutex
	peers  map[NodeID]*linkPeer // guarded by mu
	gone   [256]NodeID          // guarded by mu; the last that were forgotten, also when the head knows nothing of them any more
	oldest int                  // guarded by mu; of gone: the next takes its place
	closed bool                 // guarded by mu
	alive  sync.WaitGroup
}

// linkPeer is the link to one node.
type linkPeer struct {
	l      *links
	node   NodeID
	ctx    context.Context
	cancel context.CancelFunc
	kick   chan struct{} // capacity 1

	mu       sync.Mutex
	out      link.Sender[any]          // guarded by mu
	progress bool                      // guarded by mu; something was acknowledged since the last look
	in       link.Receiver[*wire.Item] // guarded by receiving
	acked    uint64                    // guarded by mu; what the other side was told
	ack      uint64                    // guarded by mu; what it is to be told

	receiving sync.Mutex // serializes what comes in
}

func newLinks(n *Node, receive func(NodeID, []any)) *links {
	return &links{n: n, receive: receive, peers: make(map[NodeID]*linkPeer)}
}

// peer finds the link to a node; nil when this node closes, or that one is dead: a link to it would never end.
func (l *links) peer(node NodeID) *linkPeer {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[node]
	if p == nil && !l.closed && !l.dead(node) {
		p = &linkPeer{l: l, node: node, kick: make(chan struct{}, 1)}
		p.ctx, p.cancel = context.WithCancel(l.n.ctx)
		l.peers[node] = p
		l.alive.Add(1)
		go p.run()
	}
	return p
}

// dead says whether a node is known to be dead. It runs under mu, so that none is found alive here after forget.
func (l *links) dead(node NodeID) bool {
	info, _ := l.n.peers.get(node)
	return info.State == NodeDead || slices.Contains(l.gone[:], node)
}

// send puts a message on its way, or drops it if the node is dead. It does not wait. The message must not change afterwards.
func (l *links) send(to NodeID, msg any) {
	p := l.peer(to)
	if p == nil {
		return
	}
	p.mu.Lock()
	p.out.Push(msg)
	p.mu.Unlock()
	p.wake()
}

func (p *linkPeer) wake() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// forget ends the link to a node that is dead.
func (l *links) forget(node NodeID) {
	l.mu.Lock()
	p := l.peers[node]
	delete(l.peers, node)
	l.gone[l.oldest] = node
	l.oldest = (l.oldest + 1) % len(l.gone)
	l.mu.Unlock()
	if p != nil {
		p.cancel()
	}
}

// sweep ends the links to nodes that were dead when this one first heard of them.
func (l *links) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, p := range l.peers {
		if l.dead(node) {
			delete(l.peers, node)
			p.cancel()
		}
	}
}

func (l *links) close() {
	l.mu.Lock()
	l.closed = true
	for _, p := range l.peers {
		p.cancel()
	}
	l.mu.Unlock()
	l.alive.Wait()
}

// frame is what is to be sent now; nil if nothing is.
func (p *linkPeer) frame(ackDue bool) *wire.Frame {
	p.mu.Lock()
	first, ms := p.out.Next(frameItems)
	bytes := 0
	for i, m := range ms {
		if bytes += weight(m); bytes > frameBytes && i > 0 {
			p.out.Back(len(ms) - i)
			ms = ms[:i]
			break
		}
	}
	ms = append([]any(nil), ms...)
	f := &wire.Frame{From: string(p.l.n.id), To: string(p.node), Ack: p.ack}
	if len(ms) == 0 && !(ackDue && p.ack > p.acked) {
		p.mu.Unlock()
		return nil
	}
	p.acked = p.ack
	p.mu.Unlock()
	f.Items = make([]*wire.Item, 0, len(ms))
	for i, m := range ms {
		item, err := toItem(m)
		if err != nil { // what cannot travel was refused when it was made
			p.l.n.log.Error("a message cannot travel", "message", m, "error", err)
			item = &wire.Item{}
		}
		item.Seq = first + uint64(i)
		f.Items = append(f.Items, item)
	}
	return f
}

// weight is about how many bytes of values a message carries.
func weight(msg any) (n int) {
	add := func(vs []core.Value) {
		for i := range vs {
			n += len(vs[i].Data) + 8*len(vs[i].Contains)
		}
	}
	switch m := msg.(type) {
	case *core.Submit:
		n = specWeight(m.Spec)
	case *core.Call:
		n = specWeight(m.Spec)
	case *core.Answer:
		n = len(m.Value.Data)
	case *core.Start:
		add(m.Args)
	case *core.Done:
		add(m.Results)
	case *core.Items:
		add(m.Values)
	case *core.Put:
		n = len(m.Value.Data) + 8*len(m.Value.Contains)
	case *core.Ready:
		n = len(m.Value.Data) + 8*len(m.Value.Contains)
	case *core.Emit:
		n = len(m.Value.Data) + 8*len(m.Value.Contains)
	}
	return n
}

func specWeight(s *core.Spec) (n int) {
	for i := range s.Args {
		if v := s.Args[i].Val; v != nil {
			n += len(v.Data) + 8*len(v.Contains)
		}
	}
	return n
}

// run sends until the link ends.
func (p *linkPeer) run() {
	defer p.l.alive.Done()
	ways := p.l.n.ways(p)
	defer ways.close()
	ack := time.NewTimer(time.Hour)
	resend := time.NewTicker(resendAfter)
	defer ack.Stop()
	defer resend.Stop()
	due := false
	for {
		for {
			f := p.frame(due)
			due = false
			if f == nil {
				break
			}
			if err := ways.send(p.ctx, f); err != nil {
				if p.ctx.Err() != nil {
					return
				}
				p.mu.Lock()
				p.out.Rewind()
				p.mu.Unlock()
				select {
				case <-time.After(50 * time.Millisecond):
				case <-p.ctx.Done():
					return
				}
			}
		}
		p.mu.Lock()
		owed := p.ack - p.acked
		p.mu.Unlock()
		if owed >= ackItems {
			due = true
			continue
		} else if owed > 0 {
			ack.Reset(ackAfter)
		}
		select {
		case <-p.kick:
		case <-ack.C:
			due = true
		case <-resend.C:
			p.mu.Lock()
			if !p.progress && p.out.Open() > 0 && p.out.Unsent() == 0 {
				p.out.Rewind()
			}
			p.progress = false
			p.mu.Unlock()
		case <-p.ctx.Done():
			return
		}
	}
}

// accept takes a frame from the other side.
func (p *linkPeer) accept(f *wire.Frame) {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	msgs := make([]any, 0, len(f.Items))
	for _, i := range f.Items {
		for _, in := range p.in.Accept(i.Seq, i) {
			if m := fromItem(in); m != nil {
				msgs = append(msgs, m)
			}
		}
	}
	p.mu.Lock()
	if p.out.Ack(f.Ack) {
		p.progress = true
	}
	news := p.ack != p.in.Ack()
	p.ack = p.in.Ack()
	if !news && len(f.Items) > 0 {
		p.acked = 0 // it repeats itself: it has missed an acknowledgement
	}
	p.mu.Unlock()
	if len(msgs) > 0 {
		p.l.receive(p.node, msgs)
	}
	if len(f.Items) > 0 {
		p.wake()
	}
}

// incoming takes a frame from whatever way it came. It is false when it is not for this node, or of a node that is dead
// or not known yet.
func (l *links) incoming(f *wire.Frame) bool {
	from := NodeID(f.From)
	if NodeID(f.To) != l.n.id {
		return false
	}
	info, known := l.n.peers.get(from)
	if !known {
		l.n.refreshSoon()
		return false
	}
	if info.State == NodeDead {
		return false
	}
	if p := l.peer(from); p != nil {
		p.accept(f)
		return true
	}
	return false
}

// way carries frames to one node. It may lose them.
type way interface {
	send(ctx context.Context, f *wire.Frame) error
	close()
}

func (n *Node) ways(p *linkPeer) way {
	var w way
	if n.cfg.InProcess != nil {
		w = &hubWay{hub: n.cfg.InProcess, to: p.node}
	} else {
		w = &streamWay{n: n, to: p.node}
	}
	if n.cfg.Faults != nil {
		w = &faultyWay{way: w, faults: n.cfg.Faults}
	}
	return w
}

// streamWay is a gRPC stream on a connection of its own, so that bulk does not hold it up.
type streamWay struct {
	n      *Node
	to     NodeID
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[wire.Frame, wire.LinkIdle]
}

func (w *streamWay) send(ctx context.Context, f *wire.Frame) error {
	if w.stream == nil {
		info, err := w.n.find(ctx, w.to)
		if err != nil {
			return err
		}
		if w.conn == nil {
			if w.conn, err = newClient(info.Address, w.n.trust); err != nil {
				return err
			}
		}
		if w.stream, err = wire.NewRuntimeClient(w.conn).Link(ctx); err != nil {
			w.stream = nil
			return err
		}
	}
	if err := w.stream.Send(f); err != nil {
		w.stream = nil
		return err
	}
	return nil
}

func (w *streamWay) close() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

// runtimeServer answers the Runtime service.
type runtimeServer struct {
	wire.UnimplementedRuntimeServer
	n *Node
}

func (s *runtimeServer) Link(stream grpc.BidiStreamingServer[wire.Frame, wire.LinkIdle]) error {
	for {
		f, err := stream.Recv()
		if err != nil {
			return nil
		}
		if !s.n.links.incoming(f) {
			return toStatus(codes.FailedPrecondition, ErrNodeDead)
		}
	}
}

// hubWay hands frames over within the process, encoded all the same.
type hubWay struct {
	hub *Hub
	to  NodeID
}

func (w *hubWay) send(_ context.Context, f *wire.Frame) error {
	deliver := w.hub.frames(w.to)
	if deliver == nil {
		return ErrUnreachable
	}
	data, err := proto.Marshal(f)
	if err != nil {
		return err
	}
	copied := new(wire.Frame)
	if err := proto.Unmarshal(data, copied); err != nil {
		return err
	}
	if !deliver(copied) {
		return ErrUnreachable
	}
	return nil
}

func (w *hubWay) close() {}
