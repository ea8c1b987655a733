package planner

import (
	"testing"

	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/plan"
	"manta/shuffle"
)

// edgeFor makes an edge of so many rows of 8 bytes.
func edgeFor(kind dist.ExchangeKind, rows float64, from, to, outputs int) *dist.Edge {
	e := &dist.Edge{
		From: &dist.Stage{ID: 3, Tasks: from}, To: &dist.Stage{ID: 4, Tasks: to}, Kind: kind,
		Types: []plan.Type{{ID: "BIGINT"}}, Keep: []int{0}, Rows: rows,
	}
	for range outputs {
		e.From.Outputs = append(e.From.Outputs, e)
	}
	return e
}

func TestChooseMode(t *testing.T) {
	s := surroundings{nodes: 2, stores: 1 << 30, exchange: 256 << 20}
	client := edgeFor(dist.Gather, 1e9, 2, 1, 1)
	client.To = nil
	for name, tt := range map[string]struct {
		edge  *dist.Edge
		asked shuffle.Mode
		want  shuffle.Mode
		why   string
	}{
		"client":              {client, shuffle.Disk, shuffle.Streaming, ""},
		"asked":               {edgeFor(dist.Hash, 1e6, 2, 2, 1), shuffle.Concat, shuffle.Concat, ""},
		"streaming":           {edgeFor(dist.Hash, 1e6, 2, 2, 1), shuffle.Streaming, shuffle.Streaming, ""},
		"streaming waits":     {edgeFor(dist.Hash, 1e6, 2, 2, 2), shuffle.Streaming, shuffle.ObjectStore, "stage 3 feeds 2 edges"},
		"large":               {edgeFor(dist.Hash, 1e9, 4, 4, 1), Auto, shuffle.Streaming, "disk ~"},
		"small":               {edgeFor(dist.Hash, 10, 4, 4, 1), Auto, shuffle.Streaming, "disk ~"},
		"conflict":            {edgeFor(dist.Hash, 1e7, 4, 4, 2), Auto, shuffle.ObjectStore, "stage 3 feeds 2 edges"},
		"conflict, large":     {edgeFor(dist.Hash, 1e9, 4, 4, 2), Auto, shuffle.Disk, "stage 3 feeds 2 edges"},
		"broadcast":           {edgeFor(dist.Broadcast, 1e6, 4, 4, 1), Auto, shuffle.ObjectStore, "4 tasks read all of it"},
		"broadcast to one":    {edgeFor(dist.Broadcast, 1e6, 4, 1, 1), Auto, shuffle.Streaming, ""},
		"channels for memory": {edgeFor(dist.Hash, 1e9, 1024, 1024, 1), Auto, shuffle.Disk, "1048576 channels are too many"},
	} {
		got := s.choose(tt.edge, tt.asked)
		require.Equal(t, tt.want, got.mode, name)
		if tt.why == "" && tt.asked != Auto {
			require.Equal(t, string(tt.want), got.String(), name)
		}
		require.Contains(t, got.why, tt.why, name)
	}
}

// What every mode costs grows with what it moves, and with the channels.
func TestWorkGrows(t *testing.T) {
	s := surroundings{nodes: 2, stores: 1 << 30, exchange: 256 << 20}
	for m := range costs {
		require.Less(t, s.work(edgeFor(dist.Hash, 1e6, 4, 4, 1), m), s.work(edgeFor(dist.Hash, 1e7, 4, 4, 1), m), m)
		require.Less(t, s.work(edgeFor(dist.Hash, 1e6, 4, 4, 1), m), s.work(edgeFor(dist.Hash, 1e6, 8, 4, 1), m), m)
		require.Less(t, s.work(edgeFor(dist.Hash, 1e6, 4, 4, 1), m), s.work(edgeFor(dist.Broadcast, 1e6, 4, 4, 1), m), m)
		require.Positive(t, s.work(edgeFor(dist.Hash, 1e300, 4, 4, 1), m))
	}
}
