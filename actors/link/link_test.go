package link

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever a way loses, repeats and reorders, messages come out in order, each once; and once it loses nothing, all do.
func TestLink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Sender[int]
		var r Receiver[int]
		type packet struct {
			seq uint64
			m   int
		}
		var way []packet
		pushed, got := 0, 0
		take := func(p packet) {
			for _, m := range r.Accept(p.seq, p.m) {
				if m != got {
					t.Fatalf("%d came, not %d", m, got)
				}
				got++
			}
		}
		send := func(limit int) {
			first, ms := s.Next(limit)
			for i, m := range ms {
				way = append(way, packet{first + uint64(i), m})
			}
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "op") {
			case 0, 1:
				s.Push(pushed)
				pushed++
			case 2:
				send(rapid.IntRange(1, 5).Draw(t, "limit"))
			case 3:
				if len(way) > 0 { // any of them, perhaps again
					i := rapid.IntRange(0, len(way)-1).Draw(t, "which")
					take(way[i])
					if rapid.Bool().Draw(t, "gone") {
						way = append(way[:i], way[i+1:]...)
					}
				}
			case 4:
				s.Ack(r.Ack())
			case 5:
				s.Ack(uint64(rapid.IntRange(0, int(r.Ack())).Draw(t, "old ack")))
			case 6:
				s.Rewind()
			}
			if s.Open() < pushed-got {
				t.Fatalf("%d of %d are on the way, %d kept", pushed-got, pushed, s.Open())
			}
		}
		s.Rewind()
		way = nil
		for s.Unsent() > 0 {
			send(3)
		}
		for _, p := range way {
			take(p)
		}
		s.Ack(r.Ack())
		if got != pushed || s.Open() != 0 {
			t.Fatalf("%d of %d came, %d are kept", got, pushed, s.Open())
		}
	})
}
