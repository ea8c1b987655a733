package actors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The workloads of TestTypedChaos, with exact assertions. A failure of the system is none of theirs.
var (
	chaosInner = NewTask("chaos.inner", func(_ context.Context, i int) ([]byte, error) {
		time.Sleep(time.Duration(i%5) * time.Millisecond)
		return bytes.Repeat([]byte{byte(i)}, 50_000+i), nil
	}, Retries(-1))
	chaosOuter = NewTask("chaos.outer", func(ctx context.Context, n int) (sum int, err error) {
		refs := make([]*Ref[[]byte], n)
		for i := range refs {
			refs[i] = chaosInner.Call(ctx, From(ctx), Val(i))
		}
		for i, r := range refs {
			b, err := r.Get(ctx)
			if err != nil {
				return 0, err
			}
			if len(b) != 50_000+i || b[0] != byte(i) {
				return 0, fmt.Errorf("result %d is %d bytes of %d", i, len(b), b[0])
			}
			sum += len(b)
		}
		return sum, nil
	}, Retries(-1))

	chaosRecorders = NewActor("chaos.recorder", func(context.Context, None) (*recorder, error) { return &recorder{seen: make(map[string]int)}, nil })
	recorderNote   = Method(chaosRecorders, "note", (*recorder).Note)
	recorderSeen   = Method(chaosRecorders, "seen", (*recorder).Seen)
	chaosReporters = NewActor("chaos.reporter", func(_ context.Context, h *Handle[recorder]) (*reporter, error) { return &reporter{h}, nil },
		Restarts(-1))
	reporterReport = Method(chaosReporters, "report", (*reporter).Report, Retries(-1))

	chaosItems = NewGenerator("chaos.items", func(_ context.Context, n int, yield func([]byte) error) error {
		for i := range n {
			if err := yield(bytes.Repeat([]byte{byte(i)}, 150_000)); err != nil {
				return err
			}
		}
		return nil
	}, Retries(-1), Window(8))
	chaosConsume = NewTask("chaos.consume", func(ctx context.Context, in struct {
		Nodes []NodeID
		Items int
	}) (total int, err error) {
		var all []*Stream[[]byte]
		for _, node := range in.Nodes {
			for range 2 {
				all = append(all, chaosItems.Call(ctx, From(ctx), Val(in.Items), NearNode(node)))
			}
		}
		for _, s := range all {
			n := 0
			for b, err := range s.All(ctx) {
				if err != nil {
					return 0, err
				}
				if len(b) != 150_000 || b[0] != byte(n) {
					return 0, fmt.Errorf("item %d is %d bytes of %d", n, len(b), b[0])
				}
				n++
			}
			total += n
		}
		return total, nil
	}, Retries(-1))

	chaosMake = NewTask("chaos.make", func(_ context.Context, i int) ([]byte, error) {
		return bytes.Repeat([]byte{byte(i)}, 200_000+i), nil
	}, Retries(-1))
	chaosBorrow = NewTask("chaos.borrow", func(ctx context.Context, in struct{ R *Ref[[]byte] }) (int, error) {
		b, err := in.R.Get(ctx)
		return len(b), err
	}, Retries(-1))
)

type recorder struct {
	mu   sync.Mutex
	seen map[string]int
}

type note struct {
	Who string
	Seq int
}

func (r *recorder) Note(_ context.Context, n note) (None, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[fmt.Sprintf("%s/%d", n.Who, n.Seq)]++
	return None{}, nil
}

func (r *recorder) Seen(context.Context, None) (map[string]int, error) { return r.seen, nil }

type reporter struct{ to *Handle[recorder] }

func (r *reporter) Report(ctx context.Context, n note) (None, error) {
	return recorderNote.Call(ctx, r.to, Val(n)).Get(ctx)
}

