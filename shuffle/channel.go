package shuffle

import (
	"sync"

	"manta/actors"
	"manta/shuffle/credit"
)

// backChannel is the way from a queue back to one of its producers. Its methods do not block for long and take no
// lock that their caller may hold.
type backChannel interface {
	grant(credit.Grant)
	closed()
	failed(error)
	node() actors.NodeID
}

// channel is the producer's end of a streaming channel: a credit.Sender behind a lock, and a wake-up for its writer.
type channel struct {
	home actors.NodeID
	lane int
	news *news

	mu   sync.Mutex
	tx   credit.Sender // guarded by mu
	err  error         // guarded by mu
	told bool          // guarded by mu; the lane is in news
}

// news is the lanes of a writer whose channels were told something: of many, those that are worth a look.
type news struct {
	wake chan struct{} // of the writer, capacity 1

	mu    sync.Mutex
	lanes []int // guarded by mu
}

// take returns the lanes, and forgets them. into is reused.
func (n *news) take(into []int) []int {
	n.mu.Lock()
	defer n.mu.Unlock()
	into = append(into[:0], n.lanes...)
	n.lanes = n.lanes[:0]
	return into
}

func newChannel(home actors.NodeID, lane int, news *news) *channel {
	return &channel{home: home, lane: lane, news: news}
}

// tell wakes the writer. mu is held.
func (c *channel) tell() {
	if !c.told {
		c.told = true
		c.news.mu.Lock()
		c.news.lanes = append(c.news.lanes, c.lane)
		c.news.mu.Unlock()
	}
	poke(c.news.wake)
}

func (c *channel) node() actors.NodeID { return c.home }

func (c *channel) grant(g credit.Grant) {
	c.mu.Lock()
	c.tx.Grant(g)
	c.tell()
	c.mu.Unlock()
}

func (c *channel) closed() { c.finish(credit.Closed, nil) }

func (c *channel) failed(err error) { c.finish(credit.Failed, err) }

func (c *channel) finish(e credit.End, err error) (batches uint64, bytes int64, did bool) {
	c.mu.Lock()
	batches, bytes, did = c.tx.Finish(e)
	if did {
		c.err = err
	}
	c.tell()
	c.mu.Unlock()
	return batches, bytes, did
}

// look returns the window (0: no grant yet), how the channel ended, and the error if it failed. What it is told from then on
// is news again.
func (c *channel) look() (window int64, end credit.End, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = false
	return c.tx.Window(), c.tx.State(), c.err
}

// idle says that the reader is there and took everything that was sent.
func (c *channel) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx.Idle()
}

// taken is the bytes that the reader is known to have taken.
func (c *channel) taken() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tx.Taken()
}

// trySend takes credit for a batch of n bytes.
func (c *channel) trySend(n int64) (seq uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tx.CanSend(n) {
		return 0, false
	}
	return c.tx.Send(n), true
}

// poke wakes the one goroutine that waits on c, or the next that will.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
