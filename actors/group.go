package actors

import (
	"sync"
	"time"
)

// group counts goroutines that must end before something closes. Unlike a
// sync.WaitGroup it can refuse new ones, and its wait can give up.
type group struct {
	mu     sync.Mutex
	count  int           // guarded by mu
	closed bool          // guarded by mu
	idle   chan struct{} // guarded by mu; closed when count is 0 and closed is set
}

// enter counts one more. It is false once the group is closed.
func (g *group) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.count++
	return true
}

// leave counts one less.
func (g *group) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	if g.count == 0 && g.closed {
		close(g.idle)
	}
}

// goRun runs f on a goroutine of the group. It is false once the group is closed.
func (g *group) goRun(f func()) bool {
	if !g.enter() {
		return false
	}
	go func() {
		defer g.leave()
		f()
	}()
	return true
}

// close refuses new ones and waits for those that are there. It is false if the
// time ran out first. It may be called again.
func (g *group) close(limit time.Duration) bool {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		g.idle = make(chan struct{})
		if g.count == 0 {
			close(g.idle)
		}
	}
	idle := g.idle
	g.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
