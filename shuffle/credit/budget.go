package credit

// MinWindow is the reserve of every open channel, outside any budget.
const MinWindow = 4 << 10

// Budget shares a node's memory for incoming batches among its channels. What channels hold never exceeds the limit
// by more than MinWindow for each open channel plus, for each, one batch that is larger than its window.
type Budget struct {
	limit, max int64 // immutable
	held, peak int64
	channels   int64
	due        int64 // channels that are known to come
}

// NewBudget makes a budget of limit bytes; no channel is given a window over maxWindow.
func NewBudget(limit, maxWindow int64) *Budget {
	return &Budget{limit: limit, max: max(maxWindow, MinWindow)}
}

// Join counts n more channels.
func (b *Budget) Join(n int) { b.channels += int64(n) }

// Leave counts n fewer channels; what they held was given back before.
func (b *Budget) Leave(n int) { b.channels -= int64(n) }

// Expect counts n more channels that will come, or fewer. A share is left to each: credit that was given is not taken back, so
// were the first of many readers to get all of it, the others would have to do with MinWindow until those have used it up.
func (b *Budget) Expect(n int) { b.due += int64(n) }

// Share is the window that a channel should have now.
func (b *Budget) Share() int64 {
	return min(b.max, max(MinWindow, b.limit/max(1, b.channels+b.due)))
}

// Extend gives a channel that holds `has` bytes as much more as its share and the free memory allow, and always enough
// to reach MinWindow.
func (b *Budget) Extend(has int64) (more int64) {
	share, reserve := b.Share(), int64(MinWindow)
	if off[skew] {
		share = b.limit
	}
	if off[starved] {
		reserve = 0
	}
	more = min(share-has, b.limit-b.held)
	more = max(more, reserve-has, 0)
	b.add(more)
	return more
}

// First is the window that each of n channels begins with. A new reader takes an eighth of the free memory at most, so that
// those of other exchanges that come later do not start with nothing; windows grow to their share as they are used.
func (b *Budget) First(n int) int64 {
	free := max(0, b.limit-b.held)
	return max(MinWindow, min(b.Share(), free/8/int64(max(1, n))))
}

// Force takes n bytes, whatever the limit: a reserve, or what has already arrived.
func (b *Budget) Force(n int64) { b.add(n) }

// Return gives n bytes back.
func (b *Budget) Return(n int64) { b.add(-n) }

func (b *Budget) add(n int64) {
	b.held += n
	b.peak = max(b.peak, b.held)
	if b.held < 0 {
		panic("credit: budget below zero")
	}
}

// Held, Peak, Channels and Limit describe the budget.
func (b *Budget) Held() int64     { return b.held }
func (b *Budget) Peak() int64     { return b.peak }
func (b *Budget) Limit() int64    { return b.limit }
func (b *Budget) Channels() int64 { return b.channels }
