package objectstore

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// modelStore is the store as a map.
type modelStore struct {
	objects map[ID]*modelObject
	order   []ID // of objects, so that rapid can choose one
}

type modelObject struct {
	value   []byte
	owner   string
	holders map[string]bool
	pins    []*Object
}

func (m *modelStore) forget(id ID) {
	o := m.objects[id]
	if len(o.holders) > 0 || len(o.pins) > 0 {
		return
	}
	delete(m.objects, id)
	for i := range m.order {
		if m.order[i] == id {
			m.order = append(m.order[:i], m.order[i+1:]...)
			break
		}
	}
}

func TestStoreIsAMap(t *testing.T) {
	var spills, restores, evictions int64
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 128 << 10
		cfg := Config{
			Dir: t.TempDir(), MemoryLimit: limit, InlineMax: 300, flushWindow: time.Nanosecond, Wait: 20 * time.Second,
			SpillFile:    rapid.Int64Range(1, 300_000).Draw(rt, "file size"),
			SpillWriters: rapid.IntRange(1, 3).Draw(rt, "spill writers"),
			Recover:      rapid.Bool().Draw(rt, "recover"),
			Shared:       rapid.Bool().Draw(rt, "shared"),
			logFile:      2 << 20,
		}
		cfg.sharedIn = []string{cfg.Dir}
		s, err := Open(cfg)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, s.Close()) }()
		m := modelStore{objects: map[ID]*modelObject{}}
		job, seed := 0, uint64(0)
		defer func() {
			st := s.Stats()
			spills, restores, evictions = spills+st.Spills, restores+st.Restores, evictions+st.Evictions
		}()
		pinned := int64(0)
		some := func(rt *rapid.T) (ID, *modelObject) {
			if len(m.order) == 0 {
				rt.Skip("no objects")
			}
			id := m.order[rapid.IntRange(0, len(m.order)-1).Draw(rt, "object")]
			return id, m.objects[id]
		}
		holder := rapid.SampledFrom([]string{"a", "b", "job 0", "job 1"})
		added := func(id ID, v []byte) {
			owner := fmt.Sprintf("job %d", job)
			m.objects[id] = &modelObject{value: v, owner: owner, holders: map[string]bool{owner: true}}
			m.order = append(m.order, id)
		}
		sizes := rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(300, 60_000), rapid.IntRange(limit+1, limit+5000))
		newValue := func(rt *rapid.T) []byte {
			seed++
			return value(seed, sizes.Draw(rt, "size"))
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": func(rt *rapid.T) {
				v := newValue(rt)
				id, err := s.Put(fmt.Sprintf("job %d", job), v)
				require.NoError(rt, err)
				added(id, v)
			},
			"fill": func(rt *rapid.T) { // so that most values are on disk, and some in memory too
				for range rapid.IntRange(3, 8).Draw(rt, "values") {
					seed++
					v := value(seed, 20_000)
					id, err := s.Put(fmt.Sprintf("job %d", job), v)
					require.NoError(rt, err)
					added(id, v)
				}
			},
			"write": func(rt *rapid.T) {
				v := newValue(rt)
				w, err := s.Create(fmt.Sprintf("job %d", job), int64(len(v)))
				require.NoError(rt, err)
				cut := rapid.IntRange(0, len(v)).Draw(rt, "cut")
				_, err = w.Write(v[:cut])
				require.NoError(rt, err)
				if rapid.Bool().Draw(rt, "abort") {
					w.Abort()
					return
				}
				_, err = w.Write(v[cut:])
				require.NoError(rt, err)
				id, err := w.Seal()
				require.NoError(rt, err)
				added(id, v)
			},
			"get": func(rt *rapid.T) {
				id, want := some(rt)
				need := capacityFor(int64(len(want.value)), limit)
				if id.small() {
					need = s.pageFor(len(want.value)) // its neighbours stay with it
				}
				if len(want.holders) > 0 && need > limit {
					_, err := s.Get(id)
					if err != nil { // it may be in memory only if it was never too large
						require.ErrorIs(rt, err, ErrFull)
					}
					return
				}
				o, err := s.Get(id)
				if len(want.holders) == 0 {
					require.ErrorIs(rt, err, ErrNotFound)
					return
				}
				require.NoError(rt, err)
				require.True(rt, bytes.Equal(want.value, o.Bytes()))
				// With at most half of the memory pinned every value that fits must always be readable.
				if pinned+need > limit/2 || rapid.Bool().Draw(rt, "release at once") {
					o.Release()
					return
				}
				pinned += need
				want.pins = append(want.pins, o)
			},
			"stream": func(rt *rapid.T) {
				id, want := some(rt)
				r, err := s.NewReader(id)
				if len(want.holders) == 0 {
					require.ErrorIs(rt, err, ErrNotFound)
					return
				}
				require.NoError(rt, err)
				got, err := io.ReadAll(r)
				require.NoError(rt, err)
				require.True(rt, bytes.Equal(want.value, got))
				require.NoError(rt, r.Close())
			},
			"unpin": func(rt *rapid.T) {
				id, o := some(rt)
				if len(o.pins) == 0 {
					rt.Skip("not pinned")
				}
				require.True(rt, bytes.Equal(o.value, o.pins[0].Bytes()))
				o.pins[0].Release()
				o.pins = o.pins[1:]
				if id.small() {
					pinned -= s.pageFor(len(o.value))
				} else {
					pinned -= capacityFor(int64(len(o.value)), limit)
				}
				m.forget(id)
			},
			"hold": func(rt *rapid.T) {
				id, o := some(rt)
				h := holder.Draw(rt, "holder")
				err := s.Hold(id, h)
				if len(o.holders) == 0 {
					require.ErrorIs(rt, err, ErrNotFound)
					return
				}
				require.NoError(rt, err)
				o.holders[h] = true
			},
			"release": func(rt *rapid.T) {
				id, o := some(rt)
				h := rapid.OneOf(holder, rapid.Just(o.owner)).Draw(rt, "holder")
				err := s.Release(id, h)
				switch {
				case len(o.holders) == 0:
					require.ErrorIs(rt, err, ErrNotFound)
				case !o.holders[h]:
					require.ErrorIs(rt, err, ErrNotHeld)
				default:
					require.NoError(rt, err)
					delete(o.holders, h)
					m.forget(id)
				}
			},
			"reopen": func(rt *rapid.T) {
				if !cfg.Recover || rapid.IntRange(0, 3).Draw(rt, "rarely") > 0 {
					rt.Skip("not now")
				}
				require.NoError(rt, s.Close())
				for _, id := range append([]ID(nil), m.order...) {
					o := m.objects[id]
					for _, pin := range o.pins {
						require.True(rt, bytes.Equal(o.value, pin.Bytes()), "pinned bytes outlive the store")
						pin.Release()
					}
					o.pins = nil
					if len(o.holders) > 0 { // others than the owner are not known any more
						o.holders = map[string]bool{o.owner: true}
					}
					m.forget(id)
				}
				pinned = 0
				s, err = Open(cfg)
				require.NoError(rt, err)
				require.Empty(rt, s.Recovery().Lost)
			},
			"delete": func(rt *rapid.T) {
				id, o := some(rt)
				err := s.Delete(id)
				if len(o.holders) == 0 {
					require.ErrorIs(rt, err, ErrNotFound)
					return
				}
				require.NoError(rt, err)
				o.holders = nil
				m.forget(id)
			},
			"list": func(rt *rapid.T) {
				n := 0
				for o := range s.Objects() {
					n++
					want := m.objects[o.ID]
					require.NotNil(rt, want)
					require.Equal(rt, want.owner, o.Owner)
					require.Equal(rt, int64(len(want.value)), o.Size)
					require.Len(rt, o.Holders, len(want.holders))
					require.Equal(rt, len(want.pins), o.Pins)
				}
				require.Equal(rt, len(m.objects), n)
			},
			"end job": func(rt *rapid.T) {
				if rapid.IntRange(0, 4).Draw(rt, "rarely") > 0 {
					rt.Skip("not now")
				}
				owner := fmt.Sprintf("job %d", job)
				job++
				s.ReleaseOwner(owner)
				for _, id := range append([]ID(nil), m.order...) {
					if m.objects[id].owner == owner {
						m.objects[id].holders = nil
						m.forget(id)
					}
				}
			},
			"": func(rt *rapid.T) {
				settle(s)
				check(rt, s)
				var size int64
				for _, o := range m.objects {
					size += int64(len(o.value))
				}
				st := s.Stats()
				require.Equal(rt, int64(len(m.objects)), st.Objects)
				require.Equal(rt, size, st.Bytes)
				require.Equal(rt, st.Objects, st.Inline.Objects+st.Memory.Objects+st.Spilled.Objects)
				require.Equal(rt, st.Bytes, st.Inline.Bytes+st.Memory.Bytes+st.Spilled.Bytes)
				require.LessOrEqual(rt, st.MemoryPeak, int64(limit))
			},
		})
		for i := range job + 1 {
			s.ReleaseOwner(fmt.Sprintf("job %d", i))
		}
		for _, o := range m.objects {
			releaseAll(o.pins)
		}
		deadline := time.Now().Add(10 * time.Second)
		for st := s.Stats(); st.Objects+st.MemoryUsed+st.DiskBytes+st.DiskFiles > 0; st = s.Stats() {
			require.True(rt, time.Now().Before(deadline), "not empty: %+v", st)
			time.Sleep(100 * time.Microsecond)
		}
		check(rt, s)
	})
	t.Logf("%d spills, %d restores, %d evictions", spills, restores, evictions)
}

