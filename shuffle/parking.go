package shuffle

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/shuffle/credit"
	"manta/shuffle/shufflepb"
)

// parking moves what waits for a stalled reader to disk when that reader keeps another one waiting.
//
// Readers of one edge need not read in step. A task may finish a join without a look at one of its inputs, because the other
// one is empty for it, and go on to the next join; its neighbour reads that input first. Then the writers of the first input
// wait for the one task, those of the next input for the other, and each task waits for rows that its writers hold back:
// no one would ever go on. So a writer that is full does not wait while one of its readers has taken everything and another
// one takes nothing. A reader that waits thus always gets what its writers have, and by induction from the scans upwards
// every task goes on.
type parking struct {
	file  *spillFile  // of this writer; nil before it is needed
	since time.Time   // when the jam was first seen; zero: there is none
	alarm *time.Timer // wakes the writer to look again
	lanes []credit.Lane
}

// jamPatience is how long a jam must last: one that a busy processor explains passes.
const jamPatience = 300 * time.Millisecond

// parkedPiece is a block of a lane on disk.
type parkedPiece struct {
	ref  *shufflepb.Ref
	rows int64
	size int64 // of its Arrow buffers
}

// calm ends the watch over a jam.
func (k *parking) calm() {
	k.since = time.Time{}
	if k.alarm != nil {
		k.alarm.Stop()
		k.alarm = nil
	}
}

// jammed says whether it is time to park. If one reader waits for another one it makes sure that the writer looks again.
func (s *streamSink) jammed() bool {
	k := &s.parking
	parked := false
	k.lanes = k.lanes[:0]
	for i := range s.lanes {
		l := &s.lanes[i]
		n := credit.Lane{Shut: l.shut, Pending: l.fifo.len() > 0, Parked: l.parked.len() > 0}
		n.Idle = !n.Shut && !n.Pending && !n.Parked && l.ch.idle()
		k.lanes = append(k.lanes, n)
		parked = parked || n.Parked
	}
	switch {
	case without(disorder) || !credit.Jammed(k.lanes):
		k.calm()
		return false
	case parked: // the jam lasts
		return true
	case k.since.IsZero():
		k.since = time.Now()
		k.alarm = time.AfterFunc(jamPatience, func() { poke(s.w.wake) })
		return false
	}
	return time.Since(k.since) >= jamPatience
}

// park writes everything that waits for credit to disk.
func (s *streamSink) park() error {
	k := &s.parking
	if k.file == nil {
		f, err := s.w.job.newFile(s.w.s, fileKey{s.w.edge.ID, uint32(s.producer)})
		if err != nil {
			return err
		}
		k.file = f
	}
	for i := range s.lanes {
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
		ref, err := s.write(p)
		if err != nil {
			return err
		}
		s.w.n.BytesSpilled += ref.Size
		s.w.s.spilled.Add(ref.Size)
		l.parked.push(parkedPiece{ref: ref, rows: p.rows, size: p.size})
		l.fifo.pop().drop()
	}
	return nil
}

// write appends a piece to the file, as the block that it is or will be.
func (s *streamSink) write(p *piece) (*shufflepb.Ref, error) {
	if p.enc.block != nil {
		return s.parking.file.appendBlock(p.enc.block.parts)
	}
	return s.parking.file.append(s.w.s.mem, s.w.opts.Schema, []arrow.RecordBatch{p.batch})
}

// sendParked sends the first block from disk, if there is credit.
func (s *streamSink) sendParked(l *lane) (bool, error) {
	if l.far != nil && l.far.l.full(s.w.wake) {
		return false, nil
	}
	p := *l.parked.front()
	seq, ok := l.ch.trySend(p.ref.Size)
	if !ok {
		return false, nil
	}
	data, err := s.parking.file.read(s.w.s.mem, p.ref)
	if err != nil {
		return false, fmt.Errorf("shuffle: mode %s: %w", Streaming, err)
	}
	l.parked.pop()
	s.w.sent(p.rows, p.size)
	s.w.n.BytesCopied += p.ref.Size
	free := func() { s.w.s.mem.Free(data) }
	if l.queue == nil {
		l.sum = chain(l.sum, p.ref.Crc)
		return true, l.far.sendBlock(seq, share(data, free), p.ref.Crc)
	}
	ok, err = l.queue.admit(s.producer, l.ch, seq, p.ref.Size)
	if err != nil || !ok {
		free()
		return true, err
	}
	l.queue.deliver(streamItem{producer: s.producer, cost: p.ref.Size, block: data})
	return true, nil
}
