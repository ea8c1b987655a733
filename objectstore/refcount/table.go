package refcount

import (
	"errors"
	"slices"
)

var (
	// ErrNotFound says that the object does not exist or is doomed.
	ErrNotFound = errors.New("refcount: no such object")
	// ErrExists says that an object of that key was added before.
	ErrExists = errors.New("refcount: object exists")
	// ErrNotHeld says that the holder that lets go does not hold the object.
	ErrNotHeld = errors.New("refcount: not held by this holder")
	// ErrNotPinned says that there is no pin to take away.
	ErrNotPinned = errors.New("refcount: not pinned")
	// ErrOwnerEnded says that the owner has ended and can own nothing more.
	ErrOwnerEnded = errors.New("refcount: owner has ended")
)

// record is the state of one object. It exists until the object is reported for freeing. For a key of 16 bytes
// and a value of 12 it takes 48.
type record[K comparable, V any] struct {
	key        K
	val        V
	owner      uint32 // number in Table.owners
	pins       uint32
	prev, next Slot // siblings under the same owner
	state      uint8
}

// Bits of record.state.
const (
	inUse     = 1 << iota
	ownerHeld // the owner holds it: most objects have no other holder, ever
	othersHeld
)

func (r *record[K, V]) held() bool { return r.state&(ownerHeld|othersHeld) != 0 }

// Table holds the records of objects, each with a value V of the caller's. The zero value is not usable; see New.
// It is not safe for concurrent use.
type Table[K comparable, V any] struct {
	hash    func(K) uint64
	records slab[record[K, V]]
	index   index
	others  map[Slot][]string // holders that are not the owner; a set
	owners  owners
}

// New returns an empty table. hash must spread keys over all of its low bits.
func New[K comparable, V any](hash func(K) uint64, mem Memory) *Table[K, V] {
	t := &Table[K, V]{hash: hash, others: map[Slot][]string{}, owners: newOwners()}
	t.records.mem, t.records.shift = mem, slabShift
	return t
}

// Len returns the number of objects that are not freed, doomed ones included.
func (t *Table[K, V]) Len() int { return t.index.n }

// Bytes returns the memory that the records and their index take.
func (t *Table[K, V]) Bytes() int64 { return t.records.bytes() + t.index.bytes() }

// Find returns the slot of an object that is not freed, doomed or not; 0 when there is none.
func (t *Table[K, V]) Find(key K) Slot {
	return t.index.find(t.hash(key), func(s Slot) bool { return t.records.at(s).key == key })
}

// Key returns the key of a slot in use.
func (t *Table[K, V]) Key(s Slot) K { return t.records.at(s).key }

// Value returns the value of a slot in use, to read and change until the object is freed.
func (t *Table[K, V]) Value(s Slot) *V { return &t.records.at(s).val }

// Owner returns the name of the owner of a slot in use.
func (t *Table[K, V]) Owner(s Slot) string { return t.owners.list[t.records.at(s).owner].name }

// Pins returns how many pins the object of a slot in use has.
func (t *Table[K, V]) Pins(s Slot) int { return int(t.records.at(s).pins) }

// Holders returns the names that hold the object of a slot in use.
func (t *Table[K, V]) Holders(s Slot) (names []string) {
	if t.records.at(s).state&ownerHeld != 0 {
		names = append(names, t.Owner(s))
	}
	return append(names, t.others[s]...)
}

// Used says whether there is an object in a slot that was given out.
func (t *Table[K, V]) Used(s Slot) bool {
	return s != 0 && int(s) <= t.records.used && t.records.at(s).state&inUse != 0
}

// Live says whether the object of a slot in use can still be reached.
func (t *Table[K, V]) Live(s Slot) bool { return t.records.at(s).held() }

// All calls visit for the slots in use from a slot on, at most limit of them, and returns where to go on; 0 at
// the end. Objects that are added or freed between calls may be missed or not.
func (t *Table[K, V]) All(from Slot, limit int, visit func(Slot)) Slot {
	for s := max(from, 1); int(s) <= t.records.used; s++ {
		if t.records.at(s).state&inUse == 0 {
			continue
		}
		if limit == 0 {
			return s
		}
		limit--
		visit(s)
	}
	return 0
}

// Add makes a live object with its owner as the only holder.
func (t *Table[K, V]) Add(key K, owner string, val V) (Slot, error) {
	if t.owners.hasEnded(owner) {
		return 0, ErrOwnerEnded
	}
	if t.Find(key) != 0 {
		return 0, ErrExists
	}
	s, err := t.records.get()
	if err != nil {
		return 0, err
	}
	*t.records.at(s) = record[K, V]{key: key, val: val, state: inUse | ownerHeld}
	t.index.add(s, t.hash(key), t.hashOf)
	t.adopt(owner, s)
	return s, nil
}