// runChaos runs one workload on the head's cluster, and checks its result and that everything comes back. With mayLose a node is lost.
func runChaos(ctx context.Context, head *Node, name string, size int, mayLose bool) (err error) {
	c, err := head.NewClient(ctx, JobSpec{Name: name})
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, c.Close(err))
		if left := head.Runtime(); err == nil && (left.Objects > 0 || left.Tasks > 0) {
			err = fmt.Errorf("left: %+v", left)
		}
	}()
	switch name {
	case "tasks":
		var refs []*Ref[int]
		for range 4 * size {
			refs = append(refs, chaosOuter.Call(ctx, c, Val(25)))
		}
		for _, r := range refs {
			sum, err := r.Get(ctx)
			if err != nil || sum != 25*50_000+300 {
				return fmt.Errorf("sum %d: %w", sum, err)
			}
		}
	case "actors":
		rec, err := chaosRecorders.Spawn(ctx, c, NoArg, OnNode(head.ID()), Concurrency(8))
		if err != nil {
			return err
		}
		var refs []*Ref[None]
		var keep []*Handle[reporter]
		for k := range 4 {
			h := chaosReporters.Start(ctx, c, Val(rec), Spread())
			keep = append(keep, h)
			for seq := range 50 * size {
				refs = append(refs, reporterReport.Call(ctx, h, Val(note{fmt.Sprint(k), seq})))
			}
		}
		for _, r := range refs {
			if _, err := r.Get(ctx); err != nil {
				return err
			}
		}
		seen, err := recorderSeen.Call(ctx, rec, NoArg).Get(ctx)
		if err != nil || len(seen) != 4*50*size {
			return fmt.Errorf("%d numbers were recorded of %d: %w", len(seen), 4*50*size, err)
		}
		for _, h := range keep {
			h.Release()
		}
	case "straight": // calls that go straight to actors, in their order; those of an actor that is lost may fail
		var hs []*Handle[turner]
		for range 4 {
			hs = append(hs, turners.Start(ctx, c, NoArg, Spread(), Restarts(-1)))
		}
		var refs []*Ref[int]
		for k := range 6 * size {
			refs = append(refs, takeTurns.Call(ctx, c, Val(turns{fmt.Sprint(k), hs, 500}), Spread()))
		}
		total := 0
		for _, r := range refs {
			done, err := r.Get(ctx)
			if err != nil {
				return err
			}
			total += done
		}
		if lost := 6*size*500 - total; lost != 0 && !mayLose {
			return fmt.Errorf("%d calls were lost", lost)
		}
		for _, h := range hs {
			h.Release()
		}
	case "streams":
		var nodes []NodeID
		for _, info := range head.Nodes() {
			if info.State == NodeAlive {
				nodes = append(nodes, info.ID)
			}
		}
		total, err := chaosConsume.Call(ctx, c, Val(struct {
			Nodes []NodeID
			Items int
		}{nodes, 30 * size})).Get(ctx)
		if err != nil || total != 2*len(nodes)*30*size {
			return fmt.Errorf("%d items of %d: %w", total, 2*len(nodes)*30*size, err)
		}
	case "borrowing":
		lend := func(i int) (*Ref[int], int) {
			return chaosBorrow.Call(ctx, c, Val(struct{ R *Ref[[]byte] }{chaosMake.Call(ctx, c, Val(i))})), 200_000 + i
		}
		for i := range 20 * size {
			r, want := lend(i)
			if n, err := r.Get(ctx); err != nil || n != want {
				return fmt.Errorf("%d bytes of %d: %w", n, want, err)
			}
		}
		var refs []*Ref[int]
		for i := range 20 * size {
			r, _ := lend(i)
			refs = append(refs, r)
		}
		for i, r := range refs {
			if n, err := r.Get(ctx); err != nil || n != 200_000+i {
				return fmt.Errorf("%d bytes of %d: %w", n, 200_000+i, err)
			}
		}
	}
	return nil
}

var workloads = []string{"tasks", "actors", "straight", "streams", "borrowing"}

// Each workload, while messages are lost, late and repeated: what asks for something ("requests"), what answers ("replies"), and acknowledgements.
func TestTypedChaos(t *testing.T) {
	lose := func(kinds ...string) (rules []Fault) {
		for _, k := range kinds {
			rules = append(rules, Fault{Kind: k, Lose: 0.1, Repeat: 0.1, Hold: 0.02, Delay: 5 * time.Millisecond})
		}
		return rules
	}
	for _, fault := range []struct {
		name  string
		rules []Fault
	}{
		{"nothing", nil},
		{"requests lost", lose("Submit", "Put", "Hold", "Release", "Want", "Read", "Start", "Free", "Credit", "Blocked", "Call", "Fence", "Where")},
		{"replies lost", lose("Done", "Ready", "Emit", "Items", "Ack", "Answer", "Fenced")},
	} {
		for _, name := range workloads {
			t.Run(fault.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				var faults *Faults
				c := newCluster(t, 2, nil, func(cfg *Config) {
					if fault.rules != nil {
						if faults == nil {
							faults = NewFaults(7, fault.rules...)
						}
						cfg.Faults = faults
					}
					cfg.Store.MemoryLimit = 64 << 20
				})
				require.NoError(t, runChaos(testContext(t), c.head, name, 1, false))
				c.clean()
				if faults != nil {
					require.Positive(t, faults.Hits())
				}
			})
		}
	}
}

// Each workload, while a process is killed and another one comes, and while a process says nothing for five seconds: it is dead after three,
// and what it says afterwards counts for nothing.
func TestTypedChaosProcesses(t *testing.T) {
	for _, fault := range []string{"kill", "silence"} {
		for _, name := range workloads {
			if fault == "silence" && !*long && name != "streams" {
				continue
			}
			t.Run(fault+"/"+name, func(t *testing.T) {
				t.Parallel()
				head := startProcess(t, "head")
				one := startProcess(t, head.address)
				startProcess(t, head.address)
				head.say("chaos " + name)
				time.Sleep(150 * time.Millisecond)
				if fault == "kill" {
					one.kill()
					startProcess(t, head.address)
				} else {
					require.NoError(t, one.cmd.Process.Signal(syscall.SIGSTOP))
					time.AfterFunc(5*time.Second, func() { _ = one.cmd.Process.Signal(syscall.SIGCONT) })
				}
				head.expect("ok")
				head.quit()
			})
		}
	}
}
