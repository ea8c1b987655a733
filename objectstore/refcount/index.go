package refcount

// index finds slots by key: open addressing with linear probing over four bytes an object, so that ten million
// objects cost tens of megabytes here. The keys themselves are in the records.
type index struct {
	slots []Slot // a power of two, or none
	n     int
}

const indexMin = 16

// find returns the slot whose record is the wanted one, or 0.
func (x *index) find(hash uint64, is func(Slot) bool) Slot {
	if len(x.slots) == 0 {
		return 0
	}
	mask := uint64(len(x.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		if s := x.slots[i]; s == 0 || is(s) {
			return s
		}
	}
}

// add puts in a slot that is not there. hashOf tells the hash of one that is.
func (x *index) add(slot Slot, hash uint64, hashOf func(Slot) uint64) {
	if (x.n+1)*5 > len(x.slots)*4 { // at most 80 % full
		old := x.slots
		x.slots = make([]Slot, max(2*len(old), indexMin))
		for _, s := range old {
			if s != 0 {
				x.place(s, hashOf(s))
			}
		}
	}
	x.place(slot, hash)
	x.n++
}

func (x *index) place(slot Slot, hash uint64) {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = slot
}

// remove takes a slot out that is there, and moves up those that stand behind it so that they are still found.
func (x *index) remove(slot Slot, hash uint64, hashOf func(Slot) uint64) {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i] != slot {
		i = (i + 1) & mask
	}
	for j := (i + 1) & mask; x.slots[j] != 0; j = (j + 1) & mask {
		home := hashOf(x.slots[j]) & mask
		if (j-home)&mask >= (j-i)&mask { // its way from home leads over the gap
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.n--
}

func (x *index) bytes() int64 { return int64(cap(x.slots)) * 4 }
