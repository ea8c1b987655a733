package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore"
)

func TestMemoryTables(t *testing.T) {
	var out bytes.Buffer
	writeMemory(&out, []actors.NodeMemory{
		{Node: "n1", Store: objectstore.Stats{
			Objects: 1003, Bytes: 7 << 20, Inline: objectstore.Tier{Objects: 1000, Bytes: 1 << 20}, Memory: objectstore.Tier{Objects: 1, Bytes: 2 << 20},
			Spilled: objectstore.Tier{Objects: 2, Bytes: 4 << 20}, MemoryLimit: 8 << 20, BytesSpilled: 4 << 20, SpillRate: 1.5e9, Trouble: "disk full",
		}},
		{Node: "n2", Error: "unreachable"},
	})
	text := out.String()
	for _, want := range []string{"7.0 MiB (1,003)", "1.0 MiB (1,000)", "2.0 MiB (1)", "4.0 MiB (2)", "8.0 MiB", "1.5 GB/s", "disk full", "unreachable"} {
		require.Contains(t, text, want)
	}

	out.Reset()
	now := time.Unix(1000, 0)
	writeObjects(&out, []nodeObject{{"n1", objectstore.ObjectInfo{
		ID: objectstore.ID{0xab}, Owner: "job 7", Label: "sort", Holders: []string{"job 7", "reader"}, Size: 3 << 20, Tier: "both", Pins: 2,
		Created: now.Add(-90 * time.Second),
	}}}, now)
	for _, want := range []string{"ab000000", "n1", "3.0 MiB", "both", "job 7", "1m30s", "sort"} {
		require.Contains(t, out.String(), want)
	}
}
