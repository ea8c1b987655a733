package actors

import (
	"context"
	"io"
	"net"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"manta/objectstore"
)

func benchCluster(b *testing.B) (head, worker *Node) {
	hub := NewHub()
	tasks := map[string]TaskFunc{"nothing": func(*TaskContext, []byte) ([]byte, error) { return nil, nil }}
	start := func(headAddress string) *Node {
		n, err := Start(context.Background(), Config{
			Head: headAddress, InProcess: hub, DataDir: b.TempDir(), MemoryBytes: 256 << 20, Tasks: tasks,
			Store: objectstore.Config{MemoryLimit: 16 << 20},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = n.Close() })
		if _, err := n.Spawn("echo", echo); err != nil {
			b.Fatal(err)
		}
		return n
	}
	head = start("")
	return head, start(head.Address())
}

// BenchmarkAsk is one request and its reply: on a node, and between nodes of one
// process.
func BenchmarkAsk(b *testing.B) {
	head, worker := benchCluster(b)
	ctx, m := context.Background(), wrapperspb.String("hello")
	for _, to := range []struct {
		name string
		node *Node
	}{{"here", head}, {"hub", worker}} {
		b.Run(to.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := head.Ask(ctx, Address{to.node.ID(), "echo"}, m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(to.name+"/parallel", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := head.Ask(ctx, Address{to.node.ID(), "echo"}, m); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkTask is a task that does nothing: submitted, run and waited for.
func BenchmarkTask(b *testing.B) {
	head, worker := benchCluster(b)
	job, err := head.NewJob(context.Background(), JobSpec{})
	if err != nil {
		b.Fatal(err)
	}
	defer job.Finish(nil)
	for _, on := range []*Node{head, worker} {
		name := "here"
		if on == worker {
			name = "hub"
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				task, err := job.Submit(TaskSpec{Func: "nothing", Node: on.ID()})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := task.Wait(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/batch", func(b *testing.B) {
			for b.Loop() {
				tasks := make([]*Task, 100)
				for i := range tasks {
					if tasks[i], err = job.Submit(TaskSpec{Func: "nothing", Node: on.ID()}); err != nil {
						b.Fatal(err)
					}
				}
				for _, task := range tasks {
					if _, err := task.Wait(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*100)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

// BenchmarkJob is an empty job: admitted, and ended on two nodes.
func BenchmarkJob(b *testing.B) {
	head, _ := benchCluster(b)
	for b.Loop() {
		job, err := head.NewJob(context.Background(), JobSpec{})
		if err != nil {
			b.Fatal(err)
		}
		job.Finish(nil)
	}
}

// BenchmarkStart is a head's whole life.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		n, err := Start(context.Background(), Config{InProcess: NewHub(), DataDir: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		if err := n.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream moves blocks of 1 MiB over a byte stream to another node, as rows go: plain, and encrypted by the token.
func BenchmarkStream(b *testing.B) {
	const size = 1 << 20
	for _, token := range []string{"", "secret"} {
		b.Run(map[bool]string{true: "plain", false: "tls"}[token == ""], func(b *testing.B) {
			n, err := Start(context.Background(), Config{DataDir: b.TempDir(), CPUs: 1, Token: token, InProcess: NewHub()})
			if err != nil {
				b.Fatal(err)
			}
			defer n.Close()
			read := make(chan int64, 1)
			n.Streams().Handle("sink", func(conn net.Conn) {
				n, _ := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 128<<10))
				read <- n
			})
			conn, err := n.Stream(context.Background(), n.ID(), "sink")
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			header, block := make([]byte, 40), make([]byte, size)
			b.SetBytes(size)
			var sent int64
			for b.Loop() {
				buffers := net.Buffers{header, block}
				n, err := buffers.WriteTo(conn)
				if err != nil {
					b.Fatal(err)
				}
				sent += n
			}
			if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				b.Fatal(err)
			}
			if got := <-read; got != sent {
				b.Fatalf("%d bytes of %d arrived", got, sent)
			}
		})
	}
}
