package actors

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"manta/actors/internal/trust"
	"manta/actors/internal/wire"
)

// newClient gives a connection that is opened when it is first used. Without a token it stays on this machine.
func newClient(address string, t *trust.Trust) (*grpc.ClientConn, error) {
	if err := staysHere(address, t); err != nil {
		return nil, err
	}
	return grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(t.Credentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxGRPC), grpc.MaxCallSendMsgSize(maxGRPC)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			MinConnectTimeout: 2 * time.Second,
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
	)
}

// staysHere refuses an address of another machine where there is no token.
func staysHere(address string, t *trust.Trust) error {
	host, port, err := net.SplitHostPort(address)
	if t != nil || err != nil || host == "" || isLoopback(host) { // to dial no host is to dial this one
		return nil
	}
	return fmt.Errorf("%w: %s is not 127.0.0.1:%s, and without a token no other is reached; set the head's, in MANTA_TOKEN", ErrToken, address, port)
}

// Dial connects a client to the head at the address: with a token by TLS, without one plainly, and only on this machine. It
// fails at once, and says why, when nobody answers there (ErrUnreachable), the token is wrong (ErrToken),
// the node there is of another version (ErrVersion) or is not the head
// (ErrNotHead). The caller closes the connection.
func Dial(ctx context.Context, address, token string) (*grpc.ClientConn, error) {
	t, err := trust.Of(strings.TrimSpace(token))
	if err != nil {
		return nil, fmt.Errorf("actors: %w", err)
	}
	conn, err := newClient(address, t)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if _, err := wire.NewHeadClient(conn).Ping(ctx, &wire.PingRequest{Version: Version}); err != nil {
		_ = conn.Close()
		return nil, because(ctx, address, t, err)
	}
	return conn, nil
}

// refusalWithin is how long who refuses a connection has to say why. Who is silent is not waited for a second time.
const refusalWithin = 500 * time.Millisecond

// because gives an RPC's error in this package's words. All that gRPC tells of a connection that the other end refused is that there is
// none: another one shows why.
func because(ctx context.Context, address string, t *trust.Trust, err error) error {
	if status.Code(err) == codes.Unavailable {
		ctx, cancel := context.WithTimeout(ctx, refusalWithin)
		defer cancel()
		conn, why := dialBulk(ctx, address, "", t)
		if conn != nil {
			_ = conn.Close()
		}
		if why = notTrusted(address, why); why != nil {
			return why
		}
	}
	return fromStatus(address, err)
}

// ListNodes asks the head for the cluster's nodes, the dead ones too.
func ListNodes(ctx context.Context, conn *grpc.ClientConn) ([]NodeInfo, error) {
	reply, err := wire.NewHeadClient(conn).ListNodes(ctx, &wire.ListNodesRequest{})
	if err != nil {
		return nil, fromStatus(conn.Target(), err)
	}
	nodes := make([]NodeInfo, 0, len(reply.Nodes))
	for _, w := range reply.Nodes {
		nodes = append(nodes, nodeFromWire(w))
	}
	return nodes, nil
}

// ListJobs asks the head for its jobs, ended ones too, in order of submission.
func ListJobs(ctx context.Context, conn *grpc.ClientConn) ([]JobInfo, error) {
	reply, err := wire.NewHeadClient(conn).ListJobs(ctx, &wire.ListJobsRequest{})
	if err != nil {
		return nil, fromStatus(conn.Target(), err)
	}
	jobs := make([]JobInfo, 0, len(reply.Jobs))
	for _, w := range reply.Jobs {
		jobs = append(jobs, jobFromWire(w))
	}
	return jobs, nil
}

// StopJob stops a job. ErrJobUnknown if there is none, ErrJobEnded if it has ended.
func StopJob(ctx context.Context, conn *grpc.ClientConn, job JobID, reason string) error {
	_, err := wire.NewHeadClient(conn).StopJob(ctx, &wire.StopJobRequest{Job: string(job), Reason: reason})
	return fromStatus(conn.Target(), err)
}

// ListTasks asks the head for up to limit tasks and calls that have not ended, with what they wait for.
func ListTasks(ctx context.Context, conn *grpc.ClientConn, limit int) ([]RunInfo, error) {
	reply, err := wire.NewHeadClient(conn).ListTasks(ctx, &wire.ListRequest{Limit: int32(limit)})
	if err != nil {
		return nil, fromStatus(conn.Target(), err)
	}
	tasks := make([]RunInfo, len(reply.Tasks))
	for i, t := range reply.Tasks {
		tasks[i] = RunInfo{ID: t.Id, Job: JobID(t.Job), Name: t.Name, State: t.State, Node: NodeID(t.Node), Attempt: int(t.Attempt), Why: t.Why}
	}
	return tasks, nil
}

// ListActors asks the head for up to limit actors that are not dead.
func ListActors(ctx context.Context, conn *grpc.ClientConn, limit int) ([]ActorInfo, error) {
	reply, err := wire.NewHeadClient(conn).ListActors(ctx, &wire.ListRequest{Limit: int32(limit)})
	if err != nil {
		return nil, fromStatus(conn.Target(), err)
	}
	list := make([]ActorInfo, len(reply.Actors))
	for i, a := range reply.Actors {
		list[i] = ActorInfo{
			ID: a.Id, Job: JobID(a.Job), Name: a.Name, Class: a.Class, State: a.State, Node: NodeID(a.Node),
			Restarts: int(a.Restarts), Calls: int(a.PendingCalls), Why: a.Why,
		}
	}
	return list, nil
}

// toStatus makes an error ready to leave through gRPC with its identity.
func toStatus(code codes.Code, err error) error {
	if err == nil {
		return nil
	}
	s := status.New(code, err.Error())
	if detailed, derr := s.WithDetails(encodeError(err)); derr == nil {
		s = detailed
	}
	return s.Err()
}

// fromStatus gives an RPC's error in this package's words.
func fromStatus(address string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		if f, ok := d.(*wire.Failure); ok {
			return decodeError(f)
		}
	}
	switch s.Code() {
	case codes.Unavailable:
		return fmt.Errorf("%w at %s", ErrUnreachable, address)
	case codes.Unimplemented:
		return fmt.Errorf("%w: something else than Manta is at %s", ErrNotHead, address)
	case codes.DeadlineExceeded:
		return fmt.Errorf("%w from %s", ErrTimeout, address)
	case codes.Canceled:
		return fmt.Errorf("%s: %w", address, context.Canceled)
	}
	return errors.New(s.Message())
}
