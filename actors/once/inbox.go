package once

// Verdict is what a receiver does with a request that arrived.
type Verdict uint8

const (
	Run    Verdict = iota + 1 // first arrival: run it, then call Reply
	Wait                      // it runs already: its reply will answer this one too
	Replay                    // it ran: send the kept reply again
	Drop                      // nobody waits for it
)

// Inbox remembers one sender's requests at their receiver. R is a kept reply.
type Inbox[R any] struct {
	settled  uint64
	requests map[uint64]*entry[R]
}

type entry[R any] struct {
	reply    R
	replied  bool
	expired  bool // the reply was dropped to save memory
	deadline int64
}

// Accept judges an arriving request. The mark is the sender's settled mark; at
// the deadline (any clock of the receiver's that rises) the sender gives up.
func (in *Inbox[R]) Accept(request, mark uint64, deadline int64) (Verdict, R) {
	in.advance(mark)
	var none R
	if request == 0 || request < in.settled {
		return Drop, none
	}
	e, ok := in.requests[request]
	switch {
	case !ok:
		if in.requests == nil {
			in.requests = make(map[uint64]*entry[R])
		}
		in.requests[request] = &entry[R]{deadline: deadline}
		return Run, none
	case e.expired:
		return Drop, none
	case e.replied:
		return Replay, e.reply
	default:
		return Wait, none
	}
}

// Reply keeps the reply of a request that ran. It says whether anybody may
// still wait for it.
func (in *Inbox[R]) Reply(request uint64, reply R) bool {
	e, ok := in.requests[request]
	if !ok || e.replied || e.expired {
		return false
	}
	e.reply, e.replied = reply, true
	return true
}

// Expire drops the replies of requests whose deadline is before now. Their
// numbers stay, so that a late repeat does not run.
func (in *Inbox[R]) Expire(now int64) {
	var none R
	for _, e := range in.requests {
		if e.deadline < now && e.replied {
			e.reply, e.replied, e.expired = none, false, true
		}
	}
}

// Len is the number of requests that are remembered.
func (in *Inbox[R]) Len() int { return len(in.requests) }

func (in *Inbox[R]) advance(mark uint64) {
	if mark <= in.settled {
		return
	}
	if mark-in.settled <= uint64(len(in.requests)) {
		for r := in.settled; r < mark; r++ {
			delete(in.requests, r)
		}
	} else {
		for r := range in.requests {
			if r < mark {
				delete(in.requests, r)
			}
		}
	}
	in.settled = mark
}
