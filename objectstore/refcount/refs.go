package refcount

import "slices"

// Refs is what keeps one object, for those who have records of their own and a field to spare: holders, a set, and
// pins, a count. The zero value is an object that nothing keeps. The zero H names nobody.
type Refs[H comparable] struct {
	first H // usually there is one holder
	more  []H
	pins  int32
}

// Hold adds a holder. One that holds already changes nothing.
func (r *Refs[H]) Hold(h H) {
	var nobody H
	switch {
	case h == nobody || r.HeldBy(h):
	case r.first == nobody:
		r.first = h
	default:
		r.more = append(r.more, h)
	}
}

// Release takes a holder away. One that does not hold changes nothing.
func (r *Refs[H]) Release(h H) {
	var nobody H
	if r.first == h {
		r.first = nobody
	} else if i := slices.Index(r.more, h); i >= 0 {
		r.more = slices.Delete(r.more, i, i+1)
	}
}

// HeldBy says whether h is a holder.
func (r *Refs[H]) HeldBy(h H) bool {
	var nobody H
	return h != nobody && (r.first == h || slices.Contains(r.more, h))
}

// Pin adds a pin, Unpin takes one away.
func (r *Refs[H]) Pin()   { r.pins++ }
func (r *Refs[H]) Unpin() { r.pins-- }

// Kept says whether the object has a holder or a pin.
func (r *Refs[H]) Kept() bool {
	var nobody H
	return r.first != nobody || len(r.more) > 0 || r.pins > 0
}
