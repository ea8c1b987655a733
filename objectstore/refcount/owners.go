package refcount

// endedKept is how many ended owners are remembered. An object that arrives later than that many further
// ends would be accepted and stay; jobs end seconds apart and stragglers arrive within milliseconds.
const endedKept = 4096

// ownership is the list of the objects of one owner, so that ending a job costs what the job had.
type ownership[K comparable] struct {
	name string
	head *record[K]
}

// owners finds the objects of an owner and remembers which owners have ended.
type owners[K comparable] struct {
	byName map[string]*ownership[K] // only owners with objects
	ended  map[string]struct{}
	ring   []string // the names in ended, oldest at index at once the ring is full
	at     int
}

func newOwners[K comparable]() owners[K] {
	return owners[K]{byName: map[string]*ownership[K]{}, ended: map[string]struct{}{}}
}

func (o *owners[K]) hasEnded(name string) bool {
	_, ok := o.ended[name]
	return ok
}

func (o *owners[K]) adopt(name string, r *record[K]) {
	own := o.byName[name]
	if own == nil {
		own = &ownership[K]{name: name}
		o.byName[name] = own
	}
	r.owner, r.next = own, own.head
	if own.head != nil {
		own.head.prev = r
	}
	own.head = r
}

func (o *owners[K]) disown(r *record[K]) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		r.owner.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
	if r.owner.head == nil {
		delete(o.byName, r.owner.name)
	}
	r.prev, r.next = nil, nil
}

// end remembers the name and returns the head of its list of objects.
func (o *owners[K]) end(name string) *record[K] {
	if !o.hasEnded(name) {
		if len(o.ring) < endedKept {
			o.ring = append(o.ring, name)
		} else {
			delete(o.ended, o.ring[o.at])
			o.ring[o.at] = name
			o.at = (o.at + 1) % endedKept
		}
		o.ended[name] = struct{}{}
	}
	if own := o.byName[name]; own != nil {
		return own.head
	}
	return nil
}

// Ended says whether an owner is known to have ended.
func (t *Table[K]) Ended(owner string) bool { return t.owners.hasEnded(owner) }
