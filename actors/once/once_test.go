package once

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOutbox(t *testing.T) {
	var o Outbox
	require.Equal(t, uint64(1), o.Settled())
	require.Equal(t, uint64(1), o.Open())
	require.Equal(t, uint64(2), o.Open())
	require.Equal(t, uint64(3), o.Open())
	o.Settle(2)
	require.Equal(t, uint64(1), o.Settled(), "1 is waited for")
	require.Equal(t, 2, o.Waiting())
	o.Settle(1)
	o.Settle(1)
	require.Equal(t, uint64(3), o.Settled())
	o.Settle(9) // never opened
	require.Equal(t, 1, o.Waiting())
	o.Settle(3)
	require.Equal(t, uint64(4), o.Settled())
	require.Zero(t, o.Waiting())
	require.Empty(t, o.done)
}

func TestInbox(t *testing.T) {
	var in Inbox[string]
	accept := func(request, mark uint64) (Verdict, string) { return in.Accept(request, mark, 100) }
	v, _ := accept(1, 1)
	require.Equal(t, Run, v)
	v, _ = accept(1, 1)
	require.Equal(t, Wait, v)
	require.True(t, in.Reply(1, "one"))
	v, r := accept(1, 1)
	require.Equal(t, Replay, v)
	require.Equal(t, "one", r)

	v, _ = accept(0, 1)
	require.Equal(t, Drop, v, "numbers start at 1")
	v, _ = accept(3, 2)
	require.Equal(t, Run, v)
	v, _ = accept(1, 1)
	require.Equal(t, Drop, v, "1 was settled")
	require.False(t, in.Reply(1, "again"))
	require.Equal(t, 1, in.Len())

	in.Expire(200)
	require.True(t, in.Reply(3, "three"), "it runs for longer than its deadline")
	in.Expire(200)
	v, _ = accept(3, 2)
	require.Equal(t, Drop, v, "it must not run again")
	_, _ = accept(9, 1<<40)
	require.Zero(t, in.Len(), "a mark far ahead is not walked to")
}

// TestChannel runs a sender and a receiver over a channel that loses, repeats and
// reorders. Every request runs at most once; one that is answered ran, and gets its
// own reply; what the receiver remembers is never more than the sender waits for at once.
func TestChannel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		loss := rapid.Float64Range(0, 0.6).Draw(t, "loss")
		repeat := rapid.Float64Range(0, 0.6).Draw(t, "repeat")

		type message struct {
			reply           bool
			request, mark   uint64
			value, deadline int64
		}
		var (
			out      Outbox
			in       Inbox[int64]
			wire     []message
			waiting  = map[uint64]bool{}
			ran      = map[uint64]int{}
			pending  []uint64 // run, not yet replied
			answered int
			peak     int
		)
		post := func(m message) {
			for range 2 {
				if rng.Float64() >= loss {
					wire = append(wire, m)
				}
				if rng.Float64() >= repeat {
					return
				}
			}
		}
		send := func(request uint64) { post(message{request: request, mark: out.Settled(), deadline: 1 << 60}) }
		deliver := func() {
			if len(wire) == 0 {
				return
			}
			i := rng.IntN(len(wire))
			m := wire[i]
			wire = append(wire[:i], wire[i+1:]...)
			if m.reply {
				if waiting[m.request] {
					require.Equal(t, int64(m.request)*7, m.value)
					require.Equal(t, 1, ran[m.request])
					delete(waiting, m.request)
					out.Settle(m.request)
					answered++
				}
				return
			}
			switch verdict, reply := in.Accept(m.request, m.mark, m.deadline); verdict {
			case Run:
				ran[m.request]++
				require.Equal(t, 1, ran[m.request], "request %d ran again", m.request)
				pending = append(pending, m.request)
			case Replay:
				post(message{reply: true, request: m.request, value: reply})
			}
		}
		finish := func() {
			if len(pending) == 0 {
				return
			}
			i := rng.IntN(len(pending))
			r := pending[i]
			pending = append(pending[:i], pending[i+1:]...)
			if in.Reply(r, int64(r)*7) {
				post(message{reply: true, request: r, value: int64(r) * 7})
			}
		}
		for range 400 {
			switch rng.IntN(8) {
			case 0, 1:
				if len(waiting) < 8 {
					r := out.Open()
					waiting[r] = true
					send(r)
				}
			case 2:
				for r := range waiting { // any one, again
					send(r)
					break
				}
			case 3:
				if rng.IntN(4) == 0 {
					for r := range waiting { // give up
						delete(waiting, r)
						out.Settle(r)
						break
					}
				}
			case 4:
				finish()
			default:
				deliver()
			}
			require.Equal(t, len(waiting), out.Waiting())
			peak = max(peak, in.Len())
		}
		// In the end a channel that works brings every answer.
		loss = 0
		for round := 0; len(waiting) > 0; round++ {
			require.Less(t, round, 1000)
			for r := range waiting {
				send(r)
			}
			for len(wire)+len(pending) > 0 {
				deliver()
				finish()
			}
		}
		// The next request carries the mark that lets the receiver forget.
		send(out.Open())
		for len(wire) > 0 {
			deliver()
		}
		require.Equal(t, 1, in.Len())
		require.Equal(t, 1, out.Waiting())
	})
}
