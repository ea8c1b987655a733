package core

// chain is a list in which each member has its own links: cheaper than a map for what is only added, taken out and walked.
type chain[T any] struct {
	head, tail *T
	n          int
}

// chained is a member's links in one chain.
type chained[T any] struct {
	prev, next *T
	in         bool
}

func (c *chain[T]) add(x *T, links func(*T) *chained[T]) {
	l := links(x)
	if l.in {
		return
	}
	l.in, l.prev = true, c.tail
	if c.tail == nil {
		c.head = x
	} else {
		links(c.tail).next = x
	}
	c.tail = x
	c.n++
}

func (c *chain[T]) remove(x *T, links func(*T) *chained[T]) {
	l := links(x)
	if !l.in {
		return
	}
	if l.prev == nil {
		c.head = l.next
	} else {
		links(l.prev).next = l.next
	}
	if l.next == nil {
		c.tail = l.prev
	} else {
		links(l.next).prev = l.prev
	}
	*l = chained[T]{}
	c.n--
}

// all gives the members of now, so that the chain may change meanwhile.
func (c *chain[T]) all(links func(*T) *chained[T]) []*T {
	out := make([]*T, 0, c.n)
	for x := c.head; x != nil; x = links(x).next {
		out = append(out, x)
	}
	return out
}

func ofJob(o *object) *chained[object] { return &o.ofJob }
func isOpen(t *task) *chained[task]    { return &t.ofJob }
func isKid(t *task) *chained[task]     { return &t.ofParent }
func inFlight(t *task) *chained[task]  { return &t.ofActor }
