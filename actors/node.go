package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"manta/actors/core"
	"manta/actors/internal/trust"
	"manta/actors/internal/wire"
	"manta/objectstore"
)

// nodeActor receives what concerns the node itself.
const nodeActor = "@node"

// Node is one node of a cluster, in this process. What is not said to be guarded
// is immutable after Start.
type Node struct {
	cfg     Config
	id      NodeID
	address string // of the gRPC server, as others reach it
	started time.Time
	tempDir *objectstore.TempDir // removed at the end; nil when the data are kept
	log     *slog.Logger
	trust   *trust.Trust // of the token; nil without one

	tokenFile string // "": the token was not made here

	ctx    context.Context // ends when the node fails or closes
	cancel context.CancelCauseFunc

	store   *objectstore.Store
	system  *actor.ActorSystem
	events  *actor.PID // runs functions in order: the services' NodeDead
	control *control
	peers   peers
	runner  *runner
	head    *head   // nil on a worker
	jobs    *jobs   // nil on a worker
	member  *member // nil on the head
	engine  *engine
	links   *links
	server  *grpc.Server
	lis     net.Listener
	bulk    *bulkListener // of lis, once serving
	streams Streams

	applying   sync.Mutex // serializes applyNodes
	background group      // goroutines of the node
	serving    chan struct{}
	attached   []Service // registered, in order

	failing sync.Once
	done    chan struct{} // closed when the node has failed or is closing
	err     error         // immutable once done
	closing sync.Once
	closed  chan struct{} // closed when Close is through
}

// Start starts a node. When it returns, the node is a member of its cluster and
// serves. The context bounds the start only.
func Start(ctx context.Context, cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	role := "node"
	if cfg.Head == "" {
		role = "head"
	}
	n := &Node{
		cfg: cfg, id: NodeID(role + "-" + randomHex(5)), started: time.Now(), log: cfg.Logger,
		done: make(chan struct{}), closed: make(chan struct{}),
	}
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.control = newControl(n)
	n.runner = newRunner(n)
	n.engine = newEngine(n)
	n.links = newLinks(n, n.fromLink)
	if err := n.start(ctx); err != nil {
		n.shutdown()
		return nil, err
	}
	return n, nil
}

func (n *Node) start(ctx context.Context) (err error) {
	if n.lis, err = listen(n.cfg.Listen); err != nil {
		return err
	}
	n.address = advertised(n.lis.Addr(), n.cfg.Head)
	if n.cfg.DataDir == "" {
		if n.tempDir, err = objectstore.MakeTempDir(); err != nil {
			return fmt.Errorf("actors: data directory: %w", err)
		}
		n.cfg.DataDir = n.tempDir.Path
	} else if err := os.MkdirAll(n.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("actors: data directory: %w", err)
	}
	if n.store, err = objectstore.Open(n.cfg.storeConfig()); err != nil {
		return err
	}
	if err := n.startTrust(); err != nil {
		return err
	}
	if err := n.startActors(); err != nil {
		return err
	}
	n.server = newServer(n.log)
	wire.RegisterHeadServer(n.server, &headServer{n: n})
	wire.RegisterPeerServer(n.server, &peerServer{n: n})
	wire.RegisterRuntimeServer(n.server, &runtimeServer{n: n})
	if n.cfg.Head == "" {
		n.head, n.jobs = newHead(n), newJobs(n)
		n.engine.brain = newBrain(n)
	} else if n.member, err = newMember(n); err != nil {
		return err
	}
	for _, s := range n.cfg.Services {
		if err := s.Register(n, n.server); err != nil {
			return fmt.Errorf("actors: service: %w", err)
		}
		n.attached = append(n.attached, s)
	}
	if n.head != nil {
		if err := n.head.join(n.Info()); err != nil {
			return err
		}
		n.background.goRun(n.head.run)
	}
	n.serving = make(chan struct{})
	n.bulk = newBulkListener(n.lis, &n.streams, n.trust)
	go func() {
		defer close(n.serving)
		_ = n.server.Serve(n.bulk)
	}()
	if n.member != nil {
		if err := n.member.join(ctx); err != nil {
			return err
		}
		n.background.goRun(n.member.run)
	}
	return nil
}

