package objectstore

import "slices"

// budget counts the bytes of the memory tier and keeps the line of those who wait for some. It is pure: no
// lock, clock or goroutine; the store's mutex guards it.
//
// Requests are served in order of arrival, whatever their size. Otherwise a large one would never find a gap
// between small ones.
type budget struct {
	limit, used, peak int64
	line              []*waiter
}

// waiter is one request in the line. It leaves it granted (the bytes are counted as used) or with an error.
type waiter struct {
	need  int64
	owner string // "" for reads, which belong to nobody's job
	ready chan struct{}
	done  bool
	err   error
}

// take counts n bytes as used if they fit and nobody waits for them already.
func (b *budget) take(n int64) bool {
	if len(b.line) > 0 || b.used+n > b.limit {
		return false
	}
	b.use(n)
	return true
}

func (b *budget) use(n int64) {
	b.used += n
	b.peak = max(b.peak, b.used)
}

// give takes back n bytes and serves the line.
func (b *budget) give(n int64) {
	b.used -= n
	b.serve()
}

func (b *budget) serve() {
	for len(b.line) > 0 && b.used+b.line[0].need <= b.limit {
		w := b.line[0]
		b.use(w.need)
		b.leave(w, nil)
	}
}

// queue puts a request at the end of the line.
func (b *budget) queue(n int64, owner string) *waiter {
	w := &waiter{need: n, owner: owner, ready: make(chan struct{})}
	b.line = append(b.line, w)
	return w
}

// head returns the request that is next, or nil.
func (b *budget) head() *waiter {
	if len(b.line) == 0 {
		return nil
	}
	return b.line[0]
}

// place returns how many requests are served before w.
func (b *budget) place(w *waiter) int { return slices.Index(b.line, w) }

// leave ends a request that is in the line.
func (b *budget) leave(w *waiter, err error) {
	i := b.place(w)
	b.line = slices.Delete(b.line, i, i+1)
	w.done, w.err = true, err
	close(w.ready)
}

// fail ends all requests that match, and serves those who stood behind them.
func (b *budget) fail(match func(*waiter) bool, err error) {
	for _, w := range slices.Clone(b.line) {
		if match(w) {
			b.leave(w, err)
		}
	}
	b.serve()
}
