package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// farBlocks fetches blocks for one reader: one stream to each node that has some. It is for one goroutine.
type farBlocks struct {
	s       *Service
	e       *Edge
	ctx     context.Context
	streams map[actors.NodeID]*farStream
	control int64
}

type farStream struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
	used   []*shufflepb.Ref // to be given back with the next request
}

var errReply = errors.New("shuffle: unexpected reply")

func (b *farBlocks) request(q queuedRef) *shufflepb.Fetch {
	return &shufflepb.Fetch{Job: string(b.e.Job), Edge: b.e.ID, Producer: uint32(q.producer), Ref: q.ref}
}

func (b *farBlocks) to(node actors.NodeID) (*farStream, error) {
	if f := b.streams[node]; f != nil {
		return f, nil
	}
	conn, err := b.s.node.Conn(node)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	stream, err := conn.NewStream(ctx, &dataService.Streams[1], fetchMethod, callOptions()...)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w: %w", ErrPeer, err)
	}
	if b.streams == nil {
		b.streams = map[actors.NodeID]*farStream{}
	}
	f := &farStream{stream: stream, cancel: cancel}
	b.streams[node] = f
	return f, nil
}

// fetch asks for a block and hands its parts, in order, to take, which frees them.
func (b *farBlocks) fetch(q queuedRef, take func(*frame) error) error {
	f, err := b.to(b.e.Producers[q.producer])
	if err != nil {
		return err
	}
	req := b.request(q)
	req.Release = f.used
	if err := b.send(f, frameFetch, req); err != nil {
		return err
	}
	total := q.ref.GetSize()
	for at := int64(0); ; {
		var part frame
		if err := f.stream.RecvMsg(&part); err != nil {
			return fmt.Errorf("%w: %w", ErrPeer, err)
		}
		n := int64(part.size())
		switch {
		case part.kind == frameFail:
			return decodeFailure(part.bytes())
		case part.kind != framePart || int64(part.a) != total || int64(part.b) != at || n > total-at || n == 0 && total > 0:
			part.free()
			return fmt.Errorf("%w: part of %d bytes at %d of %d", errReply, n, part.b, part.a)
		}
		if err := take(&part); err != nil {
			return err
		}
		f.used = f.used[len(req.Release):] // an answer: the request, and its releases, arrived
		req.Release = nil
		if at += n; at == total {
			return nil
		}
	}
}

func (b *farBlocks) send(f *farStream, kind frameKind, req *shufflepb.Fetch) error {
	data, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	b.control++
	if err := f.stream.SendMsg(&frame{kind: kind, payload: small(data)}); err != nil {
		if err == io.EOF {
			err = f.stream.RecvMsg(&frame{}) // the reason
		}
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return nil
}

// release gives a fetched object's reference back, with the next request or at the end.
func (b *farBlocks) release(q queuedRef) {
	if f := b.streams[b.e.Producers[q.producer]]; f != nil && len(q.ref.GetObject()) > 0 {
		f.used = append(f.used, q.ref)
	}
}

// flush gives back what is left to give, and ends the streams once the other nodes have seen it.
func (b *farBlocks) flush() {
	for node, f := range b.streams {
		if len(f.used) > 0 && b.send(f, frameRelease, &shufflepb.Fetch{Job: string(b.e.Job), Release: f.used}) != nil {
			continue
		}
		if f.stream.CloseSend() == nil && errors.Is(f.stream.RecvMsg(&frame{}), io.EOF) {
			f.used = nil // all was read
		}
		if len(f.used) > 0 {
			continue
		}
		f.cancel()
		delete(b.streams, node)
	}
}

// close ends the streams. It returns the number of requests, and the references that may not have been given back.
func (b *farBlocks) close() (control int64, owed map[actors.NodeID][]*shufflepb.Ref) {
	owed = map[actors.NodeID][]*shufflepb.Ref{}
	for node, f := range b.streams {
		f.cancel()
		if len(f.used) > 0 {
			owed[node] = f.used
		}
	}
	b.streams = nil
	return b.control, owed
}

// giveBack releases references that nobody will read, and the owed ones, which may be released already: that does no harm.
// What cannot be reached goes with the end of the job.
func giveBack(s *Service, e *Edge, refs []queuedRef, byNode map[actors.NodeID][]*shufflepb.Ref) (messages int64) {
	for _, r := range refs {
		if len(r.ref.GetObject()) > 0 {
			node := e.Producers[r.producer]
			byNode[node] = append(byNode[node], r.ref)
		}
	}
	s.releaseHere(byNode[s.node.ID()])
	delete(byNode, s.node.ID())
	if len(byNode) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b := &farBlocks{s: s, e: e, ctx: ctx}
	defer b.close()
	for node, list := range byNode {
		if f, err := b.to(node); err == nil {
			f.used = list
		}
	}
	b.flush()
	return b.control
}
