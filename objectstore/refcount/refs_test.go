package refcount

import (
	"testing"

	"pgregory.net/rapid"
)

// Holders are a set and pins a count, whatever the order.
func TestRefs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Refs[int]
		holders, pins := map[int]bool{}, 0
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				h := rapid.IntRange(1, 4).Draw(t, "holder")
				r.Hold(h)
				holders[h] = true
			},
			"release": func(t *rapid.T) {
				h := rapid.IntRange(1, 4).Draw(t, "holder")
				r.Release(h)
				delete(holders, h)
			},
			"pin": func(*rapid.T) { r.Pin(); pins++ },
			"unpin": func(t *rapid.T) {
				if pins == 0 {
					t.Skip("no pin")
				}
				r.Unpin()
				pins--
			},
			"": func(t *rapid.T) {
				if want := len(holders) > 0 || pins > 0; r.Kept() != want {
					t.Fatalf("kept %v with holders %v and %d pins", r.Kept(), holders, pins)
				}
				for h := 1; h <= 4; h++ {
					if r.HeldBy(h) != holders[h] {
						t.Fatalf("held by %d: %v, want %v", h, r.HeldBy(h), holders[h])
					}
				}
			},
		})
	})
}
