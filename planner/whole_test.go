package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"manta/actors"
)

func TestWhole(t *testing.T) {
	const mib = 1 << 20
	node := actors.NodeInfo{MemoryBytes: 1024 * mib}
	for _, c := range []struct {
		what        string
		bytes, work float64
		at          placement
		whole       bool
	}{
		{"little to read", mib, mib, placement{nodes: 2, whole: node}, true},
		{"distributed by wish", mib, mib, placement{nodes: 2, whole: node, always: true}, false},
		{"much to read", 100 * mib, 100 * mib, placement{nodes: 2, whole: node}, false},
		{"a product of small tables", mib, 100 * mib, placement{nodes: 2, whole: node}, false},
		{"one node", 100 * mib, 100 * mib, placement{nodes: 1, whole: node}, true},
		{"one node, and a join of which much is expected", 100 * mib, 1e6 * mib, placement{nodes: 1, whole: node}, true},
		{"one node, and more than fits", 4096 * mib, 4096 * mib, placement{nodes: 1, whole: node}, false},
	} {
		require.Equal(t, c.whole, whole(c.bytes, c.work, c.at) != "", c.what)
	}
}
