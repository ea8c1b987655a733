package actors

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"manta/actors/internal/wire"
)

// These tests run nodes as processes of their own, over real remoting: the test
// binary starts itself with processEnv set. A child says its address, obeys the
// commands on its standard input and ends with it.
const (
	processEnv   = "MANTA_TEST_PROCESS" // "head", or the head's address
	processDir   = "MANTA_TEST_DIR"
	processToken = "process secret"
)

func processTasks() map[string]TaskFunc {
	return map[string]TaskFunc{
		"echo": func(tc *TaskContext, arg []byte) ([]byte, error) { return arg, nil },
		"double": func(tc *TaskContext, arg []byte) ([]byte, error) {
			return append(append([]byte(nil), arg...), arg...), nil
		},
		"block": func(tc *TaskContext, arg []byte) ([]byte, error) {
			err := tc.Yield(func() error { <-tc.Done(); return context.Cause(tc) })
			return nil, err
		},
	}
}

// processMain is a child.
func processMain() int {
	head := os.Getenv(processEnv)
	if head == "head" {
		head = ""
	}
	n, err := Start(context.Background(), Config{
		Head: head, DataDir: os.Getenv(processDir), CPUs: 2, MemoryBytes: 256 << 20, Token: processToken, Tasks: processTasks(),
	})
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	_, err = n.Spawn("echo", func(_ context.Context, _ NodeID, m proto.Message) (proto.Message, error) { return m, nil })
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("ready", n.Address(), n.ID())
	lines := make(chan string)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- in.Text()
		}
		close(lines)
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				err := n.Close()
				for deadline := time.Now().Add(30 * time.Second); err == nil; {
					// Remoting sleeps two seconds after a connection that failed, and
					// only then sees that it has to end.
					leak := goleak.Find()
					if leak == nil || time.Now().After(deadline) {
						err = leak
						break
					}
				}
				if err != nil {
					fmt.Println("error", err)
					return 1
				}
				return 0
			}
			processCommand(n, strings.Fields(line))
		case <-n.Done():
			fmt.Println("stopped", n.Err())
			_ = n.Close()
			return 3
		}
	}
}

func processCommand(n *Node, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch args[0] {
	case "tasks": // one small and one large task on every node
		job, err := n.NewJob(ctx, JobSpec{Name: "tasks"})
		if err != nil {
			fmt.Println("error", err)
			return
		}
		for _, info := range n.Nodes() {
			if info.State != NodeAlive {
				continue
			}
			for _, size := range []int{10, 3 << 20} {
				arg := bytes.Repeat([]byte{'x'}, size)
				task, err := job.Submit(TaskSpec{Func: "double", Arg: arg, Node: info.ID})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				got, err := task.Wait(ctx)
				if err != nil || len(got) != 2*size {
					fmt.Println("error", len(got), err)
					return
				}
			}
		}
		job.Finish(nil)
		fmt.Println("ok", job.Info().TasksDone)
	case "block": // a task that blocks on every node, until one is lost or the job is stopped
		job, err := n.NewJob(context.Background(), JobSpec{Name: "block"})
		if err != nil {
			fmt.Println("error", err)
			return
		}
		var tasks []*Task
		for _, info := range n.Nodes() {
			if info.State == NodeAlive {
				task, err := job.Submit(TaskSpec{Func: "block", Node: info.ID})
				if err != nil {
					fmt.Println("error", err)
					return
				}
				tasks = append(tasks, task)
			}
		}
		go func() {
			for _, t := range tasks {
				for t.State() == TaskPending {
					time.Sleep(time.Millisecond)
				}
			}
			fmt.Println("blocking", job.ID())
			<-job.Context().Done()
			cause := context.Cause(job.Context())
			var lost []string
			for _, t := range tasks {
				_, err := t.Wait(context.Background())
				if te := (*TaskError)(nil); errors.Is(err, ErrNodeDead) && errors.As(err, &te) {
					lost = append(lost, string(te.Node))
				}
			}
			job.Finish(cause)
			fmt.Println("ended", job.Info().State, strings.Join(lost, ","), cause)
		}()
	case "ask": // every node's echo actor
		for _, info := range n.Nodes() {
			if info.State != NodeAlive {
				continue
			}
			got, err := n.Ask(ctx, Address{info.ID, "echo"}, wrapperspb.String("hello"))
			if err != nil || got.(*wrapperspb.StringValue).Value != "hello" {
				fmt.Println("error", got, err)
				return
			}
			_, err = n.Ask(ctx, Address{info.ID, "nobody"}, wrapperspb.String("hello"))
			if !errors.Is(err, ErrActorNotFound) {
				fmt.Println("error", err)
				return
			}
		}
		fmt.Println("ok")
	case "cut": // the connections break between requests, and under them
		transport := n.control.transport.(*remoting)
		for range 5 {
			for _, info := range n.Nodes() {
				if info.ID == n.ID() {
					continue
				}
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if _, err := n.Ask(ctx, Address{info.ID, "echo"}, wrapperspb.String("hello")); err != nil {
							fmt.Println("error", err)
						}
					})
				}
				transport.forget(peer{info.ID, info.control})
				all.Wait()
			}
		}
		fmt.Println("ok")
	case "time": // 2,000 requests one after the other
		to := n.Nodes()[1].ID
		begin := time.Now()
		for range 2000 {
			if _, err := n.Ask(ctx, Address{to, "echo"}, wrapperspb.String("hello")); err != nil {
				fmt.Println("error", err)
				return
			}
		}
		fmt.Println("took", time.Since(begin)/2000)
	case "chaos": // a workload of the typed runtime, at full size
		if err := runChaos(ctx, n, args[1], 3, true); err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
			return
		}
		fmt.Println("ok", args[1])
	default:
		fmt.Println("error unknown command", args)
	}
}

