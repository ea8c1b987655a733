package objectstore

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A value of many pieces is read several pieces at a time. A fault in any of them is the whole value's, and nobody
// writes into its memory after that.
func TestEachPieceOfALargeValueCanFail(t *testing.T) {
	faults := &nthFault{fault: "i/o error", only: "read"} // what is written meanwhile, and when, is not the test's
	s := open(t, func(c *Config) { c.files, c.MemoryLimit = faults, 8*pieceBytes })
	v := value(1, 6*pieceBytes+3)
	id := put(t, s, "job", v)
	away := func() {
		require.NoError(t, s.Release(put(t, s, "job", value(2, 6*pieceBytes)), "job"))
	}
	for piece := range 7 {
		away()
		var first int // the reading begins with the next call that is counted
		faults.mu.Lock()
		first = faults.calls
		faults.at = first + piece + 1
		faults.mu.Unlock()
		_, err := s.Get(id)
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, err, syscall.EIO)
		other := put(t, s, "job", bytes.Repeat([]byte{7}, 6*pieceBytes))
		requireValue(t, s, other, bytes.Repeat([]byte{7}, 6*pieceBytes))
		require.NoError(t, s.Release(other, "job"))
	}
	away()
	requireValue(t, s, id, v)
	s.ReleaseOwner("job")
	requireEmpty(t, s)
}
