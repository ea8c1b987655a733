package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// listen opens the node's address, or says plainly why it cannot.
func listen(address string) (net.Listener, error) {
	lis, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return lis, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%w on %s: the port is in use", ErrListen, address)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	return nil, fmt.Errorf("%w on %s: %w", ErrListen, address, err)
}

// advertised is the address by which others reach a listener.
func advertised(lis net.Addr, head string) string {
	host, port, err := net.SplitHostPort(lis.String())
	if err != nil {
		return lis.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort(outbound(head), port)
	}
	return lis.String()
}

// outbound is the local address of the route towards another one.
func outbound(to string) string {
	if to == "" {
		to = "192.0.2.1:9" // a documentation address: only the route is looked up
	}
	conn, err := net.Dial("udp", to)
	if err != nil {
		return "127.0.0.1"
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// newServer gives a gRPC server that survives a handler's panic. Its listener sees to TLS.
func newServer(log *slog.Logger) *grpc.Server {
	guard := &guard{log: log}
	return grpc.NewServer(
		grpc.MaxRecvMsgSize(maxGRPC),
		grpc.MaxSendMsgSize(maxGRPC),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.ConnectionTimeout(helloTimeout),
		grpc.ChainUnaryInterceptor(guard.unary),
		grpc.ChainStreamInterceptor(guard.stream),
	)
}

// guard stands before every RPC of a server.
type guard struct{ log *slog.Logger }

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer g.recover(info.FullMethod, &err)
	return next(ctx, req)
}

func (g *guard) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer g.recover(info.FullMethod, &err)
	return next(srv, s)
}

func (g *guard) recover(method string, err *error) {
	if p := recover(); p != nil {
		g.log.Error("panic in an RPC", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "panic in %s: %v", method, p)
	}
}

// helloTimeout is how long a new connection may take to speak the protocol. A
// silent one, of a health check or a port scanner, would else hold up the node's
// end for as long.
const helloTimeout = 2 * time.Second
