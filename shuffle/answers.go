package shuffle

import "sync"

// answers are the frames that a receiver has for the other end: grants and ends of channels. They are sent by a goroutine of
// their own, so that no reader waits for the network, as many at a time as there are. Of the grants of a channel that wait, the
// newest is the only one.
type answers struct {
	wake chan struct{} // capacity 1

	mu    sync.Mutex
	out   []outgoing     // guarded by mu
	grant map[uint32]int // guarded by mu; by channel, where in out its grant waits
}

func newAnswers() *answers {
	return &answers{wake: make(chan struct{}, 1), grant: map[uint32]int{}}
}

func (a *answers) put(o outgoing) {
	a.mu.Lock()
	if at, waits := a.grant[o.f.channel]; waits && o.f.kind == frameGrant {
		a.out[at] = o
	} else {
		if o.f.kind == frameGrant {
			a.grant[o.f.channel] = len(a.out)
		}
		a.out = append(a.out, o)
	}
	a.mu.Unlock()
	poke(a.wake)
}

// take returns what waits. into is reused.
func (a *answers) take(into []outgoing) []outgoing {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.grant)
	out := a.out
	a.out = into[:0]
	return out
}

// send sends what is put until the connection breaks or done is closed. Then nobody is there any more who would take it.
func (a *answers) send(w *wire, done <-chan struct{}) {
	var batch []outgoing
	for {
		select {
		case <-a.wake:
		case <-done:
			return
		}
		if batch = a.take(batch); len(batch) > 0 && w.send(batch...) != nil {
			return
		}
	}
}
