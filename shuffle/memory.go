package shuffle

import (
	"sync"

	"manta/shuffle/credit"
)

// usage is a node's exchange memory: one half for what comes in, three eighths for what writers hold, one for blocks in line
// to other nodes.
type usage struct {
	limit int64

	mu      sync.Mutex
	in      *credit.Budget // guarded by mu
	out     int64          // guarded by mu; held by writers, and in line
	links   int64          // guarded by mu
	writers int64          // guarded by mu
	peak    int64          // guarded by mu
	busy    int64          // guarded by mu; peak since the node last had no job
}

func newUsage(limit int64, batch int64) *usage {
	return &usage{limit: limit, in: credit.NewBudget(limit/2, 4*batch)}
}

// update runs f on the budget for incoming bytes.
func (u *usage) update(f func(*credit.Budget)) {
	u.mu.Lock()
	f(u.in)
	u.note()
	u.mu.Unlock()
}

// note keeps the peaks. mu is held.
func (u *usage) note() {
	now := u.in.Held() + u.out
	u.peak, u.busy = max(u.peak, now), max(u.busy, now)
}

// begin starts the peak of a busy time.
func (u *usage) begin() {
	u.mu.Lock()
	u.busy = u.in.Held() + u.out
	u.mu.Unlock()
}

// fetch takes n bytes for a block that is to be fetched, if there is room or it must be.
func (u *usage) fetch(n int64, must bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !must && u.in.Held()+n > u.in.Limit() {
		return false
	}
	u.in.Force(n)
	u.note()
	return true
}

// fetched gives them back.
func (u *usage) fetched(n int64) { u.update(func(b *credit.Budget) { b.Return(n) }) }

// addWriters counts n more writers.
func (u *usage) addWriters(n int64) {
	u.mu.Lock()
	u.writers += n
	u.mu.Unlock()
}

// writerHolds replaces what a writer held by what it holds now, and returns its fair share.
func (u *usage) writerHolds(was, now int64) (share int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.out += now - was
	u.note()
	return u.limit * 3 / 8 / max(1, u.writers)
}

func (u *usage) stats(s *Stats) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.Bytes, s.Peak, s.PeakBusy, s.Limit = u.in.Held()+u.out, u.peak, u.busy, u.limit
	s.Channels = u.in.Channels()
}

// line counts n more bytes in line to other nodes, or fewer.
func (u *usage) line(n int64) {
	u.mu.Lock()
	u.out += n
	u.note()
	u.mu.Unlock()
}

// addLinks counts n more links.
func (u *usage) addLinks(n int64) {
	u.mu.Lock()
	u.links += n
	u.mu.Unlock()
}

// lineLimit is what each link may have in line before writers wait; the last block may pass it.
func (u *usage) lineLimit() int64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.limit / 16 / max(1, u.links)
}