// process is a child as its parent sees it.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	address string
	id      NodeID
	stop    sync.Once
}

func startProcess(t *testing.T, role string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), processEnv+"="+role, processDir+"="+t.TempDir())
	p.cmd.Stderr = os.Stderr
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewScanner(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { p.kill() })
	ready := p.expect("ready")
	p.address, p.id = ready[1], NodeID(ready[2])
	return p
}

// say sends a command.
func (p *process) say(command string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.in, command)
	require.NoError(p.t, err)
}

// expect reads a line that begins with the word.
func (p *process) expect(word string) []string {
	p.t.Helper()
	require.True(p.t, p.out.Scan(), "the process said nothing, want %q", word)
	fields := strings.Fields(p.out.Text())
	require.NotEmpty(p.t, fields)
	require.Equal(p.t, word, fields[0], "the process said %q", p.out.Text())
	return fields
}

func (p *process) kill() {
	p.stop.Do(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
}

// quit ends the process in good order.
func (p *process) quit() {
	p.t.Helper()
	_ = p.in.Close()
	for p.out.Scan() {
		p.t.Errorf("at the end the process said %q", p.out.Text())
	}
	p.stop.Do(func() { require.NoError(p.t, p.cmd.Wait()) })
}

func (p *process) nodes() map[NodeID]NodeInfo {
	p.t.Helper()
	ctx := testContext(p.t)
	conn, err := Dial(ctx, p.address, processToken)
	require.NoError(p.t, err)
	defer conn.Close()
	list, err := ListNodes(ctx, conn)
	require.NoError(p.t, err)
	nodes := make(map[NodeID]NodeInfo)
	for _, info := range list {
		nodes[info.ID] = info
	}
	return nodes
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	head := startProcess(t, "head")
	one := startProcess(t, head.address)
	two := startProcess(t, head.address)

	head.say("tasks")
	require.Equal(t, []string{"ok", "6"}, head.expect("ok"))
	for _, p := range []*process{head, one, two} {
		p.say("ask")
		p.expect("ok")
	}

	head.say("cut")
	head.expect("ok")
	head.say("time")
	t.Log("a request between processes takes", head.expect("took")[1])

	t.Run("kill", func(t *testing.T) {
		head.say("block")
		head.expect("blocking")
		begin := time.Now()
		one.kill()
		ended := head.expect("ended")
		t.Logf("known after %v", time.Since(begin))
		require.Equal(t, "FAILED", ended[1])
		require.Equal(t, string(one.id), ended[2])
		require.Contains(t, strings.Join(ended[3:], " "), string(one.id))
		require.Equal(t, NodeDead, head.nodes()[one.id].State)
		// The rest goes on.
		head.say("tasks")
		require.Equal(t, []string{"ok", "4"}, head.expect("ok"))
	})

	t.Run("leave", func(t *testing.T) {
		two.quit()
		require.Equal(t, NodeDead, head.nodes()[two.id].State)
		require.Equal(t, "it was closed", head.nodes()[two.id].Reason)
	})
	head.quit()
}

func TestProcessHeadLost(t *testing.T) {
	t.Parallel()
	t.Run("kill", func(t *testing.T) {
		t.Parallel()
		head := startProcess(t, "head")
		worker := startProcess(t, head.address)
		head.kill()
		stopped := strings.Join(worker.expect("stopped"), " ")
		require.Contains(t, stopped, "did not answer for 3s")
	})
	t.Run("leave", func(t *testing.T) {
		t.Parallel()
		head := startProcess(t, "head")
		worker := startProcess(t, head.address)
		head.quit()
		stopped := strings.Join(worker.expect("stopped"), " ")
		require.Contains(t, stopped, "has left")
	})
}

// A process that was stopped for longer than the lease is dead. When it goes on, it
// learns so and stops.
func TestProcessSuspended(t *testing.T) {
	t.Parallel()
	head := startProcess(t, "head")
	worker := startProcess(t, head.address)
	head.say("block")
	head.expect("blocking")
	begin := time.Now()
	require.NoError(t, worker.cmd.Process.Signal(syscall.SIGSTOP))
	eventually(t, func() bool { return head.nodes()[worker.id].State != NodeAlive }) // unreachable, or on a busy machine already dead
	ended := head.expect("ended")
	require.Equal(t, string(worker.id), ended[2])
	t.Logf("known after %v", time.Since(begin))
	require.NoError(t, worker.cmd.Process.Signal(syscall.SIGCONT))
	require.Contains(t, strings.Join(worker.expect("stopped"), " "), "has dismissed this node")
	head.quit()
}

// TestProcessGate sends a node's remoting what no node sends.
func TestProcessGate(t *testing.T) {
	head := startProcess(t, "head")
	info := head.nodes()[head.id]
	require.NotEmpty(t, info.control)

	envelope := func() *wire.Envelope {
		body, err := anypb.New(wrapperspb.String("x"))
		require.NoError(t, err)
		return &wire.Envelope{From: "nobody", To: string(head.id), Request: 1, Actor: "echo", Body: body}
	}
	batch := func(target, typeName string, m proto.Message) *remote.RemoteMessage {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return &remote.RemoteMessage{MessageType: &remote.RemoteMessage_MessageBatch{MessageBatch: &remote.MessageBatch{
			TypeNames: []string{typeName},
			Targets:   []*actor.PID{{Address: info.control, Id: target}},
			Envelopes: []*remote.MessageEnvelope{{MessageData: data}},
		}}}
	}
	control := controlName(head.id)
	badIndex := batch(control, envelopeName, envelope())
	badIndex.GetMessageBatch().Envelopes[0].Target = 7
	large := envelope()
	large.Actor = strings.Repeat("x", MaxMessage)

	for _, test := range []struct {
		name  string
		token string
		frame *remote.RemoteMessage
		code  codes.Code
	}{
		{"no token", "", batch(control, envelopeName, envelope()), codes.Unavailable},
		{"another token", "guess", batch(control, envelopeName, envelope()), codes.Unavailable},
		{"stop an actor", processToken, batch(control, "actor.Stop", &actor.Stop{}), codes.PermissionDenied},
		{"poison an actor", processToken, batch(control, "actor.PoisonPill", &actor.PoisonPill{}), codes.PermissionDenied},
		{"unknown type", processToken, batch(control, "no.such.Type", &actor.Stop{}), codes.PermissionDenied},
		{"spawn", processToken, batch("activator", "remote.ActorPidRequest", &remote.ActorPidRequest{Kind: "x"}), codes.PermissionDenied},
		{"another actor", processToken, batch("activator", envelopeName, envelope()), codes.PermissionDenied},
		{"another incarnation", processToken, batch(controlName("head-0"), envelopeName, envelope()), codes.PermissionDenied},
		{"bad index", processToken, badIndex, codes.PermissionDenied},
		{"too large", processToken, batch(control, envelopeName, large), codes.PermissionDenied},
		{"disconnect", processToken, &remote.RemoteMessage{MessageType: &remote.RemoteMessage_DisconnectRequest{}}, codes.PermissionDenied},
	} {
		t.Run(test.name, func(t *testing.T) {
			conn, err := newClient(info.control, trustOf(t, test.token))
			require.NoError(t, err)
			defer conn.Close()
			stream, err := remote.NewRemotingClient(conn).Receive(testContext(t))
			if err == nil {
				_ = stream.Send(test.frame) // the stream may have ended already
				_, err = stream.Recv()
			}
			require.Equal(t, test.code, status.Code(err), "%v", err)
		})
	}
	t.Run("diagnostics", func(t *testing.T) {
		conn, err := newClient(info.control, trustOf(t, processToken))
		require.NoError(t, err)
		defer conn.Close()
		_, err = remote.NewRemotingClient(conn).ListProcesses(testContext(t), &remote.ListProcessesRequest{})
		require.Equal(t, codes.PermissionDenied, status.Code(err), "%v", err)
	})
	head.say("ask") // it is alive and well
	head.expect("ok")
	head.quit()
}
