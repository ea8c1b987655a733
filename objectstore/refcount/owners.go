package refcount

// endedKept is how many ended owners are remembered. An object that arrives later than that many further
// ends would be accepted and stay; jobs end seconds apart and stragglers arrive within milliseconds.
const endedKept = 4096

// ownership is the list of the objects of one owner, so that ending a job costs what the job had.
type ownership struct {
	name string
	head Slot
}

// owners finds the objects of an owner and remembers which owners have ended.
type owners struct {
	list   []ownership
	byName map[string]uint32 // only owners with objects
	free   []uint32          // numbers in list that no owner has
	ended  map[string]struct{}
	ring   []string // the names in ended, oldest at index at once the ring is full
	at     int
}

func newOwners() owners {
	return owners{byName: map[string]uint32{}, ended: map[string]struct{}{}}
}

func (o *owners) hasEnded(name string) bool {
	if len(o.ended) == 0 {
		return false
	}
	_, ok := o.ended[name]
	return ok
}

// number returns the owner's number, a new one if it has no object.
func (o *owners) number(name string) uint32 {
	if n, ok := o.byName[name]; ok {
		return n
	}
	var n uint32
	if k := len(o.free); k > 0 {
		n, o.free = o.free[k-1], o.free[:k-1]
		o.list[n] = ownership{name: name}
	} else {
		n = uint32(len(o.list))
		o.list = append(o.list, ownership{name: name})
	}
	o.byName[name] = n
	return n
}

// end remembers the name and returns the first of its objects, 0 if there is none.
func (o *owners) end(name string) Slot {
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
	if n, ok := o.byName[name]; ok {
		return o.list[n].head
	}
	return 0
}

// adopt puts a new record under its owner.
func (t *Table[K, V]) adopt(owner string, s Slot) {
	n := t.owners.number(owner)
	own, r := &t.owners.list[n], t.records.at(s)
	r.owner, r.next = n, own.head
	if own.head != 0 {
		t.records.at(own.head).prev = s
	}
	own.head = s
}

// disown takes a record from under its owner.
func (t *Table[K, V]) disown(r *record[K, V]) {
	own := &t.owners.list[r.owner]
	if r.prev != 0 {
		t.records.at(r.prev).next = r.next
	} else {
		own.head = r.next
	}
	if r.next != 0 {
		t.records.at(r.next).prev = r.prev
	}
	if own.head == 0 {
		delete(t.owners.byName, own.name)
		*own = ownership{}
		t.owners.free = append(t.owners.free, r.owner)
	}
}

// Ended says whether an owner is known to have ended.
func (t *Table[K, V]) Ended(owner string) bool { return t.owners.hasEnded(owner) }
