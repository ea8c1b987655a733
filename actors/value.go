package actors

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"manta/actors/internal/wire"
	"manta/objectstore"
)

// fetchChunk is the size of a piece of an object on its way to another node.
const fetchChunk = 1 << 20

// pack makes bytes ready for a control message: in place if they are small, or
// else in this node's store, for as long as the job lives.
func (n *Node) pack(job string, data []byte) (*wire.Value, error) {
	if len(data) <= MaxInline {
		return &wire.Value{Inline: data}, nil
	}
	id, err := n.store.Put(job, data)
	if err != nil {
		return nil, fmt.Errorf("a value of %d bytes: %w", len(data), err)
	}
	return &wire.Value{Node: string(n.id), Object: id[:], Size: int64(len(data))}, nil
}

// unpack gives the bytes, from the store that holds them if need be.
func (n *Node) unpack(ctx context.Context, v *wire.Value) ([]byte, error) {
	if v.GetNode() == "" {
		return v.GetInline(), nil
	}
	if NodeID(v.Node) == n.id {
		id, err := objectstore.IDFromBytes(v.Object)
		if err != nil {
			return nil, err
		}
		object, err := n.store.Get(id)
		if err != nil {
			return nil, err
		}
		defer object.Release()
		return append([]byte(nil), object.Bytes()...), nil
	}
	conn, err := n.Conn(NodeID(v.Node))
	if err != nil {
		return nil, err
	}
	stream, err := wire.NewPeerClient(conn).Fetch(ctx, &wire.FetchRequest{Object: v.Object})
	if err != nil {
		return nil, fmt.Errorf("fetch from node %s: %w", v.Node, fromStatus(v.Node, err))
	}
	var data []byte
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("fetch from node %s: %w", v.Node, fromStatus(v.Node, err))
		}
		if int64(len(data)+len(chunk.Data)) > v.Size {
			return nil, fmt.Errorf("actors: node %s sent more than the %d bytes of an object", v.Node, v.Size)
		}
		data = append(data, chunk.Data...)
	}
	if int64(len(data)) != v.Size {
		return nil, fmt.Errorf("actors: node %s sent %d of the %d bytes of an object", v.Node, len(data), v.Size)
	}
	return data, nil
}

// peerServer answers the Peer service.
type peerServer struct {
	wire.UnimplementedPeerServer
	n *Node
}

func (s *peerServer) Fetch(r *wire.FetchRequest, stream grpc.ServerStreamingServer[wire.FetchChunk]) error {
	id, err := objectstore.IDFromBytes(r.GetObject())
	if err != nil {
		return toStatus(codes.InvalidArgument, err)
	}
	data, done, err := s.bytes(id)
	if err != nil {
		return toStatus(codes.NotFound, err)
	}
	defer done()
	for len(data) > 0 {
		size := min(len(data), fetchChunk)
		if err := stream.Send(&wire.FetchChunk{Data: data[:size]}); err != nil {
			return err
		}
		data = data[size:]
	}
	return nil
}

// bytes gives an object's bytes, in the store or of a batch; done must be called.
func (s *peerServer) bytes(id objectstore.ID) (data []byte, done func(), err error) {
	if b := s.n.engine.batch([16]byte(id)); b != nil {
		defer b.Release()
		data, err = encodeBatch(b)
		return data, func() {}, err
	}
	object, err := s.n.store.Get(id)
	if err != nil {
		return nil, nil, err
	}
	return object.Bytes(), object.Release, nil
}
