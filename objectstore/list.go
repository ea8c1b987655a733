package objectstore

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"manta/objectstore/refcount"
)

// ObjectInfo describes one object.
type ObjectInfo struct {
	ID      ID        `json:"id"`
	Owner   string    `json:"owner"`             // the job for which it was made
	Label   string    `json:"label,omitempty"`   // what made it; see Writer.Label
	Holders []string  `json:"holders,omitempty"` // who keeps it; none when only a reader does
	Size    int64     `json:"size_bytes"`
	Tier    string    `json:"tier"` // "memory", "disk", or "both"; small values on disk are in Badger
	Small   bool      `json:"small,omitempty"`
	Copy    bool      `json:"copy,omitempty"` // of what another store keeps
	Pins    int       `json:"pins"`
	Created time.Time `json:"created"` // of a small value: when the first of its neighbours was made
}

// listChunk is how many objects are described while a lock is held.
const listChunk = 1024

// Objects goes over all objects, those too that are only pinned. It is not a snapshot: what is made or freed
// meanwhile may be missed or not, but nothing that is there all the while is.
func (s *Store) Objects() iter.Seq[ObjectInfo] {
	return func(yield func(ObjectInfo) bool) {
		var chunk []ObjectInfo
		each := func(list func(from refcount.Slot) refcount.Slot) bool {
			for from := refcount.Slot(1); from != 0; {
				chunk = chunk[:0]
				from = list(from)
				for _, o := range chunk {
					if !yield(o) {
						return false
					}
				}
			}
			return true
		}
		if !each(func(from refcount.Slot) refcount.Slot {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.refs.All(from, listChunk, func(slot refcount.Slot) { chunk = append(chunk, s.infoLarge(slot)) })
		}) {
			return
		}
		for _, sh := range s.shards {
			if !each(func(from refcount.Slot) refcount.Slot {
				sh.mu.Lock()
				defer sh.mu.Unlock()
				return sh.refs.All(from, listChunk, func(slot refcount.Slot) { chunk = append(chunk, sh.info(slot)) })
			}) {
				return
			}
		}
	}
}

func tierName(memory, disk bool) string {
	switch {
	case memory && disk:
		return "both"
	case memory:
		return "memory"
	}
	return "disk"
}

// infoLarge describes the object in a slot. mu held.
func (s *Store) infoLarge(slot refcount.Slot) ObjectInfo {
	e := *s.refs.Value(slot)
	return ObjectInfo{
		ID: e.id, Owner: e.owner, Label: e.label, Holders: s.refs.Holders(slot), Size: e.size, Tier: tierName(e.buf != nil, e.loc != nil),
		Copy: e.secondary, Pins: s.refs.Pins(slot), Created: e.born,
	}
}

// info describes the object in a slot. mu held.
func (sh *shard) info(slot refcount.Slot) ObjectInfo {
	v := *sh.refs.Value(slot)
	seg := sh.segments[v.segment]
	memory := seg.page != nil && seg.page.readers.Load() >= 0
	if c, ok := seg.hot[v.off]; ok && c.page.readers.Load() >= 0 {
		memory = true
	}
	return ObjectInfo{
		ID: sh.refs.Key(slot), Owner: sh.refs.Owner(slot), Label: sh.s.labels.text(v.label), Holders: sh.refs.Holders(slot), Size: int64(v.size),
		Tier: tierName(memory, seg.stored), Small: true, Pins: sh.refs.Pins(slot), Created: seg.born,
	}
}

// Largest describes the largest objects, at most limit, the largest first.
func (s *Store) Largest(limit int) (list []ObjectInfo) {
	trim := func() {
		slices.SortStableFunc(list, func(a, b ObjectInfo) int { return cmp.Compare(b.Size, a.Size) })
		list = list[:min(len(list), limit)]
	}
	for o := range s.Objects() {
		if list = append(list, o); len(list) >= 2*limit+listChunk {
			trim()
		}
	}
	trim()
	return list
}
