package shuffle

import "time"

// Counters says what one Writer or Reader did. The fields mean the same in all modes.
type Counters struct {
	// Rows, Bytes and Batches passed: written by a Writer (after coalescing, once for each partition that got them), or
	// returned by a Reader. Bytes are those of the Arrow buffers.
	Rows, Bytes, Batches int64
	// Objects are the store objects, or the file ranges of disk mode, that were made (Writer) or read (Reader). A
	// broadcast object is made once.
	Objects int64
	// References to them, sent or received: one for each object and reader.
	References int64
	// ControlMessages are what this side sent and that is not data: openings, messages with references, ends, closes,
	// grants, requests for blocks.
	ControlMessages int64
	// BytesCopied after the scatter: encoded or sent to another node, put into the store, received from the network, read from a file.
	BytesCopied int64
	// BytesSpilled are written to files by the exchange itself: all of disk mode, and what streaming parks. What the object
	// store spills is in its own statistics.
	BytesSpilled int64
	// CreditWait is a Writer's time without credit or room, InputWait a Reader's without input.
	CreditWait, InputWait time.Duration
	// PeakQueued is the most bytes that waited at one time: in a Writer's buffers, or in a Reader's queue.
	PeakQueued int64
}

// Add adds o; PeakQueued takes the larger.
func (c *Counters) Add(o Counters) {
	c.Rows += o.Rows
	c.Bytes += o.Bytes
	c.Batches += o.Batches
	c.Objects += o.Objects
	c.References += o.References
	c.ControlMessages += o.ControlMessages
	c.BytesCopied += o.BytesCopied
	c.BytesSpilled += o.BytesSpilled
	c.CreditWait += o.CreditWait
	c.InputWait += o.InputWait
	c.PeakQueued = max(c.PeakQueued, o.PeakQueued)
}

// Skew says how unevenly an edge's partitions got rows, or bytes: the largest of them over their mean. 1 is even, and their
// number the most; 0 when there was nothing.
func Skew(parts []int64) float64 {
	var sum, most int64
	for _, n := range parts {
		sum += n
		most = max(most, n)
	}
	if sum == 0 {
		return 0
	}
	return float64(most) * float64(len(parts)) / float64(sum)
}

// Stats describes a node's exchanges.
type Stats struct {
	Bytes    int64 // exchange memory in use: credit given, queues, fetched blocks, writers' buffers
	Peak     int64 // the most of it, ever
	PeakBusy int64 // the most of it since the node last had no job: a query's own peak when queries run one by one
	Limit    int64
	Channels int64 // open, at their readers
	Writers  int   // open
	Readers  int   // open
	Links    int   // streams to other nodes
	Files    int   // of disk mode, or parked rows of streaming
	Jobs     int   // with anything here
	Kept     int   // outputs that are kept whole beyond their reading
	Spare    int   // of these, those that no task of their job reads; see Service.Spare
	Spilled  int64 // bytes that exchanges wrote to files, ever
	Stalls   int64 // times that a job stood still, ever; see Config.StallAfter
}
