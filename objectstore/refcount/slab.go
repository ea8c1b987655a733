package refcount

import "unsafe"

// Slot is the place of an object in a Table: a small number that stays the same from Add until the object is
// freed, and may then name another one. 0 names none.
type Slot uint32

// slabShift says how many records are taken from memory at a time: 4,096.
const slabShift = 12

// Memory gives and takes back the bytes of a table's records; without one they are in the Go heap. What it
// gives is zero and aligned to 8 bytes. Only for tables whose K and V hold no pointers.
type Memory struct {
	Get func(n int) ([]byte, error)
	Put func([]byte)
}

// slab is an array of records that grows without moving them. Numbers that were freed are given out again.
type slab[R any] struct {
	mem    Memory
	shift  uint // log2 of the records in a chunk
	chunks [][]R
	raw    [][]byte // the chunks' bytes, when they came from mem
	used   int      // records ever given out
	free   []Slot
}

// at returns the record of a slot. The pointer is good until the slab is cleared.
func (s *slab[R]) at(slot Slot) *R {
	i := int(slot) - 1
	return &s.chunks[i>>s.shift][i&(1<<s.shift-1)]
}

func (s *slab[R]) get() (Slot, error) {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot, nil
	}
	if s.used == len(s.chunks)<<s.shift {
		if err := s.grow(); err != nil {
			return 0, err
		}
	}
	s.used++
	return Slot(s.used), nil
}

func (s *slab[R]) grow() error {
	if s.mem.Get == nil {
		s.chunks = append(s.chunks, make([]R, 1<<s.shift))
		return nil
	}
	var r R
	raw, err := s.mem.Get(int(unsafe.Sizeof(r)) << s.shift)
	if err != nil {
		return err
	}
	s.raw = append(s.raw, raw)
	s.chunks = append(s.chunks, unsafe.Slice((*R)(unsafe.Pointer(unsafe.SliceData(raw))), 1<<s.shift))
	return nil
}

func (s *slab[R]) put(slot Slot) {
	var zero R
	*s.at(slot) = zero
	s.free = append(s.free, slot)
}

// clear gives all memory back. Nothing may be in use.
func (s *slab[R]) clear() {
	for _, raw := range s.raw {
		s.mem.Put(raw)
	}
	s.chunks, s.raw, s.free, s.used = nil, nil, nil, 0
}

// bytes is the memory of the slab.
func (s *slab[R]) bytes() int64 {
	var r R
	return int64(len(s.chunks)<<s.shift)*int64(unsafe.Sizeof(r)) + int64(cap(s.free))*4
}
