package credit

import (
	"errors"
	"fmt"
)

// ErrProtocol is the error of a peer that breaks the rules: a gap in the sequence, more bytes than granted, an END whose
// totals differ from what arrived.
var ErrProtocol = errors.New("credit: protocol broken")

// Receiver is the consumer's end of all channels of one partition. It counts; the queue keeps the batches.
type Receiver struct {
	budget *Budget
	ch     []channel
	open   int // channels that have not ended
	queued int64
	failed string // the first reason
	closed bool
}

type channel struct {
	granted, received, consumed int64
	told                        int64 // consumed, as last told to the sender
	batches                     uint64
	end                         End
}

// holds is the channel's part of the budget.
func (c *channel) holds() int64 { return c.granted - c.consumed }

// NewReceiver joins n channels to the budget and gives each its first window.
func NewReceiver(b *Budget, n int) *Receiver {
	r := &Receiver{budget: b, ch: make([]channel, n), open: n}
	b.Join(n)
	first := b.First(n)
	for i := range r.ch {
		r.ch[i].granted = first
		b.Force(first)
	}
	return r
}

// Channels is the number of channels.
func (r *Receiver) Channels() int { return len(r.ch) }

// Grant is the channel's current grant: right to send at any time and any number of times.
func (r *Receiver) Grant(i int) Grant {
	c := &r.ch[i]
	return Grant{Total: c.granted, Consumed: c.consumed, Window: max(c.holds(), 1)}
}

// State is how channel i ended, or Open.
func (r *Receiver) State(i int) End { return r.ch[i].end }

// Arrive records batch seq of n bytes on channel i. Only an accepted batch goes into the queue; a repeated one and one for
// a closed or failed channel is dropped. An error is ErrProtocol and fails nothing by itself.
func (r *Receiver) Arrive(i int, seq uint64, n int64) (accepted bool, err error) {
	c := &r.ch[i]
	switch {
	case n < 0:
		return false, fmt.Errorf("%w: channel %d sent a batch of %d bytes", ErrProtocol, i, n)
	case c.end == Closed || c.end == Failed || r.closed || seq < c.batches:
		return false, nil
	case c.end == Ended:
		return false, fmt.Errorf("%w: channel %d sent batch %d after its end", ErrProtocol, i, seq)
	case seq > c.batches:
		return false, fmt.Errorf("%w: channel %d sent batch %d where %d was due", ErrProtocol, i, seq, c.batches)
	}
	if over := c.received + n - c.granted; over > 0 {
		if c.received != c.consumed {
			return false, fmt.Errorf("%w: channel %d sent %d bytes more than granted", ErrProtocol, i, over)
		}
		r.budget.Force(over)
		c.granted += over
	}
	c.received += n
	c.batches++
	r.queued += n
	return true, nil
}

// Take records that the consumer took a batch of n bytes of channel i out of the queue. When tell is true the new grant
// should go to the sender: a quarter of the window is new, or the channel is empty and its sender may wait for that.
func (r *Receiver) Take(i int, n int64) (g Grant, tell bool) {
	c := &r.ch[i]
	c.consumed += n
	r.queued -= n
	r.budget.Return(n)
	if c.end != Open {
		return Grant{}, false
	}
	c.granted += r.budget.Extend(c.holds())
	if c.consumed-c.told >= c.holds()/4 || c.consumed == c.received {
		c.told = c.consumed
		tell = true
	}
	return r.Grant(i), tell
}

// End takes END(batches, bytes) of channel i.
func (r *Receiver) End(i int, batches uint64, bytes int64) error {
	c := &r.ch[i]
	if c.end != Open {
		return nil
	}
	if (c.batches != batches || c.received != bytes) && !off[short] {
		return fmt.Errorf("%w: channel %d ended after %d batches (%d bytes), %d (%d) arrived",
			ErrProtocol, i, batches, bytes, c.batches, c.received)
	}
	r.finish(c, Ended)
	return nil
}

// Fail ends channel i as FAILED, unless it has ended. The first reason is the receiver's.
func (r *Receiver) Fail(i int, reason string) (did bool) {
	c := &r.ch[i]
	if c.end != Open {
		return false
	}
	if r.failed == "" {
		r.failed = reason
	}
	r.finish(c, Failed)
	return true
}

// finish ends c and gives back the credit that will not be used. Bytes that are queued stay until taken or dropped.
func (r *Receiver) finish(c *channel, e End) {
	c.end = e
	r.open--
	r.budget.Return(c.granted - c.received)
	c.granted = c.received
	r.budget.Leave(1)
}

// Close ends every open channel as CLOSED and forgets the queue: the caller drops the batches. It returns the channels
// whose senders must be told.
func (r *Receiver) Close() (tell []int) {
	if r.closed {
		return nil
	}
	r.closed = true
	for i := range r.ch {
		c := &r.ch[i]
		if c.end == Open {
			r.finish(c, Closed)
			tell = append(tell, i)
		}
		if off[closing] {
			continue
		}
		r.budget.Return(c.received - c.consumed)
		c.consumed = c.received
	}
	r.queued = 0
	return tell
}

// Queued is the bytes that arrived and were not taken.
func (r *Receiver) Queued() int64 { return r.queued }

// Failure is the first reason given to Fail, "" if none.
func (r *Receiver) Failure() string { return r.failed }

// Done says that nothing more will arrive.
func (r *Receiver) Done() bool { return r.open == 0 }

// Check returns the first invariant that does not hold.
func (r *Receiver) Check() error {
	var queued int64
	open := 0
	for i := range r.ch {
		c := &r.ch[i]
		queued += c.received - c.consumed
		if c.end == Open {
			open++
		}
		switch {
		case c.consumed < 0 || c.consumed > c.received || c.received > c.granted:
			return fmt.Errorf("I1: channel %d: consumed %d, received %d, granted %d", i, c.consumed, c.received, c.granted)
		case c.end == Open && c.holds() < MinWindow:
			return fmt.Errorf("I5: open channel %d holds only %d", i, c.holds())
		case c.end != Open && c.granted != c.received:
			return fmt.Errorf("I8: channel %d is %v and holds credit for %d bytes", i, c.end, c.granted-c.received)
		case c.end == Closed && c.received != c.consumed:
			return fmt.Errorf("I8: closed channel %d holds %d bytes", i, c.received-c.consumed)
		}
	}
	if open != r.open {
		return fmt.Errorf("I6: %d channels open, counted %d", open, r.open)
	}
	if queued != r.queued {
		return fmt.Errorf("I12: %d bytes queued, counted %d", queued, r.queued)
	}
	return nil
}

// Holds is the receiver's part of the budget.
func (r *Receiver) Holds() (n int64) {
	for i := range r.ch {
		n += r.ch[i].holds()
	}
	return n
}
