package shuffle

import (
	"sync"

	"manta/shuffle/credit"
)

// usage is a node's exchange memory: one half for what comes in, one for what writers hold.
type usage struct {
	limit int64

	mu      sync.Mutex
	in      *credit.Budget // guarded by mu
	out     int64          // guarded by mu; held by writers
	writers int64          // guarded by mu
	peak    int64          // guarded by mu
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

func (u *usage) note() { u.peak = max(u.peak, u.in.Held()+u.out) }

// fetched counts n bytes more (or fewer) of blocks that were asked for.
func (u *usage) fetched(n int64) { u.update(func(b *credit.Budget) { b.Force(n) }) }

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
	return u.limit / 2 / max(1, u.writers)
}

func (u *usage) stats(s *Stats) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.Bytes, s.Peak, s.Limit = u.in.Held()+u.out, u.peak, u.limit
	s.Channels = u.in.Channels()
}

// fits says whether n more incoming bytes are within the limit.
func (u *usage) fits(n int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.in.Held()+n <= u.in.Limit()
}
