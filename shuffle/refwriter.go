package shuffle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"manta/actors"
	"manta/shuffle/shufflepb"
)

// refsPerMessage keeps a message well within the limit of control messages.
const refsPerMessage = 256

// refWriter hands references to the queue actors of an edge's partitions, several to a message: while one message is under
// way, the next references gather. One goroutine, started with the first reference.
//
// When the output is kept, or was, for another attempt of the job, it goes on without the readers that are lost.
type refWriter struct {
	w        *Writer
	producer int
	outlives bool // its readers
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{} // closed when the goroutine has ended

	mu      sync.Mutex
	work    *sync.Cond
	lanes   []refLane // guarded by mu, like all below
	todo    fifo[int] // lanes with something to send
	running bool
	busy    bool // a message is under way
	quit    bool
	gone    int // lanes whose reader has enough
	lost    int // lanes whose reader is lost
	err     error
	control int64
	refs    int64
}

type refLane struct {
	pending []*shufflepb.Ref
	next    uint64 // number of the first pending reference
	end     bool   // END is to be sent
	failed  string // FAILED is to be sent
	closed  bool   // its reader has enough
	lost    bool   // its reader failed, or its node is dead
	ended   bool   // END or FAILED was sent
	queued  bool   // in todo
}

func newRefWriter(w *Writer, producer int) *refWriter {
	r := &refWriter{w: w, producer: producer, outlives: w.kept != nil, lanes: make([]refLane, len(w.edge.Consumers)), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(w.job.ctx)
	r.work = sync.NewCond(&r.mu)
	w.refs = r
	return r
}

// push gives partition p one more reference.
func (r *refWriter) push(p int, ref *shufflepb.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := &r.lanes[p]
	if l.closed || l.lost {
		r.unwanted(l, []*shufflepb.Ref{ref})
		return
	}
	r.refs++
	l.pending = append(l.pending, ref)
	r.queue(p)
}

// queue notes that lane p has something to send. mu is held.
func (r *refWriter) queue(p int) {
	if l := &r.lanes[p]; !l.queued {
		l.queued = true
		r.todo.push(p)
	}
	if !r.running {
		r.running = true
		go r.run()
	}
	r.work.Signal()
}

func (r *refWriter) run() {
	defer close(r.done)
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for r.todo.len() == 0 && !r.quit {
			r.work.Wait()
		}
		if r.todo.len() == 0 {
			return
		}
		p := r.todo.pop()
		l := &r.lanes[p]
		l.queued = false
		if l.closed || l.lost || r.err != nil && l.failed == "" {
			poke(r.w.wake)
			continue
		}
		m, taken := r.message(p, l)
		r.busy = true
		r.control++
		r.mu.Unlock()
		closed, err := r.ask(p, m)
		r.mu.Lock()
		r.busy = false
		switch {
		case err != nil && r.outlives && (errors.Is(err, ErrReader) || errors.Is(err, actors.ErrNodeDead)):
			l.lost = true
			r.lost++
			r.drop(l, taken)
		case err != nil:
			if r.err == nil {
				r.err = err
			}
		case closed:
			l.closed = true
			r.gone++
			r.drop(l, taken)
		}
		poke(r.w.wake)
	}
}

// message takes what lane l has to send, or a part of it. mu is held.
func (r *refWriter) message(p int, l *refLane) (m *shufflepb.Refs, taken []*shufflepb.Ref) {
	m = &shufflepb.Refs{Channel: r.w.edge.channel(r.producer, p, r.w.tc.Attempt), First: l.next}
	if l.failed != "" {
		m.Failed, l.ended, l.pending = l.failed, true, nil
		return m, nil
	}
	n := min(len(l.pending), refsPerMessage)
	taken = l.pending[:n:n]
	l.pending = l.pending[n:]
	l.next += uint64(n)
	m.Refs = taken
	if len(l.pending) > 0 {
		l.queued = true
		r.todo.push(p)
	} else if l.end {
		m.End, l.ended = true, true
	}
	return m, taken
}

