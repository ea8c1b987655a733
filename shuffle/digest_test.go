package shuffle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A checksum does not depend on the pieces that its bytes come in.
func TestDigest(t *testing.T) {
	data := make([]byte, 2*sumChunk+5000)
	for i := range data {
		data[i] = byte(i * i)
	}
	for _, n := range []int{0, 1, 63, 64, 1024, 1025, 5000, sumChunk, sumChunk + 1, len(data)} {
		var d digest
		for range 2 { // as new, and after a reset
			for _, step := range []int{7, 900, 5000, sumChunk, len(data)} {
				d.reset()
				for at := 0; at < n; at += step {
					d.add(data[at:min(n, at+step)])
				}
				require.Equal(t, sumOf(data[:n]), d.sum(), "%d bytes in pieces of %d", n, step)
			}
		}
	}
	var fresh digest
	fresh.add(data)
	require.Equal(t, sumOf(data), fresh.sum())
}