// startActors starts the actor system, the transport and the node's own actors.
func (n *Node) startActors() error {
	n.system = actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		actor.WithDeadLetterRequestLogging(false),
		// A dead letter starts a goroutine that lives this long.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	n.events = n.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if f, ok := c.Message().(func()); ok {
			f()
		}
	}))
	if err := n.control.spawn(); err != nil {
		return fmt.Errorf("actors: control actor: %w", err)
	}
	if err := n.startActor(nodeActor, n.receive); err != nil {
		return err
	}
	if err := n.startActor(jobsActor, n.runner.receive); err != nil {
		return err
	}
	var t transport
	if n.cfg.InProcess != nil {
		t = n.cfg.InProcess.attach(n.id, n.control.deliver, n.links.incoming)
	} else {
		r, err := startRemoting(n)
		if err != nil {
			return err
		}
		t = r
	}
	if n.cfg.Faults != nil {
		t = &faultyTransport{transport: t, faults: n.cfg.Faults}
	}
	n.control.transport = t
	return nil
}

func (n *Node) startActor(name string, receive func(*Actor, *delivery)) error {
	_, err := n.control.start(name, receive)
	return err
}

// receive answers messages to the node's own actor.
func (n *Node) receive(_ *Actor, d *delivery) {
	switch d.msg.(type) {
	case *wire.Poke:
		n.refreshSoon()
		d.reply(&wire.Ack{}, nil)
	case *wire.HeadClosing:
		d.reply(&wire.Ack{}, nil)
		if n.member != nil && d.from == n.member.head {
			n.fail(fmt.Errorf("%w: the head at %s has left", ErrHeadLost, n.cfg.Head))
		}
	default:
		d.reply(nil, fmt.Errorf("actors: %T is no message to a node", d.msg))
	}
}

// refreshSoon asks for a newer list of nodes.
func (n *Node) refreshSoon() {
	if n.member != nil {
		n.member.soon()
	}
}

// goAsk sends a message whose loss does no harm.
func (n *Node) goAsk(limit time.Duration, node NodeID, name string, m proto.Message) {
	n.background.goRun(func() {
		ctx, cancel := context.WithTimeout(n.ctx, limit)
		defer cancel()
		_, _ = n.Ask(ctx, Address{node, name}, m)
	})
}

// fromLink takes what another node's runtime sends.
func (n *Node) fromLink(from NodeID, msgs []any) {
	if n.engine.brain != nil {
		msgs = slices.DeleteFunc(msgs, func(m any) bool {
			if free, ok := m.(*core.Free); ok { // a copy
				n.engine.copies.drop(free.Key)
			}
			return !core.Takes(m)
		})
		n.engine.brain.handle(from, msgs...)
		return
	}
	if from != n.member.head {
		for _, m := range msgs {
			if free, ok := m.(*core.Free); ok {
				n.engine.copies.drop(free.Key)
			} else {
				n.engine.direct.receive(from, m)
			}
		}
		return
	}
	for _, m := range msgs {
		n.engine.receive(m)
	}
}

// since is a time on the node's own clock, which never goes back.
func (n *Node) since(t time.Time) int64 { return int64(t.Sub(n.started)) }

// ID names this incarnation of the node.
func (n *Node) ID() NodeID { return n.id }

// Address is the gRPC server's address, as others reach it.
func (n *Node) Address() string { return n.address }

// Store is the node's object store. The node closes it.
func (n *Node) Store() *objectstore.Store { return n.store }

// Config is the node's configuration with its defaults filled in.
func (n *Node) Config() Config { return n.cfg }

