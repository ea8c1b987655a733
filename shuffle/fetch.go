package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// farBlocks fetches blocks for one reader: over one connection to each node that has some. It is for one goroutine.
type farBlocks struct {
	s       *Service
	e       *Edge
	ctx     context.Context
	streams map[actors.NodeID]*farStream
	fate    fate // of what is given back
	control int64
}

type farStream struct {
	wire *wire
	used []*shufflepb.Ref // to be given back with the next request
}

var errReply = errors.New("shuffle: unexpected reply")

func (b *farBlocks) request(q queuedRef) *shufflepb.Fetch {
	return &shufflepb.Fetch{Job: string(b.e.Job), Edge: b.e.ID, Producer: uint32(q.producer), Ref: q.ref}
}

func (b *farBlocks) to(node actors.NodeID) (*farStream, error) {
	if f := b.streams[node]; f != nil {
		return f, nil
	}
	if err := b.s.deadError(node); err != nil {
		return nil, err
	}
	w, err := b.s.dial(b.ctx, node, fetchService)
	if err != nil {
		return nil, peerError(err)
	}
	if err := b.s.remember(w, node); err != nil {
		w.close()
		return nil, err
	}
	if b.streams == nil {
		b.streams = map[actors.NodeID]*farStream{}
	}
	f := &farStream{wire: w}
	b.streams[node] = f
	return f, nil
}

// peerError is the error of a connection that broke.
func peerError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrPeer, err)
}

// fetch asks for a block and calls take for each of its parts, in order, to read its bytes and add them to sum. The sum is that of a part
// of an object, which is compared, or of all of a file's range.
func (b *farBlocks) fetch(q queuedRef, sum *digest, take func(w *wire, n int64) error) error {
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
		part, err := f.wire.recv()
		if err != nil {
			return peerError(err)
		}
		n := part.size
		switch {
		case part.kind == frameFail:
			text, err := f.wire.text(smallBytes)
			if err != nil {
				return peerError(err)
			}
			return decodeFailure(text)
		case part.kind != framePart || int64(part.a) != total || int64(part.b) != at || n > total-at || n == 0 && total > 0:
			return fmt.Errorf("%w: part of %d bytes at %d of %d", errReply, n, part.b, part.a)
		}
		if len(q.ref.GetObject()) > 0 {
			sum.reset()
		}
		if err := take(f.wire, n); err != nil {
			return err
		}
		if len(q.ref.GetObject()) > 0 && sum.sum() != part.sum {
			return fmt.Errorf("%w: %d bytes at %d of an object", ErrCorrupt, n, at)
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
	return peerError(f.wire.send(outgoing{f: frame{kind: kind, a: uint64(b.fate)}, text: data}))
}

// release gives a fetched object's reference back, with the next request or at the end.
func (b *farBlocks) release(q queuedRef) {
	if f := b.streams[b.e.Producers[q.producer]]; f != nil && len(q.ref.GetObject()) > 0 {
		f.used = append(f.used, q.ref)
	}
}

// flush gives back what is left to give, and ends the connections once the other nodes have seen it.
func (b *farBlocks) flush() {
	for node, f := range b.streams {
		if len(f.used) > 0 && b.send(f, frameRelease, &shufflepb.Fetch{Job: string(b.e.Job), Release: f.used}) != nil {
			continue
		}
		if f.wire.end() == nil {
			if _, err := f.wire.recv(); err == io.EOF {
				f.used = nil // all was read
			}
		}
		if len(f.used) > 0 {
			continue
		}
		b.end(f)
		delete(b.streams, node)
	}
}

func (b *farBlocks) end(f *farStream) {
	f.wire.close()
	b.s.forget(f.wire)
}

// close ends the connections. It returns the number of requests, and the references that may not have been given back.
func (b *farBlocks) close() (control int64, owed map[actors.NodeID][]*shufflepb.Ref) {
	owed = map[actors.NodeID][]*shufflepb.Ref{}
	for node, f := range b.streams {
		b.end(f)
		if len(f.used) > 0 {
			owed[node] = f.used
		}
	}
	b.streams = nil
	return b.control, owed
}

// giveBack releases references that their reader will not read, and the owed ones, which may be released already: that does
// no harm. What cannot be reached goes with the end of the job.
func giveBack(s *Service, e *Edge, fate fate, refs []queuedRef, byNode map[actors.NodeID][]*shufflepb.Ref) (messages int64) {
	for _, r := range refs {
		if len(r.ref.GetObject()) > 0 {
			node := e.Producers[r.producer]
			byNode[node] = append(byNode[node], r.ref)
		}
	}
	s.releaseHere(byNode[s.node.ID()], fate)
	delete(byNode, s.node.ID())
	if len(byNode) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	b := &farBlocks{s: s, e: e, ctx: ctx, fate: fate}
	defer b.close()
	for node, list := range byNode {
		if f, err := b.to(node); err == nil {
			f.used = list
		}
	}
	b.flush()
	return b.control
}
