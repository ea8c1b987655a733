package actors

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
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
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// tokenHeader carries the cluster's token with every RPC.
const tokenHeader = "manta-token"

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

// newServer gives a gRPC server that checks the token of every call and survives
// a handler's panic.
func newServer(token string, log *slog.Logger) *grpc.Server {
	guard := &guard{token: token, log: log}
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
type guard struct {
	token string
	log   *slog.Logger
}

func (g *guard) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	if err := g.check(ctx); err != nil {
		return nil, err
	}
	defer g.recover(info.FullMethod, &err)
	return next(ctx, req)
}

func (g *guard) stream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	if err := g.check(s.Context()); err != nil {
		return err
	}
	defer g.recover(info.FullMethod, &err)
	return next(srv, s)
}

// check refuses a call without the cluster's token.
func (g *guard) check(ctx context.Context) error {
	if g.token == "" {
		return nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	got := md.Get(tokenHeader)
	if len(got) != 1 {
		return status.Error(codes.Unauthenticated, "the cluster wants a token")
	}
	if !sameToken(g.token, got[0]) {
		return status.Error(codes.Unauthenticated, tokenRefusal)
	}
	return nil
}

// sameToken compares in constant time.
func sameToken(want, have string) bool {
	w, h := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(have))
	return subtle.ConstantTimeCompare(w[:], h[:]) == 1
}

func (g *guard) recover(method string, err *error) {
	if p := recover(); p != nil {
		g.log.Error("panic in an RPC", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Errorf(codes.Internal, "panic in %s: %v", method, p)
	}
}

// token is a client's credentials.
type token string

func (t token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if t == "" {
		return nil, nil
	}
	return map[string]string{tokenHeader: string(t)}, nil
}

func (token) RequireTransportSecurity() bool { return false }

// helloTimeout is how long a new connection may take to speak the protocol. A
// silent one, of a health check or a port scanner, would else hold up the node's
// end for as long.
const helloTimeout = 2 * time.Second
