package shuffle

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

// References travel several to a message, and no actor knows of more than its own edges' ends: a partition's queue of its
// producers, a writer of its partitions, whatever the number of blocks.
func TestReferencesShareMessages(t *testing.T) {
	const producers, partitions, batches = 6, 5, 60
	for _, mode := range []Mode{ObjectStore, Disk} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
			j := c.job()
			w := workload{mode: mode, producers: producers, partitions: partitions, route: Route{Kind: ByColumn}, batches: batches, rows: 200, width: 5, abort: -1}
			var o *outcome
			within(t, time.Minute, func() { o = c.run(context.Background(), j, w) })
			var references, messages, blocks int64
			for i, n := range o.writers {
				require.NoError(t, o.writeErrs[i])
				references += n.References
				messages += n.ControlMessages
				blocks += n.Batches
			}
			require.LessOrEqual(t, references, blocks)
			if mode == Disk { // all at the end of a channel
				require.Equal(t, int64(producers*partitions), messages)
			} else { // whatever gathers while a message is under way
				require.GreaterOrEqual(t, messages, int64(producers*partitions))
				require.Less(t, messages, references)
			}
			// The state of each queue actor: a record for each producer, and no reference once all are read.
			for _, s := range c.svcs {
				jb, err := s.job(j.ID())
				require.NoError(t, err)
				jb.mu.Lock()
				for k, q := range jb.refs {
					require.Less(t, int(k.partition), partitions)
					q.mu.Lock()
					require.Len(t, q.channels, producers)
					require.Zero(t, q.refs.len())
					q.mu.Unlock()
				}
				jb.mu.Unlock()
			}
			t.Logf("%d references in %d messages over %d channels", references, messages, producers*partitions)
			for p := range partitions {
				require.NoError(t, o.readErrs[p])
				require.Equal(t, o.want[p], o.got[p])
			}
			j.Finish(nil)
			c.empty()
		})
	}
}
