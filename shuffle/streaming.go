package shuffle

import (
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/actors"
	"manta/shuffle/credit"
)

// streamSink sends batches under credits, directly to the readers' queues.
type streamSink struct {
	w        *Writer
	producer int
	format   *format
	lanes    []lane // by partition
	bytes    int64  // memory of the pieces that wait for credit
	gone     int    // lanes whose reader has enough
	parking  parking

	news news
	look []int // scratch: lanes that are worth a look
	line []int // lanes that the line to their node holds up
}

// lane is a writer's way to one partition.
type lane struct {
	ch    *channel
	queue *streamQueue // of a reader on this node, or nil
	far   *linkOutlet  // to a reader on another node, or nil
	fifo  fifo[piece]  // waits for credit
	shut  bool         // its reader has enough
	ended bool         // END was sent

	parked fifo[parkedPiece] // waits for credit on disk, before fifo

	starved bool  // as of the last pump: what is first waits for credit, not for the network
	lined   bool  // it is in line
	taken   int64 // what the reader had taken when that was noted last
}

// empty says that nothing waits for credit.
func (l *lane) empty() bool { return l.fifo.len() == 0 && l.parked.len() == 0 }

func (l *lane) release() {
	if l.far != nil {
		l.far.release()
		l.far = nil
	}
}

func newStreamSink(w *Writer, producer int) (sink, error) {
	s := &streamSink{w: w, producer: producer, format: newFormat(w.opts.Schema), lanes: make([]lane, len(w.edge.Consumers)), news: news{wake: w.wake}}
	s.parking.since = time.Now()
	for p, node := range w.edge.Consumers {
		l := &s.lanes[p]
		l.ch = newChannel(w.s.node.ID(), p, &s.news)
		if err := s.connect(l, p, node, producer); err != nil {
			s.abort(err)
			s.release()
			return nil, err
		}
	}
	return s, nil
}

func (s *streamSink) connect(l *lane, p int, node actors.NodeID, producer int) error {
	w := s.w
	w.n.ControlMessages++
	if node == w.s.node.ID() {
		q, err := w.job.streamQueue(w.s, w.edge.ID, uint32(p))
		if err != nil {
			return err
		}
		l.queue = q
		q.open(producer, l.ch)
		return nil
	}
	link, err := w.s.link(node)
	if err != nil {
		return err
	}
	about := w.edge.channel(producer, p, w.tc.Attempt)
	about.Types = s.format.types
	l.far, err = link.open(l.ch, about)
	return err
}

func (s *streamSink) put(p int, b arrow.RecordBatch) error {
	if p != toAll {
		return s.add(&s.lanes[p], newPiece(s, b, 1))
	}
	defer b.Release()
	open := 0
	for i := range s.lanes {
		if !s.lanes[i].shut {
			open++
		}
	}
	if open == 0 {
		return nil
	}
	b.Retain()
	first := newPiece(s, b, open)
	var err error
	for i := range s.lanes {
		l := &s.lanes[i]
		if l.shut {
			continue
		}
		p := first
		if open--; open > 0 {
			b.Retain()
		}
		if e := s.add(l, p); e != nil && err == nil {
			err = e
		}
	}
	return err
}

// add takes a piece for a lane and sends what its credit allows.
func (s *streamSink) add(l *lane, p piece) error {
	l.fifo.push(p)
	return s.pump(l)
}

// pump sends of a lane what its credit allows.
func (s *streamSink) pump(l *lane) error {
	l.starved = false
	for !l.empty() {
		window, end, err := l.ch.look()
		switch {
		case end == credit.Failed:
			return err
		case end == credit.Closed:
			s.shut(l)
			return nil
		case window == 0:
			l.starved = true
			return nil
		}
		if l.parked.len() > 0 {
			if sent, err := s.sendParked(l); err != nil || !sent {
				return err
			}
			continue
		}
		p := l.fifo.front()
		if cut := p.cut(window); cut != nil {
			l.fifo.replaceFront(cut)
			continue
		}
		send := s.sendFar
		if l.queue != nil {
			send = s.sendNear
		}
		if sent, err := send(l, p); err != nil || !sent {
			return err
		}
	}
	return nil
}

// shut forgets what waits for a reader that has enough.
func (s *streamSink) shut(l *lane) {
	if !l.shut {
		l.shut = true
		s.gone++
	}
	l.drop()
}

// drop forgets what waits.
func (l *lane) drop() {
	for _, p := range l.fifo.takeAll() {
		p.drop()
	}
	l.parked.takeAll()
}

// sendNear hands the first piece, if there is credit, to a queue of this node, as it is.
func (s *streamSink) sendNear(l *lane, p *piece) (bool, error) {
	cost := max(p.size, 1)
	seq, ok := l.ch.trySend(cost)
	if !ok {
		l.starved = true
		return false, nil
	}
	it := streamItem{producer: s.producer, cost: cost, batch: p.batch}
	s.w.sent(p.rows, p.size)
	p.batch = nil
	l.fifo.pop().drop()
	ok, err := l.queue.admit(s.producer, l.ch, seq, cost)
	if err != nil || !ok {
		it.batch.Release()
		return true, err
	}
	l.queue.deliver(it)
	return true, nil
}

