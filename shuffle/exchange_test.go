package shuffle

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"manta/objectstore"
)

// Every mode gives every partition exactly its rows, whatever the sizes, and leaves nothing.
func TestExchange(t *testing.T) {
	for _, nodes := range []int{1, 2, 3} {
		for _, limit := range []int64{64 << 10, 64 << 20} {
			c := newCluster(t, nodes, Config{MemoryLimit: limit}, objectstore.Config{MemoryLimit: 32 << 20})
			for _, mode := range Modes {
				for _, partitions := range []int{1, 3, 7} {
					for _, route := range []Route{{Kind: ByColumn}, {Kind: ToAll}, {Kind: To, Partition: partitions - 1}} {
						for _, rows := range []int{1, 400} {
							name := fmt.Sprintf("%d nodes/%d bytes/%s/%d/%v/%d rows", nodes, limit, mode, partitions, route.Kind, rows)
							t.Run(name, func(t *testing.T) {
								c.t = t
								j := c.job()
								w := workload{mode: mode, producers: 3, partitions: partitions, route: route, batches: 5, rows: rows, width: 5, abort: -1}
								o := c.run(context.Background(), j, w)
								c.verify(o)
								j.Finish(nil)
								c.empty()
							})
						}
					}
				}
			}
		}
	}
}

// verify checks rows and counters of a run without early ends.
func (c *cluster) verify(o *outcome) {
	for i, err := range o.writeErrs {
		require.NoError(c.t, err, "producer %d", i)
	}
	var in, out Counters
	for p := range o.got {
		require.NoError(c.t, o.readErrs[p], "reader %d", p)
		require.Equal(c.t, o.want[p], o.got[p], "partition %d", p)
		out.Add(o.readers[p])
	}
	for _, n := range o.writers {
		in.Add(n)
	}
	require.Equal(c.t, in.Rows, out.Rows)
	require.Equal(c.t, in.References, out.References)
	require.Positive(c.t, in.ControlMessages)
}
