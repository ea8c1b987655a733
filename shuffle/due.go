package shuffle

import "manta/shuffle/credit"

// due is the readers of a streaming edge that this node still waits for. They come one after the other, and rows may come
// before the last of them. The credit that is meant for their channels is left to them: see credit.Budget.Expect.
type due struct {
	readers  int
	channels int // of each
}

// arrived counts a reader of the edge that is about to get its queue.
func (j *job) arrived(s *Service, e *Edge) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ended {
		return
	}
	d, known := j.due[e.ID]
	was := d.readers
	if !known {
		d.channels = len(e.Producers)
		for _, n := range e.Consumers {
			if n == s.node.ID() {
				d.readers++
			}
		}
	}
	d.readers = max(0, d.readers-1)
	j.due[e.ID] = d
	s.usage.update(func(b *credit.Budget) { b.Expect((d.readers - was) * d.channels) })
}

// nobodyIsDue is the end of the wait. mu is held.
func (j *job) nobodyIsDue(s *Service) {
	for _, d := range j.due {
		s.usage.update(func(b *credit.Budget) { b.Expect(-d.readers * d.channels) })
	}
	clear(j.due)
}
