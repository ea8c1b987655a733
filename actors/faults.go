package actors

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"manta/actors/internal/wire"
)

// Fault is what happens to the control messages that a Faults' rule matches.
type Fault struct {
	// Kind is the short name of the request's protobuf message ("EndJob"), or ""
	// for all.
	Kind string
	// Reply is true for replies to such requests, false for the requests.
	Reply bool
	// Lose, Repeat and Hold are probabilities (0 to 1) that a message is lost, is
	// sent twice, or is held back for Delay.
	Lose, Repeat, Hold float64
	Delay              time.Duration
	// First limits the rule to the first so many messages that match; 0 = all.
	First int
}

// Faults loses, repeats and delays control messages as its rules say. Choices
// come from the seed. It is for tests.
type Faults struct {
	mu    sync.Mutex
	rng   *rand.Rand // guarded by mu
	rules []Fault    // immutable
	seen  []int      // guarded by mu; matches per rule
	hits  int        // guarded by mu
	kinds map[requestKey]string
}

type requestKey struct {
	from, to string
	request  uint64
}

// NewFaults gives an injector. The first rule that matches a message decides.
func NewFaults(seed uint64, rules ...Fault) *Faults {
	return &Faults{
		rng: rand.New(rand.NewPCG(seed, 0)), rules: rules, seen: make([]int, len(rules)),
		kinds: make(map[requestKey]string),
	}
}

// Hits counts the messages that something was done to.
func (f *Faults) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// fate decides how often a message is sent, and how late.
func (f *Faults) fate(e *wire.Envelope) (copies int, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decideLocked(f.kind(e), e.Reply)
}

func (f *Faults) decide(kind string, reply bool) (copies int, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.decideLocked(kind, reply)
}

func (f *Faults) decideLocked(kind string, reply bool) (copies int, delay time.Duration) {
	for i, r := range f.rules {
		if r.Reply != reply || r.Kind != "" && r.Kind != kind || r.First > 0 && f.seen[i] >= r.First {
			continue
		}
		f.seen[i]++
		copies = 1
		if f.rng.Float64() < r.Lose {
			copies = 0
		} else if f.rng.Float64() < r.Repeat {
			copies = 2
		}
		if f.rng.Float64() < r.Hold {
			delay = r.Delay
		}
		if copies != 1 || delay > 0 {
			f.hits++
		}
		return copies, delay
	}
	return 1, 0
}

// kind is the short message name of a request, also for the reply to it: the
// injector is shared by the nodes of a test and saw the request pass.
func (f *Faults) kind(e *wire.Envelope) string {
	if e.Reply {
		return f.kinds[requestKey{e.To, e.From, e.Request}]
	}
	name := e.GetBody().GetTypeUrl()
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = name[strings.LastIndexByte(name, '.')+1:]
	f.kinds[requestKey{e.From, e.To, e.Request}] = name
	return name
}

// faultyTransport puts a Faults before a transport.
type faultyTransport struct {
	transport
	faults *Faults

	mu     sync.Mutex
	closed bool           // guarded by mu
	held   sync.WaitGroup // delayed sends
}

func (t *faultyTransport) send(to peer, e *wire.Envelope) {
	copies, delay := t.faults.fate(e)
	for range copies {
		if delay == 0 {
			t.transport.send(to, e)
			continue
		}
		t.mu.Lock()
		if !t.closed {
			t.held.Add(1)
			time.AfterFunc(delay, func() {
				defer t.held.Done()
				t.transport.send(to, e)
			})
		}
		t.mu.Unlock()
	}
}

func (t *faultyTransport) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.held.Wait()
	t.transport.close()
}

// faultyWay puts a Faults before a way of frames. Kinds are those of the runtime's messages: "Submit", "Start", "Done", "Ready", "Emit",
// "Items" and so on, and "Ack" for a frame's acknowledgement. None of them is a reply.
type faultyWay struct {
	way
	faults *Faults
}

func (w *faultyWay) send(ctx context.Context, f *wire.Frame) error {
	out := &wire.Frame{From: f.From, To: f.To, Ack: f.Ack}
	if copies, _ := w.faults.decide("Ack", false); copies == 0 {
		out.Ack = 0
	}
	var late time.Duration
	for _, i := range f.Items {
		copies, delay := w.faults.decide(itemKind(i), false)
		late = max(late, delay)
		for range copies {
			out.Items = append(out.Items, i)
		}
	}
	if late > 0 {
		select {
		case <-time.After(late):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return w.way.send(ctx, out)
}

// itemKind is the name of the field that is set.
func itemKind(i *wire.Item) (kind string) {
	i.ProtoReflect().Range(func(fd protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		if fd.Number() == 1 {
			return true
		}
		for part := range strings.SplitSeq(string(fd.Name()), "_") {
			kind += strings.ToUpper(part[:1]) + part[1:]
		}
		return false
	})
	return kind
}