// ask sends a message to the queue actor of partition p, which may have to be made.
func (r *refWriter) ask(p int, m *shufflepb.Refs) (closed bool, err error) {
	node := r.w.s.node
	ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
	defer cancel()
	home := r.w.edge.Consumers[p]
	to := actors.Address{Node: home, Name: queueName(r.w.edge.Job, queueKey{r.w.edge.ID, uint32(p)})}
	reply, err := node.Ask(ctx, to, m)
	for errors.Is(err, actors.ErrActorNotFound) { // once, but for a job that ends meanwhile: then it cannot be made
		control := actors.Address{Node: home, Name: controlActor}
		if _, err := node.Ask(ctx, control, &shufflepb.OpenQueue{Channel: m.Channel}); err != nil {
			return false, fmt.Errorf("shuffle: node %s: %w", home, err)
		}
		reply, err = node.Ask(ctx, to, m)
	}
	if err != nil {
		return false, fmt.Errorf("shuffle: node %s: %w", home, err)
	}
	answer, ok := reply.(*shufflepb.RefsReply)
	if !ok {
		return false, fmt.Errorf("%w: reply %T", ErrEdge, reply)
	}
	return answer.GetClosed(), nil
}

// drop gives back what a lane has to send, and what was taken from it. mu is held.
func (r *refWriter) drop(l *refLane, taken []*shufflepb.Ref) {
	r.unwanted(l, taken)
	r.unwanted(l, l.pending)
	l.pending = nil
}

// unwanted gives back references that the lane's reader will not use. mu is held.
func (r *refWriter) unwanted(l *refLane, refs []*shufflepb.Ref) {
	how := spent
	if l.lost {
		how = missed
	}
	r.w.s.releaseHere(refs, how)
}

// finish sends END on every lane and waits until all is sent.
func (r *refWriter) finish() error {
	r.mu.Lock()
	for p := range r.lanes {
		r.lanes[p].end = true
		r.queue(p)
	}
	r.mu.Unlock()
	for {
		r.mu.Lock()
		idle, err := r.todo.len() == 0 && !r.busy, r.err
		r.mu.Unlock()
		if err != nil || idle {
			return err
		}
		if err := r.w.wait(); err != nil {
			return err
		}
	}
}

// abort sends FAILED on every lane that has not ended, as far as that goes within Config.farewell.
func (r *refWriter) abort(err error) {
	text := string(encodeFailure(err))
	r.mu.Lock()
	for p := range r.lanes {
		if l := &r.lanes[p]; !l.ended && !l.closed && !l.lost {
			l.failed = text
			r.queue(p)
		}
	}
	r.err = nil // of a message to one reader; the others are to know of the failure
	r.quit = true
	r.work.Signal()
	running := r.running
	r.mu.Unlock()
	if !running {
		return
	}
	late := time.NewTimer(r.w.s.cfg.farewell)
	defer late.Stop()
	select {
	case <-r.done:
		return
	case <-late.C:
	case <-r.w.s.node.Done(): // which the others hear of
	}
	r.cancel()
	<-r.done
}

// failure is the first error, if any.
func (r *refWriter) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// full says that no reader is left, and that what is stored is not whole, which somebody else might want.
func (r *refWriter) full() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone+r.lost == len(r.lanes) && !r.whole()
}

// allWanted says that no rows were left out because a reader had left with enough.
func (r *refWriter) allWanted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.whole()
}

// whole is allWanted under mu.
func (r *refWriter) whole() bool {
	switch route := r.w.opts.Route; route.Kind {
	case ToAll:
		return r.gone < len(r.lanes)
	case To:
		return !r.lanes[route.Partition].closed
	}
	return r.gone == 0
}

func (r *refWriter) wants(p int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p == toAll {
		return r.gone < len(r.lanes)
	}
	return !r.lanes[p].closed
}

// release ends the goroutine and counts.
func (r *refWriter) release() {
	r.cancel()
	r.mu.Lock()
	r.quit = true
	r.todo.takeAll()
	r.work.Signal()
	running := r.running
	r.mu.Unlock()
	if running {
		<-r.done
	}
	r.w.n.ControlMessages += r.control
	r.w.n.References += r.refs
	r.control, r.refs = 0, 0
}
