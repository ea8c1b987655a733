// Package link makes a lossy way between two nodes into an ordered one that loses and repeats nothing: messages are
// numbered, kept until they are acknowledged, and sent again from the oldest when the way broke or nothing was
// acknowledged for too long. It has no clock and no goroutines.
//
// A link is between two incarnations. It ends with one of them; there is no other end.
package link

// Sender is one direction's sending side.
type Sender[M any] struct {
	base  uint64 // number of kept[0]; numbers start at 1
	kept  []M    // sent or not, not acknowledged
	count int    // of kept, those that were sent since the last Rewind
}

// Push adds a message.
func (s *Sender[M]) Push(m M) { s.kept = append(s.kept, m) }

// Next gives up to limit messages to send now, with the number of the first. They must be gone, or Rewind be called.
func (s *Sender[M]) Next(limit int) (first uint64, ms []M) {
	n := min(len(s.kept)-s.count, limit)
	first = s.start() + uint64(s.count)
	ms = s.kept[s.count : s.count+n]
	s.count += n
	return first, ms
}

// Back says that the last n that Next gave are not sent yet after all.
func (s *Sender[M]) Back(n int) { s.count -= n }

func (s *Sender[M]) start() uint64 { return max(s.base, 1) }

// Ack says that the other side has every message below upto. It is true when that is news.
func (s *Sender[M]) Ack(upto uint64) bool {
	if upto <= s.start() {
		return false
	}
	n := min(int(upto-s.start()), len(s.kept))
	clear(s.kept[:n])
	s.kept = s.kept[n:]
	s.count = max(s.count-n, 0)
	s.base = s.start() + uint64(n)
	if len(s.kept) == 0 {
		s.kept = nil
	}
	return n > 0
}

// Rewind has everything that is not acknowledged sent again.
func (s *Sender[M]) Rewind() { s.count = 0 }

// Unsent counts messages that Next would give; Open those that are not acknowledged.
func (s *Sender[M]) Unsent() int { return len(s.kept) - s.count }
func (s *Sender[M]) Open() int   { return len(s.kept) }

// Receiver is one direction's receiving side.
type Receiver[M any] struct {
	next  uint64 // the number that is wanted next; 0 is 1
	early map[uint64]M
}

// maxEarly bounds what is kept of messages that came before their turn.
const maxEarly = 4096

// Accept takes a message and gives those that are in order now, each once.
func (r *Receiver[M]) Accept(seq uint64, m M) (in []M) {
	next := r.Ack()
	switch {
	case seq < next:
		return nil
	case seq > next:
		if len(r.early) < maxEarly {
			if r.early == nil {
				r.early = make(map[uint64]M)
			}
			r.early[seq] = m
		}
		return nil
	}
	in = append(in, m)
	next++
	for len(r.early) > 0 {
		e, ok := r.early[next]
		if !ok {
			break
		}
		delete(r.early, next)
		in = append(in, e)
		next++
	}
	r.next = next
	return in
}

// Ack is the number below which everything has come.
func (r *Receiver[M]) Ack() uint64 { return max(r.next, 1) }