func (t *Table[K, V]) hashOf(s Slot) uint64 { return t.hash(t.records.at(s).key) }

// live returns the record of an object that can still be reached.
func (t *Table[K, V]) live(key K) (Slot, *record[K, V], error) {
	s := t.Find(key)
	if s == 0 {
		return 0, nil, ErrNotFound
	}
	r := t.records.at(s)
	if !r.held() {
		return 0, nil, ErrNotFound
	}
	return s, r, nil
}

// Hold adds a holder. Holding twice under one name is holding once.
func (t *Table[K, V]) Hold(key K, holder string) error {
	s, r, err := t.live(key)
	if err != nil {
		return err
	}
	if holder == t.Owner(s) {
		r.state |= ownerHeld
	} else if !slices.Contains(t.others[s], holder) {
		t.others[s] = append(t.others[s], holder)
		r.state |= othersHeld
	}
	return nil
}

// Release takes a holder away. When the object is to be freed now it returns its value and true.
func (t *Table[K, V]) Release(key K, holder string) (val V, free bool, err error) {
	s, r, err := t.live(key)
	if err != nil {
		return val, false, err
	}
	if holder == t.Owner(s) {
		if r.state&ownerHeld == 0 {
			return val, false, ErrNotHeld
		}
		r.state &^= ownerHeld
	} else {
		names := t.others[s]
		i := slices.Index(names, holder)
		if i < 0 {
			return val, false, ErrNotHeld
		}
		if t.others[s] = slices.Delete(names, i, i+1); len(names) == 1 {
			t.dropOthers(s, r)
		}
	}
	val, free = t.settle(s)
	return val, free, nil
}

func (t *Table[K, V]) dropOthers(s Slot, r *record[K, V]) {
	if r.state&othersHeld != 0 {
		delete(t.others, s)
		r.state &^= othersHeld
	}
}

// Move gives a live object to another owner, who is its only holder then.
func (t *Table[K, V]) Move(key K, owner string) (Slot, error) {
	if t.owners.hasEnded(owner) {
		return 0, ErrOwnerEnded
	}
	s, r, err := t.live(key)
	if err != nil {
		return 0, err
	}
	t.dropOthers(s, r)
	r.state |= ownerHeld
	if owner != t.Owner(s) {
		t.disown(r)
		r.prev, r.next = 0, 0
		t.adopt(owner, s)
	}
	return s, nil
}

// Drop takes all holders of a live object away, as if each had released it.
func (t *Table[K, V]) Drop(key K) (val V, free bool, err error) {
	s, _, err := t.live(key)
	if err != nil {
		return val, false, err
	}
	val, free = t.unhold(s)
	return val, free, nil
}

func (t *Table[K, V]) unhold(s Slot) (V, bool) {
	r := t.records.at(s)
	t.dropOthers(s, r)
	r.state &^= ownerHeld
	return t.settle(s)
}

// Pin keeps the bytes of a live object in place until Unpin.
func (t *Table[K, V]) Pin(key K) (Slot, error) {
	s, r, err := t.live(key)
	if err != nil {
		return 0, err
	}
	r.pins++
	return s, nil
}

// Unpin takes one pin away, also from a doomed object. When the object is to be freed now it returns its value
// and true.
func (t *Table[K, V]) Unpin(s Slot) (val V, free bool, err error) {
	if !t.Used(s) {
		return val, false, ErrNotFound
	}
	r := t.records.at(s)
	if r.pins == 0 {
		return val, false, ErrNotPinned
	}
	r.pins--
	val, free = t.settle(s)
	return val, free, nil
}

// EndOwner drops all holds on all objects of an owner and reports those to be freed now; pinned ones follow at
// their last Unpin. freed must not use the table. Ending an owner again, or one that never owned anything, is
// allowed.
func (t *Table[K, V]) EndOwner(owner string, freed func(V)) {
	for s := t.owners.end(owner); s != 0; {
		next := t.records.at(s).next // settling unlinks s
		if val, free := t.unhold(s); free {
			freed(val)
		}
		s = next
	}
}

// settle forgets a record that nothing keeps any more.
func (t *Table[K, V]) settle(s Slot) (val V, free bool) {
	r := t.records.at(s)
	if r.held() || r.pins > 0 {
		return val, false
	}
	val = r.val
	t.index.remove(s, t.hash(r.key), t.hashOf)
	t.disown(r)
	t.records.put(s)
	return val, true
}

// Shrink gives the memory of a table back if it is empty.
func (t *Table[K, V]) Shrink() {
	if t.index.n == 0 {
		t.Clear()
	}
}

// Clear gives all memory back. Only when no object is left, or no call is to follow.
func (t *Table[K, V]) Clear() {
	t.records.clear()
	t.index = index{}
}
