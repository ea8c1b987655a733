package store

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(context.Background(), Options{
		Dir: dir, Sizes: []int64{100, 10 << 10, 1 << 20}, Callers: []int{1, 2}, Rounds: 1, Round: time.Millisecond,
		Spill: 32 << 20, Objects: 20_000, Through: 80 << 20,
	})
	require.NoError(t, err)
	require.Len(t, r.Results, 6)
	for _, x := range r.Results {
		require.Positive(t, x.MemcpyGBps)
		require.Positive(t, x.PutGBps)
		require.Positive(t, x.GetGBps)
		require.Positive(t, x.DiskWriteGBps)
		require.Positive(t, x.DiskReadGBps)
		require.Positive(t, x.SpillGBps)
		require.Positive(t, x.RestoreGBps)
		require.Zero(t, x.GetCopiesBytes)
		require.Equal(t, x.ValueBytes <= smallMax, x.SmallPutPerS > 0)
		require.Equal(t, x.ValueBytes <= smallMax, x.SmallGetPerS > 0)
	}
	require.LessOrEqual(t, r.Many.MemoryPeak, r.Many.MemoryLimit)
	require.Zero(t, r.Many.DiskAfter)
	require.Zero(t, r.Through.DiskAfter)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

var long = flag.Bool("long", false, "also write 10 GiB and keep ten million values")

// Ten times the memory, written and read back whole, and ten million values: within the limits that were set.
func TestLimitsHold(t *testing.T) {
	through, objects := int64(160<<20), int64(100_000)
	if *long {
		through, objects = 10<<30, 10_000_000
	}
	ctx := context.Background()
	resetPeak()
	x, err := measureThrough(ctx, t.TempDir()+"/store", through)
	require.NoError(t, err)
	t.Logf("%+v", *x)
	require.Zero(t, x.DiskAfter)
	m, err := measureMany(ctx, t.TempDir()+"/store", objects)
	require.NoError(t, err)
	t.Logf("%+v", *m)
	require.LessOrEqual(t, m.MemoryPeak, m.MemoryLimit)
	require.Zero(t, m.DiskAfter)
	if *long { // of so much, what the test itself takes is little
		require.LessOrEqual(t, x.PeakRSSMiB, 1.3*float64(x.MemoryLimit>>20))
		require.Less(t, m.RSSBytes, 200.0)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, Options{Dir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}
