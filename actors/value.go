package actors

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"manta/actors/internal/wire"
	"manta/objectstore"
)

// fetchChunk is the size of a piece of an object on its way to another node.
const fetchChunk = 1 << 20

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
