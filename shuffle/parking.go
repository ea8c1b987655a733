package shuffle

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// parking moves what waits for a stalled reader to disk when that reader keeps another one waiting.
//
// Readers of one edge need not read in step. A task may finish a join without a look at one of its inputs, because the other
// one is empty for it, and go on to the next join; its neighbour reads that input first. Then the writers of the first input
// wait for the one task, those of the next input for the other, and each task waits for rows that its writers hold back:
// no one would ever go on. So a writer that is full does not wait while one of its readers has taken everything and another
// one takes nothing, or next to nothing: it writes what it has for that one to a file. What waits for the network, or for a
// reader that takes about as much as others, stays in memory. A reader that waits thus always gets what its writers have, and by
// induction from the scans upwards every task goes on.
type parking struct {
	file  *spillFile  // of this writer; nil before it is needed
	since time.Time   // when what readers had taken was noted last
	next  time.Time   // when to look again; zero: nobody waits
	alarm *time.Timer // wakes the writer to do so; nil before it is needed
	lanes []credit.Lane
}

const (
	// jamPatience is over how long readers are compared: what a busy processor explains passes.
	jamPatience = 150 * time.Millisecond
	// jamLook is how often a writer that waits looks for a jam: that takes a look at every lane. Most waits are over before.
	jamLook = 30 * time.Millisecond
)

// parkedPiece is a block of a lane on disk.
type parkedPiece struct {
	ref  *shufflepb.Ref
	sum  uint32 // of its parts
	rows int64
	size int64 // of its Arrow buffers
}

// calm ends the watch over a jam, since the writer goes on.
func (k *parking) calm() {
	if !k.next.IsZero() {
		k.next = time.Time{}
		k.alarm.Stop()
	}
}

// due says whether a writer that is about to wait should look for a jam, and sees to it that it wakes when it next should.
func (k *parking) due(wake chan struct{}) bool {
	now := time.Now()
	first := k.next.IsZero()
	if !first && now.Before(k.next) {
		return false
	}
	k.next = now.Add(jamLook)
	if k.alarm == nil {
		k.alarm = time.AfterFunc(jamLook, func() { poke(wake) })
	} else {
		k.alarm.Reset(jamLook)
	}
	return !first
}

// jammed says whether it is time to park.
func (s *streamSink) jammed() bool {
	k := &s.parking
	if without(disorder) || !k.due(s.w.wake) {
		return false
	}
	k.lanes = k.lanes[:0]
	for i := range s.lanes {
		l := &s.lanes[i]
		n := credit.Lane{Shut: l.shut, Pending: l.stalled(), Parked: l.parked.len() > 0}
		n.Idle = !n.Shut && l.empty() && l.ch.idle()
		k.lanes = append(k.lanes, n)
	}
	if !credit.Jammed(k.lanes) || time.Since(k.since) < jamPatience {
		return false
	}
	if len(s.behind()) > 0 {
		return true
	}
	// Every reader took enough since. From now on, perhaps not.
	k.since = time.Now()
	for i := range s.lanes {
		s.lanes[i].taken = s.lanes[i].ch.taken()
	}
	return false
}

// stalled says that a piece in memory waits for credit.
func (l *lane) stalled() bool { return l.starved && l.fifo.len() > 0 }

// farBehind is how much less than the fastest reader one takes in a jam that keeps others waiting: nothing, or so many times less.
const farBehind = 8

// behind is the stalled lanes of readers that are far behind in a jam, now or before; most of what waits first.
func (s *streamSink) behind() []int {
	most := int64(0)
	for i := range s.lanes {
		most = max(most, s.lanes[i].progress())
	}
	return s.stalled(func(l *lane) bool { return l.parked.len() > 0 || l.progress() == 0 || l.progress() < most/farBehind })
}

// late is the stalled lanes whose readers were far behind in a jam before, and have not taken yet what was parked then. They need
// not keep others waiting once more to be parked again.
func (s *streamSink) late() []int {
	if s.parking.file == nil {
		return nil
	}
	return s.stalled(func(l *lane) bool { return l.parked.len() > 0 })
}

