package objectstore

import (
	"encoding/binary"
	"slices"
)

// flush deletes what is gone from Badger, and with small writes values that are not there. It is called by the
// flush loop only, and by Close when that has ended.
func (sh *shard) flush(small bool) (more bool, err error) {
	sh.mu.Lock()
	if sh.refs.Len() == 0 {
		sh.letGo()
	}
	if small && sh.open != nil && len(sh.dirty) == 0 {
		sh.close(sh.open)
	}
	ops, graves := sh.takeDeletes()
	deletes := len(ops)
	var batch []*segment
	for size := 0; small && len(sh.dirty) > 0 && size < flushBytes; {
		seg := sh.dirty[0]
		sh.dirty = sh.dirty[1:]
		if sh.segments[seg.num] != seg {
			continue // it was given up
		}
		op := sh.encode(seg)
		seg.writing, seg.size = true, int64(len(op.value))
		size += len(op.value)
		batch = append(batch, seg)
		ops = append(ops, op)
		sh.s.indexed.Add(1)
	}
	sh.mu.Unlock()
	if len(ops) > 0 {
		err = sh.s.index.write(ops)
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	if err != nil {
		for _, op := range ops[:deletes] {
			if op.value == nil {
				sh.deletes = append(sh.deletes, op.key)
			}
		}
		for _, seg := range graves {
			seg.deadSaid = 0
		}
		sh.graves = append(sh.graves, graves...)
	}
	for _, seg := range batch {
		sh.written(seg, err)
	}
	if err != nil {
		sh.dirty = append(batch, sh.dirty...)
		return true, err
	}
	if small && sh.s.pressed() && sh.current != nil && sh.current.dirty == 0 {
		sh.retire() // somebody may wait for just this page
	}
	return len(sh.deletes) > 0 || small && len(sh.dirty) > 0 || sh.s.cfg.Recover && sh.open != nil, nil
}

// written takes note of the end of writing a segment. mu held.
func (sh *shard) written(seg *segment, err error) {
	seg.writing = false
	if err != nil {
		sh.s.indexed.Add(-1)
		seg.dead = nil
		if seg.live == 0 {
			sh.bury(seg)
		}
		return
	}
	seg.slots = nil
	sh.enterStore(seg, seg.values)
	sh.unsaved.Add(-seg.bytes)
	if p := seg.page; p != nil {
		p.dirty--
	}
	if seg.live == 0 && !seg.kept {
		sh.bury(seg)
		return
	}
	if p := seg.page; p != nil {
		sh.settle(p)
	}
	if len(seg.dead) > 0 {
		sh.graves = append(sh.graves, seg)
		kick(sh.s.flushKick)
	}
}

// encode makes a segment's entry, and settles the checksums of its values. mu held.
func (sh *shard) encode(seg *segment) indexOp {
	image := make([]byte, seg.end-seg.base, (seg.end-seg.base)+seg.live*dirEntry+256)
	copy(image, seg.page.buf[seg.base:seg.end])
	items := make([]dirItem, 0, seg.live)
	for _, slot := range seg.slots {
		if !sh.refs.Used(slot) || sh.refs.Value(slot).segment != seg.num || !sh.refs.Live(slot) {
			continue // freed, and the slot may be another's by now; or doomed, and not to come back
		}
		v := sh.refs.Value(slot)
		off := v.off - uint32(seg.base)
		v.sum = checksum32(image[off : off+v.size])
		items = append(items, dirItem{id: sh.refs.Key(slot), off: off, size: v.size, sum: v.sum, owner: sh.refs.Owner(slot)})
	}
	slices.SortFunc(items, func(a, b dirItem) int { return int(a.off) - int(b.off) })
	items = slices.CompactFunc(items, func(a, b dirItem) bool { return a.id == b.id })
	seg.values = max(len(items), 1)
	return indexOp{key: segmentKey(sh.num, seg.seq), value: appendDirectory(image, items)}
}

// takeDeletes returns what is to be said about values that are gone. mu held.
func (sh *shard) takeDeletes() (ops []indexOp, graves []*segment) {
	for _, key := range sh.deletes {
		ops = append(ops, indexOp{key: key})
	}
	sh.deletes = nil
	for _, seg := range sh.graves {
		if sh.segments[seg.num] != seg || len(seg.dead) == seg.deadSaid {
			continue
		}
		b := make([]byte, 0, 4*len(seg.dead))
		for _, off := range seg.dead {
			b = binary.LittleEndian.AppendUint32(b, off)
		}
		seg.deadSaid = len(seg.dead)
		graves = append(graves, seg)
		ops = append(ops, indexOp{key: deadKey(sh.num, seg.seq), value: b})
	}
	sh.graves = nil
	return ops, graves
}
