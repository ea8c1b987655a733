package planner

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever tasks come and go, and however often an instance cannot give memory
// back, the two never have more than there is, and each has its least.
func TestMemoryShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const total = 1000
		stuck := [2]bool{}
		var set [2]int64
		m := &memory{total: total, now: [2]int64{most(total), least(total)}}
		set = m.now
		for k := range m.limit {
			m.limit[k] = func(bytes int64) error {
				if stuck[k] && bytes < set[k] {
					return errors.New("in use")
				}
				set[k] = bytes
				return nil
			}
		}
		var running []kind
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			stuck[rapid.IntRange(0, 1).Draw(t, "instance")] = rapid.Bool().Draw(t, "stuck")
			if len(running) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(running)-1).Draw(t, "task")
				m.end(running[i])
				running = append(running[:i], running[i+1:]...)
			} else {
				k := kind(rapid.IntRange(0, 1).Draw(t, "kind"))
				m.begin(k)
				running = append(running, k)
			}
			require.Equal(t, m.now, set)
			require.LessOrEqual(t, set[0]+set[1], int64(total))
			require.GreaterOrEqual(t, min(set[0], set[1]), least(total))
			if want, change := shares(total, m.active); change && !stuck[0] && !stuck[1] {
				require.Equal(t, want, set)
			}
		}
	})
}