// stalled is the stalled lanes that are such; most of what waits first.
func (s *streamSink) stalled(such func(*lane) bool) (lanes []int) {
	for i := range s.lanes {
		if l := &s.lanes[i]; l.stalled() && such(l) {
			lanes = append(lanes, i)
		}
	}
	slices.SortStableFunc(lanes, func(a, b int) int { return cmp.Compare(s.lanes[b].held(), s.lanes[a].held()) })
	return lanes
}

// progress is the bytes that the reader took since that was noted last.
func (l *lane) progress() int64 { return l.ch.taken() - l.taken }

// held is the bytes in memory that wait.
func (l *lane) held() (n int64) {
	for _, p := range l.fifo.items[l.fifo.head:] {
		n += p.size
	}
	return n
}

// waiting is the lanes with anything in memory.
func (s *streamSink) waiting() (lanes []int) {
	for i := range s.lanes {
		if s.lanes[i].fifo.len() > 0 {
			lanes = append(lanes, i)
		}
	}
	return lanes
}

// park writes what waits on these lanes to disk. It leaves no more than half of limit, if it can, so that what comes next need
// not wait for a disk again at once.
func (s *streamSink) park(lanes []int, limit int64) error {
	k := &s.parking
	if k.file == nil {
		f, err := s.w.job.newFile(s.w.s, fileKey{s.w.edge.ID, uint32(s.producer)})
		if err != nil {
			return err
		}
		k.file = f
	}
	for _, i := range lanes {
		if s.bytes <= limit/2 {
			break
		}
		if err := s.parkLane(&s.lanes[i]); err != nil {
			return fmt.Errorf("shuffle: mode %s: %w", Streaming, err)
		}
	}
	if without(spilling) {
		return nil
	}
	if err := k.file.flush(); err != nil {
		return fmt.Errorf("shuffle: mode %s: %w", Streaming, err)
	}
	return nil
}

func (s *streamSink) parkLane(l *lane) error {
	window, end, _ := l.ch.look()
	if end != credit.Open {
		return nil // pump deals with it
	}
	for l.fifo.len() > 0 {
		p := l.fifo.front()
		if cut := p.cut(window); cut != nil {
			l.fifo.replaceFront(cut)
			continue
		}
		if err := p.encode(s.format); err != nil {
			return err
		}
		ref, err := s.parking.file.appendBlock(p.enc.block.parts)
		if err != nil {
			return err
		}
		s.w.n.BytesSpilled += ref.Size
		s.w.s.spilled.Add(ref.Size)
		l.parked.push(parkedPiece{ref: ref, sum: p.enc.block.checksum(), rows: p.rows, size: p.size})
		l.fifo.pop().drop()
	}
	return nil
}

// sendParked sends the first block from disk, if there is credit.
func (s *streamSink) sendParked(l *lane) (bool, error) {
	if l.far != nil && s.lineFull(l) {
		return false, nil
	}
	p := *l.parked.front()
	seq, ok := l.ch.trySend(p.ref.Size)
	if !ok {
		l.starved = true
		return false, nil
	}
	data, err := s.parking.file.read(s.w.s.mem, p.ref)
	if err != nil {
		return false, fmt.Errorf("shuffle: mode %s: %w", Streaming, err)
	}
	l.parked.pop()
	s.w.sent(p.rows, p.size)
	s.w.n.BytesCopied += p.ref.Size
	if l.queue == nil {
		blk := share(data, func() { s.w.s.mem.Free(data) })
		blk.sum.Store(known(p.sum)) // of parts, where data is in one
		return true, l.far.sendBlock(seq, blk)
	}
	b, err := s.format.decode(s.w.s.mem, data)
	if err != nil {
		return false, fmt.Errorf("shuffle: mode %s: %w", Streaming, err)
	}
	ok, err = l.queue.admit(s.producer, l.ch, seq, p.ref.Size)
	if err != nil || !ok {
		b.Release()
		return true, err
	}
	l.queue.deliver(streamItem{producer: s.producer, cost: p.ref.Size, batch: b})
	return true, nil
}
