package core

import "slices"

// stream is what a source has made and its readers have not all consumed.
type stream struct {
	id      ID
	task    *task // that yields it; nil: whoever has its sender
	src     *node
	attempt int32
	at      int64    // the next item that the source sends
	base    int64    // the first item that is kept
	items   []*Value // from base on; nil: lost
	end     int64    // how many items there are; -1: not known
	failure *Failure // why it ends
	readers []reader
}

type reader struct {
	node     *node
	consumed int64
	sent     int64 // up to here its node was sent items
	upto     int64 // up to here it takes them
	told     bool  // the end
	turn     ID
}

func (c *Core) openStream(o *object, s *Spec, t *task, src *node) {
	c.streams[s.ID] = &stream{id: s.ID, task: t, src: src, end: -1, readers: make([]reader, max(s.Opt.Readers, 1))}
}

// aim adds to a start what a stream's source has to know.
func (c *Core) aim(m *Start, n *node) {
	s := c.streams[m.Spec.ID]
	if s == nil {
		return
	}
	s.src, s.attempt, s.end, s.failure = n, m.Attempt, -1, nil
	m.Skip, m.Base, m.Window = s.missing(), s.base, m.Spec.Opt.Window
	s.at = m.Skip
}

// missing is the first item that is not there.
func (s *stream) missing() int64 {
	if i := slices.Index(s.items, nil); i >= 0 {
		return s.base + int64(i)
	}
	return s.base + int64(len(s.items))
}

func (c *Core) emit(n *node, m *Emit) {
	s := c.streams[m.Stream]
	if s == nil || s.src != n || s.attempt != m.Attempt {
		c.freeValue(&m.Value)
		if s == nil && !m.End {
			c.send(n, &Credit{Stream: m.Stream, Attempt: m.Attempt, Closed: true})
		}
		return
	}
	if m.End {
		c.streamOver(s, m.Failure)
		return
	}
	s.at = m.Index + 1
	i := int(m.Index - s.base)
	switch {
	case i >= 0 && i < len(s.items) && s.items[i] == nil:
		s.items[i] = &m.Value
	case i == len(s.items):
		s.items = append(s.items, &m.Value)
	default: // it is there, or was consumed
		c.freeValue(&m.Value)
		return
	}
	c.pinAll(m.Value.Contains)
	c.deliver(s)
}

// streamOver takes note that the source is through.
func (c *Core) streamOver(s *stream, f *Failure) {
	have := s.missing()
	if f == nil && have < s.base+int64(len(s.items)) { // lost after they were made, while the source ran on
		if t := s.task; t != nil && !t.argsGone && (t.spec.Opt.Retries < 0 || t.rebuilds < t.spec.Opt.Retries) && !t.open {
			t.rebuilds++
			c.reopen(t)
			return
		}
		f = &Failure{Text: "items of a stream are lost, and its source has no retries left", Kinds: []string{FailObjectLost}}
	}
	s.end, s.failure = have, f
	c.deliver(s)
}

// deliver sends readers what they take.
func (c *Core) deliver(s *stream) {
	const most, mostBytes = 256, 1 << 20
	have := s.missing()
	for i := range s.readers {
		r := &s.readers[i]
		if r.node == nil {
			continue
		}
		for {
			m := &Items{Stream: s.id, Reader: int32(i), Turn: r.turn, Index: r.sent}
			var bytes int64
			for r.sent < min(r.upto, have) && len(m.Values) < most && bytes < mostBytes {
				v := s.items[r.sent-s.base]
				m.Values = append(m.Values, *v)
				bytes += int64(len(v.Data))
				r.sent++
			}
			if s.end >= 0 && r.sent >= s.end && !r.told {
				r.told, m.End, m.Failure = true, true, s.failure
			}
			if len(m.Values) == 0 && !m.End {
				break
			}
			c.send(r.node, m)
		}
	}
}

