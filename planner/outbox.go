package planner

import (
	"sync/atomic"

	"manta/planner/wire"
)

// maxHeld is how many bytes of a result are held until the query has succeeded.
const maxHeld = 32 << 20

// outbox holds a result's rows back while there are few of them, so that the query
// can start again without the client's notice. With more of them it opens: what it
// holds goes out, and the rest at once. It is for one goroutine, but for opened.
type outbox struct {
	limit  int64 // bytes
	send   func(*wire.QueryEvent) error
	held   []*wire.QueryEvent
	bytes  int64
	opened atomic.Bool // rows may have reached the client
}

// put takes an event with rows.
func (o *outbox) put(e *wire.QueryEvent) error {
	if o.opened.Load() {
		return o.send(e)
	}
	o.held = append(o.held, e)
	if o.bytes += int64(len(e.GetBlock()) + len(e.GetPart())); o.bytes > o.limit {
		return o.open()
	}
	return nil
}

// open sends what is held.
func (o *outbox) open() error {
	held := o.held
	o.drop()
	o.opened.Store(true)
	for i, e := range held {
		held[i] = nil
		if err := o.send(e); err != nil {
			return err
		}
	}
	return nil
}

// drop forgets what is held.
func (o *outbox) drop() { o.held, o.bytes = nil, 0 }