// Info describes this node.
func (n *Node) Info() NodeInfo {
	info := NodeInfo{
		ID: n.id, Address: n.address, State: NodeAlive, CPUs: n.cfg.CPUs, MemoryBytes: n.cfg.MemoryBytes,
		Labels: n.cfg.Labels, Head: n.head != nil, Version: n.cfg.Version,
		Joined: n.started, LastSeen: time.Now(), control: n.control.transport.address(),
	}
	info.RunningTasks, info.WaitingTasks = n.runner.counts()
	return info
}

// Done is closed when the node has stopped by itself, because the head is lost or
// has declared it dead, or when it is being closed. A stopped node has cancelled
// its tasks; it does not join again: close it, and start another.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err says in one line why the node has stopped by itself; nil if it has not.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// fail stops the node: its tasks are cancelled, nothing new starts.
func (n *Node) fail(err error) {
	n.failing.Do(func() {
		n.err = err
		if err != nil {
			n.log.Info("node has stopped", "node", n.id, "error", err)
		}
		close(n.done)
		if err == nil {
			err = ErrClosed
		}
		n.cancel(err)
	})
}

// Close leaves the cluster, ends the node's tasks and releases everything. The
// order: jobs (on the head), membership, tasks, services in the opposite order of
// Config, the gRPC server, actors and control messages, the store. Closing twice
// does no harm; a second call waits for the first.
func (n *Node) Close() error {
	var err error
	n.closing.Do(func() {
		defer close(n.closed)
		if n.jobs != nil {
			n.jobs.close()
			n.sayGoodbye()
		}
		if n.member != nil {
			n.member.leave(leftInOrder)
		}
		err = n.shutdown()
	})
	<-n.closed
	return err
}

// leftInOrder is the reason of a node that left by itself.
const leftInOrder = "it was closed"

// sayGoodbye tells the workers that the head goes.
func (n *Node) sayGoodbye() {
	var all sync.WaitGroup
	for _, info := range n.peers.list() {
		if info.ID != n.id && info.State == NodeAlive {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Lease)
				defer cancel()
				_, _ = n.Ask(ctx, Address{info.ID, nodeActor}, &wire.HeadClosing{})
			})
		}
	}
	all.Wait()
}

// shutdown releases what a node has, however far its start came.
func (n *Node) shutdown() error {
	n.fail(nil)
	var errs []error
	if !n.engine.close(endWait) {
		n.log.Error("tasks do not end after they were cancelled", "node", n.id)
		errs = append(errs, fmt.Errorf("actors: tasks of node %s did not end within %v", n.id, endWait))
	}
	n.runner.live.close(endWait)
	for i := len(n.attached) - 1; i >= 0; i-- {
		if err := n.attached[i].Close(); err != nil {
			errs = append(errs, err)
		}
	}
	n.links.close()
	n.closeServer()
	n.peers.close()
	if n.member != nil {
		_ = n.member.conn.Close()
	}
	n.background.close(endWait)
	n.control.close()
	if n.events != nil {
		_ = n.system.Root.StopFuture(n.events).Wait()
	}
	if n.system != nil {
		n.system.Shutdown()
	}
	if n.store != nil {
		if err := n.store.Close(); err != nil {
			errs = append(errs, err)
		}
	}
	if n.tempDir != nil {
		if err := n.tempDir.Remove(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// closeServer lets running RPCs end for a moment, and then ends them.
func (n *Node) closeServer() {
	if n.server == nil || n.serving == nil {
		if n.lis != nil {
			_ = n.lis.Close()
		}
		return
	}
	graceful := make(chan struct{})
	go func() {
		n.server.GracefulStop()
		close(graceful)
	}()
	select {
	case <-graceful:
	case <-time.After(200 * time.Millisecond):
		n.server.Stop()
		<-graceful
	}
	<-n.serving
	n.bulk.wait()
}
