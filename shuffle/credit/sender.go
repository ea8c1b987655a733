package credit

// Grant is what a receiver tells a sender. All totals count from the start of the channel, so the newest of each wins.
type Grant struct {
	Total    int64 // bytes that may have been sent
	Consumed int64 // bytes that the consumer took
	Window   int64 // what the channel may hold now; a hint for the size of batches
}

// End says how a channel ended.
type End uint8

const (
	Open   End = iota // not ended
	Ended             // by the producer, complete
	Closed            // by the consumer, which has enough
	Failed            // by either side
)

func (e End) String() string { return [...]string{"open", "ended", "closed", "failed"}[e] }

// Sender is the producer's end of one channel. The zero value is an open channel without credit.
type Sender struct {
	granted, consumed, window int64
	sent                      int64
	batches                   uint64
	end                       End
}

// Grant takes a grant, in any order and any number of times.
func (s *Sender) Grant(g Grant) {
	if off[stale] {
		s.granted, s.consumed, s.window = g.Total, g.Consumed, g.Window
		return
	}
	s.granted = max(s.granted, g.Total)
	if g.Consumed >= s.consumed && g.Window > 0 {
		s.consumed, s.window = g.Consumed, g.Window
	}
}

// CanSend says whether a batch of n bytes may go now.
func (s *Sender) CanSend(n int64) bool {
	if s.end != Open || s.window == 0 {
		return false
	}
	return s.sent+n <= s.granted || s.sent == s.consumed && !off[oversize]
}

// Send records a batch of n bytes and returns its sequence number. It panics when CanSend(n) is false: the caller would
// break the memory bound of another node.
func (s *Sender) Send(n int64) uint64 {
	if !s.CanSend(n) {
		panic("credit: send without credit")
	}
	s.sent += n
	s.batches++
	return s.batches - 1
}

// Idle says that the consumer is there and took everything that was sent.
func (s *Sender) Idle() bool { return s.end == Open && s.window > 0 && s.sent == s.consumed }

// Taken is the bytes that the consumer is known to have taken.
func (s *Sender) Taken() int64 { return s.consumed }

// Window is what the channel may hold, 0 before the first grant.
func (s *Sender) Window() int64 { return s.window }

// State is how the channel ended, or Open.
func (s *Sender) State() End { return s.end }

// Finish ends the channel as e unless it has ended, and says whether it did. The totals are END's content.
func (s *Sender) Finish(e End) (batches uint64, bytes int64, did bool) {
	if s.end != Open {
		return s.batches, s.sent, false
	}
	s.end = e
	return s.batches, s.sent, true
}
