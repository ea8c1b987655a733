package shuffle

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"manta/shuffle/shufflepb"
)

// The data plane's gRPC service, written by hand since its messages are frames, not protobuf.
const (
	serviceName = "manta.shuffle.Data"
	linkMethod  = "/" + serviceName + "/Link"
	fetchMethod = "/" + serviceName + "/Fetch"
)

// dataServer is the handler type that gRPC checks.
type dataServer interface{ isDataServer() }

func (s *Service) isDataServer() {}

var dataService = grpc.ServiceDesc{
	ServiceName: serviceName,
	HandlerType: (*dataServer)(nil),
	Streams: []grpc.StreamDesc{
		{StreamName: "Link", Handler: serveLink, ServerStreams: true, ClientStreams: true},
		{StreamName: "Fetch", Handler: serveFetch, ServerStreams: true, ClientStreams: true},
	},
}

func registerData(r grpc.ServiceRegistrar, s *Service) { r.RegisterService(&dataService, s) }

func callOptions() []grpc.CallOption {
	return []grpc.CallOption{
		grpc.CallContentSubtype(codecName),
		grpc.MaxCallRecvMsgSize(partBytes + headerBytes + 1<<10),
		grpc.MaxCallSendMsgSize(partBytes + headerBytes + 1<<10),
	}
}

// serveLink receives the streaming channels of one node.
func serveLink(srv any, stream grpc.ServerStream) error {
	s := srv.(*Service)
	in := &inbound{s: s, stream: stream, kill: make(chan struct{})}
	defer s.forget(in)
	done := make(chan error, 1)
	s.running.Go(func() { done <- in.run() })
	select {
	case err := <-done:
		return err
	case <-in.kill:
		return status.Error(codes.Unavailable, "shuffle: this node is taken for dead")
	case <-s.ctx.Done():
		// Returning ends the stream, and that ends run.
		return status.Error(codes.Unavailable, "shuffle: node is closing")
	}
}

// serveFetch sends blocks that lie on this node.
func serveFetch(srv any, stream grpc.ServerStream) error {
	s := srv.(*Service)
	for {
		var f frame
		if err := stream.RecvMsg(&f); err != nil {
			return nil // the other end has no more to ask, or is gone
		}
		var req shufflepb.Fetch
		err := proto.Unmarshal(f.bytes(), &req)
		if err == nil && f.kind != frameFetch && f.kind != frameRelease {
			err = fmt.Errorf("%w: kind %d", errFrame, f.kind)
		}
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		s.releaseHere(req.GetRelease())
		if f.kind == frameRelease {
			continue
		}
		block, err := s.openBlock(&req)
		if err != nil {
			if err := stream.SendMsg(&frame{kind: frameFail, payload: small(encodeFailure(err))}); err != nil {
				return err
			}
			continue
		}
		err = sendParts(stream, block)
		block.close()
		if err != nil {
			return err
		}
	}
}

// sendParts sends a block. A failure to read it goes to the peer as a frame.
func sendParts(stream grpc.ServerStream, b localBlock) error {
	total := b.size()
	for from := int64(0); ; {
		to := min(total, from+partBytes)
		data, err := b.part(from, to)
		if err != nil {
			return stream.SendMsg(&frame{kind: frameFail, payload: small(encodeFailure(err))})
		}
		err = stream.SendMsg(&frame{kind: framePart, a: uint64(total), b: uint64(from), payload: data.part(0, len(data.data))})
		data.release()
		if err != nil {
			return err
		}
		if to == total {
			return nil
		}
		from = to
	}
}
