package credit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of many readers the first ones take rows before the others are there. They leave to those the memory that is theirs.
func TestShareOfReadersToCome(t *testing.T) {
	const readers, producers, first, share = 64, 2, 4, 16 * MinWindow
	// least is the least that a channel holds once all readers are there and have taken of each.
	least := func(expect int) int64 {
		b := NewBudget(readers*producers*share, 4<<20)
		var all []*Receiver
		arrive := func() {
			all = append(all, NewReceiver(b, producers))
			b.Expect(-min(expect, producers))
		}
		take := func() {
			for _, r := range all {
				for i := range producers {
					tx := Sender{granted: r.ch[i].granted, consumed: r.ch[i].consumed, window: 1, sent: r.ch[i].received, batches: r.ch[i].batches}
					_, err := r.Arrive(i, tx.Send(MinWindow), MinWindow)
					require.NoError(t, err)
					r.Take(i, MinWindow)
				}
			}
		}
		b.Expect(expect)
		for range first {
			arrive()
			take()
		}
		for range readers - first {
			arrive()
		}
		take()
		n := b.Limit()
		for _, r := range all {
			require.NoError(t, r.Check())
			for i := range producers {
				n = min(n, r.ch[i].holds())
			}
		}
		for _, r := range all {
			r.Close()
		}
		require.Zero(t, b.Held())
		return n
	}
	require.EqualValues(t, share, least(readers*producers))
	require.EqualValues(t, MinWindow, least(0), "the first ones leave something without being told to")
}