func (c *Core) read(n *node, m *Read) {
	s := c.streams[m.Stream]
	if s == nil || m.Reader < 0 || int(m.Reader) >= len(s.readers) {
		c.send(n, &Items{Stream: m.Stream, Reader: m.Reader, Turn: m.Turn, Index: m.Consumed, End: true, Failure: &Failure{
			Text: "nobody holds the stream any more", Kinds: []string{FailObjectLost}}})
		return
	}
	r := &s.readers[m.Reader]
	if r.turn != m.Turn { // it was passed on
		r.node, r.turn, r.sent, r.told, r.upto = n, m.Turn, r.consumed, false, 0
	} else if r.consumed < m.Consumed { // perhaps of what was lost meanwhile
		r.consumed = min(m.Consumed, s.base+int64(len(s.items)))
		r.sent = max(r.sent, r.consumed)
	}
	if m.Lost != "" {
		c.missItem(s, r, m.Lost)
	}
	r.upto = max(r.upto, r.consumed+m.Upto-m.Consumed)
	c.advance(s)
	c.deliver(s)
}

// advance drops what all readers have consumed.
func (c *Core) advance(s *stream) {
	low := s.readers[0].consumed
	for _, r := range s.readers[1:] {
		low = min(low, r.consumed)
	}
	if low <= s.base {
		return
	}
	for _, v := range s.items[:low-s.base] {
		if v != nil {
			c.freeValue(v)
			c.unpinAll(v.Contains)
		}
	}
	s.items = slices.Delete(s.items, 0, int(low-s.base))
	s.base = low
	if s.end < 0 {
		c.send(s.src, &Credit{Stream: s.id, Attempt: s.attempt, Consumed: low})
	}
}

// closeStream ends a stream that nobody holds.
func (c *Core) closeStream(s *stream) {
	delete(c.streams, s.id)
	for _, v := range s.items {
		if v != nil {
			c.freeValue(v)
			c.unpinAll(v.Contains)
		}
	}
	s.items = nil
	if s.end < 0 {
		c.send(s.src, &Credit{Stream: s.id, Attempt: s.attempt, Closed: true})
	}
}

// missItem takes note that a reader could not fetch its next item; it is made again, or the stream ends there.
func (c *Core) missItem(s *stream, r *reader, at NodeID) {
	r.sent, r.told = r.consumed, false
	i := int(r.consumed - s.base)
	if i >= len(s.items) || s.items[i] == nil || s.items[i].Node != at {
		return
	}
	c.freeValue(s.items[i])
	c.unpinAll(s.items[i].Contains)
	s.items[i] = nil
	c.refill(s)
}

// refill has items that were lost made again.
func (c *Core) refill(s *stream) {
	switch t := s.task; {
	case t == nil || !t.open:
		c.streamOver(s, s.failure)
	case t.state == taskRunning && s.src != nil && s.missing() < s.at:
		// Its source is past them, and may wait for who waits for them.
		c.send(s.src, &Stop{ID: t.spec.ID, Attempt: t.attempt, Reason: "items were lost"})
		c.detach(t)
		t.attempt++
		if t.spec.Kind == KindCall {
			c.requeueCall(t)
		}
		c.prepare(t)
	}
}

// loseItems takes note of what a dead node had of a stream.
func (c *Core) loseItems(s *stream, n *node) {
	lost := false
	for i, v := range s.items {
		if v != nil && v.Node == n.id {
			s.items[i], lost = nil, true
			c.unpinAll(v.Contains)
		}
	}
	for i := range s.readers {
		if r := &s.readers[i]; r.node == n {
			r.node, r.told = nil, false
		} else if lost {
			r.sent = min(r.sent, max(s.missing(), r.consumed)) // it may not have fetched them
		}
	}
	if s.src == n {
		s.src = nil
	}
	switch {
	case s.task == nil && s.src == nil && s.end < 0:
		c.streamOver(s, &Failure{Text: "the stream's source was on node " + string(n.id) + ", which is dead", Kinds: []string{FailNodeDead}})
	case lost:
		c.refill(s)
	}
}
