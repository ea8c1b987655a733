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

// record is the state of one object. It exists until the object is reported for freeing.
type record[K comparable] struct {
	key     K
	owner   *ownership[K]
	holders []string // a set; nearly always one or two names, so a slice beats a map
	pins    int

	prev, next *record[K] // siblings under the same owner
}

func (r *record[K]) done() bool { return len(r.holders) == 0 && r.pins == 0 }

// Table holds the records of all objects of one store. The zero value is not usable; see New.
// It is not safe for concurrent use.
type Table[K comparable] struct {
	records map[K]*record[K]
	owners  owners[K]
}

// New returns an empty table.
func New[K comparable]() *Table[K] {
	return &Table[K]{records: map[K]*record[K]{}, owners: newOwners[K]()}
}

// Len returns the number of objects that are not freed, doomed ones included.
func (t *Table[K]) Len() int { return len(t.records) }

// Add makes a live object with its owner as the only holder.
func (t *Table[K]) Add(key K, owner string) error {
	if t.owners.hasEnded(owner) {
		return ErrOwnerEnded
	}
	if _, ok := t.records[key]; ok {
		return ErrExists
	}
	r := &record[K]{key: key, holders: []string{owner}}
	t.records[key] = r
	t.owners.adopt(owner, r)
	return nil
}

// live returns the record of an object that can still be reached.
func (t *Table[K]) live(key K) (*record[K], error) {
	r, ok := t.records[key]
	if !ok || len(r.holders) == 0 {
		return nil, ErrNotFound
	}
	return r, nil
}

// Hold adds a holder. Holding twice under one name is holding once.
func (t *Table[K]) Hold(key K, holder string) error {
	r, err := t.live(key)
	if err != nil {
		return err
	}
	if !slices.Contains(r.holders, holder) {
		r.holders = append(r.holders, holder)
	}
	return nil
}

// Release takes a holder away and says whether the object is to be freed now.
func (t *Table[K]) Release(key K, holder string) (free bool, err error) {
	r, err := t.live(key)
	if err != nil {
		return false, err
	}
	i := slices.Index(r.holders, holder)
	if i < 0 {
		return false, ErrNotHeld
	}
	r.holders = slices.Delete(r.holders, i, i+1)
	return t.settle(r), nil
}

// Pin keeps the bytes of a live object in place until Unpin.
func (t *Table[K]) Pin(key K) error {
	r, err := t.live(key)
	if err != nil {
		return err
	}
	r.pins++
	return nil
}

// Unpin takes one pin away, also from a doomed object, and says whether the object is to be freed now.
func (t *Table[K]) Unpin(key K) (free bool, err error) {
	r, ok := t.records[key]
	if !ok {
		return false, ErrNotFound
	}
	if r.pins == 0 {
		return false, ErrNotPinned
	}
	r.pins--
	return t.settle(r), nil
}

// Pins returns how many pins an object has, doomed or not.
func (t *Table[K]) Pins(key K) int {
	if r, ok := t.records[key]; ok {
		return r.pins
	}
	return 0
}

// EndOwner drops all holds on all objects of an owner and returns those to be freed now; pinned ones follow
// at their last Unpin. Ending an owner again, or one that never owned anything, is allowed.
func (t *Table[K]) EndOwner(owner string) (free []K) {
	for r := t.owners.end(owner); r != nil; {
		next := r.next // settle unlinks r
		r.holders = nil
		if t.settle(r) {
			free = append(free, r.key)
		}
		r = next
	}
	return free
}

// settle forgets a record that nothing keeps any more.
func (t *Table[K]) settle(r *record[K]) bool {
	if !r.done() {
		return false
	}
	delete(t.records, r.key)
	t.owners.disown(r)
	return true
}
