package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"manta/actors/internal/wire"
)

const (
	// A frame holds at most frameMessages envelopes of MaxMessage bytes: 16 MiB.
	frameMessages = 256
	maxFrame      = 32 << 20
)

// remoting carries envelopes between processes by protoactor's remoting, on a
// port of its own. Nothing but envelopes for the control actor gets in: a peer
// can neither stop actors, nor spawn them, nor name types that are not known.
//
// A process has at most one: starting it sets gRPC's process-wide logger.
type remoting struct {
	system *actor.ActorSystem
	remote *remote.Remote

	mu     sync.Mutex
	closed bool                // guarded by mu
	peers  map[string]struct{} // guarded by mu; addresses written to
}

func startRemoting(n *Node) (t *remoting, err error) {
	host, _, err := net.SplitHostPort(n.address)
	if err != nil {
		return nil, fmt.Errorf("actors: address %q: %w", n.address, err)
	}
	if strings.Contains(host, ":") { // it puts the port behind that
		host = "[" + host + "]"
	}
	gate := &gate{log: n.log, target: controlName(n.id)}
	cfg := remote.Configure(host, 0,
		remote.WithServerOptions(
			grpc.Creds(n.trust.Credentials()),
			grpc.MaxRecvMsgSize(maxFrame),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
			grpc.ConnectionTimeout(helloTimeout),
			grpc.StreamInterceptor(gate.stream),
			grpc.UnaryInterceptor(gate.unary),
		),
		remote.WithDialOptions(
			grpc.WithTransportCredentials(n.trust.Credentials()),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxFrame), grpc.MaxCallSendMsgSize(maxFrame)),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
			grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 2 * time.Second}),
			grpc.WithNoProxy(),
		),
		remote.WithEndpointWriterBatchSize(frameMessages),
		remote.WithEndpointWriterQueueSize(1024), // initial size of a ring, not a bound
	)
	cfg.MaxRetryCount = 1 // more leak connections; 0 would not dial at all
	// Start panics when it cannot listen.
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("%w for control messages on %s: %v", ErrListen, host, p)
		}
	}()
	r := remote.NewRemote(n.system, cfg)
	r.Start()
	return &remoting{system: n.system, remote: r, peers: make(map[string]struct{})}, nil
}

func (t *remoting) address() string { return t.system.Address() }

func (t *remoting) send(to peer, e *wire.Envelope) {
	if to.control == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.peers[to.control] = struct{}{}
	t.system.Root.Send(actor.NewPID(to.control, controlName(to.node)), e)
}

// forget closes the connection to a node that is dead.
func (t *remoting) forget(p peer) {
	t.mu.Lock()
	_, ok := t.peers[p.control]
	delete(t.peers, p.control)
	t.mu.Unlock()
	if ok {
		t.system.EventStream.Publish(&remote.EndpointTerminatedEvent{Address: p.control})
	}
}

// close ends the connections one by one and then the server. Remote's graceful
// shutdown is not used: it clears the endpoints' map while events may still
// read it.
func (t *remoting) close() {
	t.mu.Lock()
	t.closed = true
	addresses := t.peers
	t.peers = nil
	t.mu.Unlock()
	for address := range addresses {
		t.system.EventStream.Publish(&remote.EndpointTerminatedEvent{Address: address})
	}
	t.remote.Shutdown(false)
}

// gate stands before the remoting server.
type gate struct {
	log    *slog.Logger
	target string // the control actor's name
}

func (g *gate) unary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.PermissionDenied, "not offered")
}

func (g *gate) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("panic in remoting", "panic", p, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "panic")
		}
	}()
	return next(srv, &gatedStream{ServerStream: s, target: g.target, log: g.log})
}

// gatedStream refuses the stream at the first frame that is not in order.
type gatedStream struct {
	grpc.ServerStream
	target string
	log    *slog.Logger
}

func (s *gatedStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	frame, ok := m.(*remote.RemoteMessage)
	if !ok {
		return status.Error(codes.InvalidArgument, "not a frame")
	}
	if err := admit(frame, s.target); err != nil {
		s.log.Warn("refused a frame of control messages", "error", err)
		return status.Error(codes.PermissionDenied, err.Error())
	}
	return nil
}

var envelopeName = string(proto.MessageName((*wire.Envelope)(nil)))

// admit checks that a frame is a server's greeting, or a batch of nothing but
// envelopes to the target.
func admit(frame *remote.RemoteMessage, target string) error {
	if frame.GetConnectRequest().GetServerConnection() != nil {
		return nil
	}
	batch := frame.GetMessageBatch()
	if batch == nil {
		return errors.New("a frame of another kind")
	}
	for _, name := range batch.TypeNames {
		if name != envelopeName {
			return fmt.Errorf("a message of type %q", name)
		}
	}
	for _, pid := range batch.Targets {
		if pid.GetId() != target {
			return fmt.Errorf("a message to %q", pid.GetId())
		}
	}
	for _, e := range batch.Envelopes {
		switch {
		case e == nil, e.SerializerId != 0, e.Sender != 0, e.MessageHeader != nil:
			return errors.New("an envelope out of order")
		case e.Target < 0 || int(e.Target) >= len(batch.Targets), e.TypeId < 0 || int(e.TypeId) >= len(batch.TypeNames):
			return errors.New("an index out of range")
		case len(e.MessageData) > MaxMessage:
			return fmt.Errorf("a message of %d bytes", len(e.MessageData))
		case proto.Unmarshal(e.MessageData, new(wire.Envelope)) != nil:
			return errors.New("a message that is no envelope")
		}
	}
	return nil
}