func TestBudget(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := budget{limit: 100}
		var line []*waiter
		var taken []int64
		settle := func() {
			for len(line) > 0 && line[0].done {
				require.NoError(rt, line[0].err)
				taken = append(taken, line[0].need)
				line = line[1:]
			}
		}
		need := rapid.Int64Range(1, 100)
		rt.Repeat(map[string]func(*rapid.T){
			"ask": func(rt *rapid.T) {
				n := need.Draw(rt, "need")
				if b.take(n) {
					require.Empty(rt, line, "overtook the line")
					taken = append(taken, n)
					return
				}
				line = append(line, b.queue(n, rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "owner")))
			},
			"give": func(rt *rapid.T) {
				if len(taken) == 0 {
					rt.Skip()
				}
				i := rapid.IntRange(0, len(taken)-1).Draw(rt, "which")
				n := taken[i]
				taken = append(taken[:i], taken[i+1:]...)
				b.give(n)
				settle()
			},
			"fail": func(rt *rapid.T) {
				b.fail(func(w *waiter) bool { return w.owner == "x" }, ErrOwnerEnded)
				var rest []*waiter
				for _, w := range line {
					if w.owner == "x" {
						require.ErrorIs(rt, w.err, ErrOwnerEnded)
					} else {
						rest = append(rest, w)
					}
				}
				line = rest
				settle()
			},
			"": func(rt *rapid.T) {
				sum := int64(0)
				for _, n := range taken {
					sum += n
				}
				require.Equal(rt, sum, b.used)
				require.LessOrEqual(rt, b.peak, b.limit)
				require.Equal(rt, len(line), len(b.line))
				for i, w := range line {
					require.Same(rt, w, b.line[i], "order of arrival")
					require.False(rt, w.done)
				}
				if len(line) > 0 {
					require.Greater(rt, b.used+line[0].need, b.limit, "the head could be served")
				}
			},
		})
	})
}

func TestCapacity(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int64Range(0, 1<<32).Draw(rt, "n")
		limit := rapid.Int64Range(n+pageSize, 1<<33).Draw(rt, "limit")
		c := capacityFor(n, limit)
		require.GreaterOrEqual(rt, c, n)
		require.LessOrEqual(rt, c, limit)
		require.Zero(rt, c%pageSize)
		require.LessOrEqual(rt, c-n, max(n/8, pageSize))
	})
}
