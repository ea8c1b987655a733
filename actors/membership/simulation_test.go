package membership

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSimulation runs a head and workers on a network that loses and delays
// heartbeats, by seed. Workers are killed and others join. A worker that lives and
// whose heartbeats get through often enough is never declared dead; a killed one is
// dead for the head within the lease and a tick of its last heartbeat, which is
// under 5 s after it was killed.
func TestSimulation(t *testing.T) {
	const (
		step      = 50 * time.Millisecond
		heartbeat = time.Second
		tick      = 200 * time.Millisecond
		maxDelay  = 400 * time.Millisecond
	)
	type worker struct {
		id       string
		phase    time.Duration
		lostLast bool // a heartbeat was lost: the next one is not
		killed   time.Duration
	}
	type flight struct {
		at time.Duration
		id string
	}
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 0))
		table := New(Config{Suspect: 2 * time.Second, Lease: 3 * time.Second})
		var workers []*worker
		var air []flight
		died := map[string]time.Duration{}
		join := func(now time.Duration) {
			w := &worker{id: fmt.Sprintf("w%d", len(workers)), phase: time.Duration(rng.Int64N(int64(heartbeat/step))) * step}
			_, err := table.Join(now, w.id, "host:"+w.id, false)
			require.NoError(t, err)
			workers = append(workers, w)
		}
		for range 5 {
			join(0)
		}
		for now := step; now < 40*time.Second; now += step {
			for _, w := range workers {
				if w.killed > 0 || (now-w.phase)%heartbeat != 0 {
					continue
				}
				if !w.lostLast && rng.IntN(4) == 0 {
					w.lostLast = true
					continue
				}
				w.lostLast = false
				air = append(air, flight{now + time.Duration(rng.Int64N(int64(maxDelay/step)))*step, w.id})
			}
			rest := air[:0]
			for _, f := range air {
				if f.at > now {
					rest = append(rest, f)
					continue
				}
				_, err := table.Heartbeat(now, f.id)
				if err != nil {
					require.ErrorIs(t, err, ErrDead)
					require.Contains(t, died, f.id)
				}
			}
			air = rest
			if now%tick == 0 {
				for _, e := range table.Tick(now) {
					if e.To == Dead {
						died[e.ID] = now
					}
				}
			}
			if rng.IntN(80) == 0 {
				join(now)
			}
			if rng.IntN(80) == 0 {
				if w := workers[rng.IntN(len(workers))]; w.killed == 0 {
					w.killed = now
				}
			}
			for _, w := range workers {
				at, dead := died[w.id]
				switch {
				case w.killed == 0:
					require.False(t, dead, "seed %d: %s lives and is declared dead", seed, w.id)
				case dead:
					require.Less(t, at-w.killed, 5*time.Second)
				default:
					require.Less(t, now-w.killed, 5*time.Second, "seed %d: %s is not missed", seed, w.id)
				}
			}
		}
	}
}