// sendFar sends the first piece, if there is credit, to another node, as a block.
func (s *streamSink) sendFar(l *lane, p *piece) (bool, error) {
	if err := p.encode(s.format); err != nil {
		return false, err
	}
	if s.lineFull(l) {
		return false, nil
	}
	blk := p.enc.block
	seq, ok := l.ch.trySend(blk.size)
	if !ok {
		l.starved = true
		return false, nil
	}
	s.w.sent(p.rows, p.size)
	s.w.n.BytesCopied += blk.size
	blk.refs.Add(1)
	l.fifo.pop().drop()
	return true, l.far.sendBlock(seq, blk)
}

// lineFull says that a lane must wait for the line to its node.
func (s *streamSink) lineFull(l *lane) bool {
	if !l.far.l.full(s.w.wake) {
		return false
	}
	if !l.lined {
		l.lined = true
		s.line = append(s.line, l.ch.lane)
	}
	return true
}

// resume pumps the lanes that may go on: those that were told something, and those that waited for a line that is no longer
// full. To go through all of them, whenever one is told something, would take a good part of the time when they are many.
func (s *streamSink) resume(pump func(*lane) error) error {
	s.look = s.news.take(s.look)
	for _, i := range s.look {
		if err := pump(&s.lanes[i]); err != nil {
			return err
		}
	}
	var full *link
	waited := s.line
	s.line = nil
	for _, i := range waited {
		l := &s.lanes[i]
		if l.far.l == full {
			s.line = append(s.line, i)
			continue
		}
		l.lined = false
		if err := pump(l); err != nil {
			return err
		}
		if l.lined {
			full = l.far.l
		}
	}
	return nil
}

// settle waits for credit until little enough waits for it. See parking for why that cannot take for ever.
func (s *streamSink) settle(limit int64) error {
	defer s.parking.calm()
	for {
		if err := s.resume(s.pump); err != nil {
			return err
		}
		if s.bytes <= limit {
			return nil
		}
		park := s.late()
		switch {
		case len(park) > 0:
		case s.w.relieved.Load(): // it must not wait, whatever for
			park = s.waiting()
		case s.jammed():
			park = s.behind()
		}
		if len(park) > 0 {
			if err := s.park(park, limit); err != nil {
				return err
			}
			continue
		}
		if err := s.w.wait(); err != nil {
			return err
		}
	}
}

// finish ends each channel as soon as all its rows are sent: a reader may need END before another one takes a row.
func (s *streamSink) finish() error {
	left := len(s.lanes)
	finish := func(l *lane) error {
		if l.ended {
			return nil
		}
		if err := s.pump(l); err != nil || !l.empty() {
			return err
		}
		left--
		return s.end(l)
	}
	for i := range s.lanes {
		if err := finish(&s.lanes[i]); err != nil {
			return err
		}
	}
	for left > 0 {
		if err := s.w.wait(); err != nil {
			return err
		}
		if err := s.resume(finish); err != nil {
			return err
		}
	}
	return nil
}

// end sends END on a lane that is empty.
func (s *streamSink) end(l *lane) error {
	// A failure that came in the meantime must not be taken for the end.
	if _, end, err := l.ch.look(); end == credit.Failed {
		return err
	}
	batches, bytes, _ := l.ch.finish(credit.Ended, nil)
	l.ended = true
	if batches == 0 && without(empty) {
		return nil
	}
	s.w.n.ControlMessages++
	if l.queue != nil {
		l.queue.end(s.producer, l.ch, batches, bytes)
		return nil
	}
	return l.far.end(batches, bytes)
}

func (s *streamSink) abort(err error) {
	for i := range s.lanes {
		l := &s.lanes[i]
		if l.ch == nil || l.ended {
			continue
		}
		l.ch.finish(credit.Failed, err)
		s.w.n.ControlMessages++
		switch {
		case l.queue != nil:
			l.queue.lost(s.producer, l.ch, err)
		case l.far != nil:
			_ = l.far.fail(err) // a broken stream fails the reader as well
		}
	}
}

func (s *streamSink) held() int64 { return s.bytes }

func (s *streamSink) done() bool {
	for i := range s.lanes { // most often the first one is still there
		if s.wants(i) {
			return false
		}
	}
	return true
}

func (s *streamSink) wants(p int) bool {
	if p == toAll {
		return s.gone < len(s.lanes)
	}
	l := &s.lanes[p]
	if !l.shut {
		if _, end, _ := l.ch.look(); end == credit.Closed {
			s.shut(l)
		}
	}
	return !l.shut
}

func (s *streamSink) release() {
	for i := range s.lanes {
		l := &s.lanes[i]
		l.drop()
		l.release()
	}
}
