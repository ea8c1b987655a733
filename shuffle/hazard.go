package shuffle

import (
	"sync/atomic"
	"time"
)

// hazard is a way in which exchanges come to a standstill or to a wrong result, by its number in the project's notes. Each has
// its counter-measure, which a test of this package may switch off to show that the trouble is real and is noticed. Package
// credit has those of the protocol.
type hazard int

const (
	standstill hazard = 0  // what nobody has foreseen: the watchdog's part
	empty      hazard = 2  // a producer without rows for a partition never tells it of its end
	disorder   hazard = 3  // readers wait for each other through their writers
	leaving    hazard = 4  // a producer that starts after its reader has left waits for it
	lostPeer   hazard = 5  // a node that is gone leaves its writers waiting
	lateComer  hazard = 7  // what is left of an ended attempt is taken for news
	fewSlots   hazard = 9  // a task that waits keeps its slot from those it waits for
	behind     hazard = 11 // what follows on a connection waits for the reader of what comes first
	spilling   hazard = 10 // what was spilled cannot be read while its file is written
)

// awaitEmpty is what a loop would do that takes all of a connection's frames but waits for readers.
func (q *streamQueue) awaitEmpty() {
	for waits := true; waits; {
		q.mu.Lock()
		waits = q.items.len() > 0 && !q.over
		q.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// switchedOff are the counter-measures that are off: none, but in tests.
var switchedOff [15]atomic.Bool

func without(h hazard) bool { return switchedOff[h].Load() }
