package once

// Outbox numbers one sender's requests to one receiver.
type Outbox struct {
	last    uint64 // the highest number given
	settled uint64 // every number below is settled; at most last+1
	done    map[uint64]struct{}
}

// Open gives the next request its number. Numbers start at 1.
func (o *Outbox) Open() uint64 {
	if o.settled == 0 {
		o.settled = 1
	}
	o.last++
	return o.last
}

// Settle says that nobody waits for this request any more: it was answered, or
// its sender gave up. Settling twice does no harm.
func (o *Outbox) Settle(request uint64) {
	if request < o.settled || request > o.last {
		return
	}
	if request > o.settled {
		if o.done == nil {
			o.done = make(map[uint64]struct{})
		}
		o.done[request] = struct{}{}
		return
	}
	o.settled++
	for {
		if _, ok := o.done[o.settled]; !ok {
			return
		}
		delete(o.done, o.settled)
		o.settled++
	}
}

// Settled is the mark to send along: no request below it is waited for.
func (o *Outbox) Settled() uint64 { return max(o.settled, 1) }

// Waiting counts the requests that are open and not settled.
func (o *Outbox) Waiting() int {
	if o.settled == 0 {
		return 0
	}
	return int(o.last-o.settled) + 1 - len(o.done)
}
