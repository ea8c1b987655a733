package actors

import (
	"errors"
	"io"

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
	if r.Node != "" {
		s.n.engine.copied([16]byte(id), NodeID(r.Node))
	}
	data, done, err := s.bytes(id)
	if errors.Is(err, objectstore.ErrFull) {
		return s.streamFromDisk(id, stream)
	}
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

// streamFromDisk sends an object for which the store has no room in memory.
func (s *peerServer) streamFromDisk(id objectstore.ID, stream grpc.ServerStreamingServer[wire.FetchChunk]) error {
	r, err := s.n.store.NewReader(id)
	if err != nil {
		return toStatus(codes.NotFound, err)
	}
	defer r.Close()
	buf := make([]byte, fetchChunk)
	for {
		n, err := io.ReadFull(r, buf)
		if n > 0 {
			if err := stream.Send(&wire.FetchChunk{Data: buf[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return toStatus(codes.DataLoss, err)
		}
	}
}

// bytes gives an object's bytes in the store; done must be called.
func (s *peerServer) bytes(id objectstore.ID) (data []byte, done func(), err error) {
	object, err := s.n.store.Get(id)
	if err != nil {
		return nil, nil, err
	}
	return object.Bytes(), object.Release, nil
}
