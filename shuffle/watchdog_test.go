package shuffle

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

// A job is counted once when everybody waits, and relieved, and not while a reader is merely slow.
func TestWatchdog(t *testing.T) {
	c := newCluster(t, 1, Config{MemoryLimit: 256 << 10, StallAfter: 40 * time.Millisecond}, objectstore.Config{})
	ctx, cancel := context.WithCancelCause(context.Background())
	j := c.job()
	e := c.edge(j, Streaming, 1, 1)
	r, err := c.reader(ctx, e, 0, testSchema)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		done <- func() error {
			w, err := c.writer(ctx, e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
			if err != nil {
				return err
			}
			defer w.Abort(errors.New("test"))
			for {
				b := testBatch(c.mem, 0, 1000, 1, 5)
				err := w.Write(b)
				b.Release()
				if err != nil {
					return err
				}
			}
		}()
	}()
	busy := c.svcs[0]
	jb, err := busy.job(j.ID())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return jb.activity.writers.Load() == 1 }, time.Minute, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	require.Zero(t, busy.Stats().Stalls, "the reader is at work")
	jb.activity.waits.Add(1) // as if it waited for something else
	require.Eventually(t, func() bool { return busy.Stats().Stalls == 1 }, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return busy.Stats().Spilled > 1<<20 }, time.Minute, time.Millisecond, "relieved")
	require.Equal(t, int64(1), busy.Stats().Stalls, "counted once")
	jb.activity.waits.Add(-1)
	cancel(errors.New("test ends"))
	require.Error(t, <-done)
	r.Close()
	j.Finish(nil)
	c.empty()
}
