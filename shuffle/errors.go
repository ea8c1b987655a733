package shuffle

import (
	"errors"

	"manta/actors"
)

var (
	// ErrClosed: every reader of the edge has enough; what is written from now on would be discarded.
	ErrClosed = errors.New("shuffle: every reader has closed")
	// ErrJobEnded: the job is over on this node.
	ErrJobEnded = errors.New("shuffle: job has ended")
	// ErrProducer: a producer failed before its output was complete.
	ErrProducer = errors.New("shuffle: producer failed")
	// ErrReader: a partition's reader failed before it had enough.
	ErrReader = errors.New("shuffle: reader failed")
	// ErrPeer: the connection to another node broke.
	ErrPeer = errors.New("shuffle: connection lost")
	// ErrEdge: a description that cannot be, or a task that is not part of it.
	ErrEdge = errors.New("shuffle: bad edge")
	// ErrConcat: a producer's output does not fit into its node's store as one object.
	ErrConcat = errors.New("shuffle: output too large for mode concat")
	// ErrCorrupt: a block's checksum is wrong.
	ErrCorrupt = errors.New("shuffle: corrupt block")
)

func init() {
	actors.RegisterError("shuffle.job_ended", ErrJobEnded)
	actors.RegisterError("shuffle.edge", ErrEdge)
	actors.RegisterError("shuffle.producer", ErrProducer)
	actors.RegisterError("shuffle.reader", ErrReader)
	actors.RegisterError("shuffle.peer", ErrPeer)
	actors.RegisterError("shuffle.concat", ErrConcat)
	actors.RegisterError("shuffle.corrupt", ErrCorrupt)
}
