package block

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Gathered is a block in pieces. Large ones lie in the batches that it was made of, which it holds.
type Gathered struct {
	mem     memory.Allocator
	parts   [][]byte
	n       int64
	scratch [][]byte            // allocations that the other pieces lie in
	free    int                 // unused bytes at the end of the last one
	tail    bool                // the last piece is the end of what is used of it
	batches []arrow.RecordBatch // retained
	ranges  []span              // of the batches' buffers, in order
}

// span is a range of addresses.
type span struct{ from, to uintptr }

const (
	gatherFrom = 1 << 10 // bytes; copying less is cheaper than a piece of its own
	scratchMin = 4 << 10
)

// Gather makes the block of batches (borrowed), all of the schema, without a copy of their buffers.
func Gather(mem memory.Allocator, schema *arrow.Schema, batches ...arrow.RecordBatch) (*Gathered, error) {
	g := &Gathered{mem: mem}
	for _, b := range batches {
		b.Retain()
		g.batches = append(g.batches, b)
		for _, c := range b.Columns() {
			g.note(c.Data())
		}
	}
	slices.SortFunc(g.ranges, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	if err := EncodeTo(g, mem, schema, batches...); err != nil {
		g.Free()
		return nil, err
	}
	return g, nil
}

// note remembers where the buffers of an array are: what else is written is the encoder's for a moment only.
func (g *Gathered) note(data arrow.ArrayData) {
	for _, b := range data.Buffers() {
		if b != nil && b.Len() >= gatherFrom {
			from := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes())))
			g.ranges = append(g.ranges, span{from, from + uintptr(b.Len())})
		}
	}
	for _, c := range data.Children() {
		g.note(c)
	}
	if d, ok := data.Dictionary().(*array.Data); ok && d != nil {
		g.note(d)
	}
}

// lasts says whether p lies in a buffer of the batches.
func (g *Gathered) lasts(p []byte) bool {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(p)))
	i, found := slices.BinarySearchFunc(g.ranges, at, func(s span, at uintptr) int { return cmp.Compare(s.from, at) })
	if found {
		return at+uintptr(len(p)) <= g.ranges[i].to
	}
	return i > 0 && at+uintptr(len(p)) <= g.ranges[i-1].to
}

// Write makes a Gathered an io.Writer.
func (g *Gathered) Write(p []byte) (int, error) {
	g.n += int64(len(p))
	switch {
	case len(p) == 0:
	case len(p) >= gatherFrom && g.lasts(p):
		g.parts = append(g.parts, p)
		g.tail = false
	default:
		g.copy(p)
	}
	return len(p), nil
}

// copy appends p by way of the scratch memory.
func (g *Gathered) copy(p []byte) {
	if len(p) > g.free {
		whole := g.mem.Allocate(max(scratchMin, len(p)))
		g.scratch = append(g.scratch, whole)
		g.free, g.tail = len(whole), false
	}
	whole := g.scratch[len(g.scratch)-1]
	at := len(whole) - g.free
	copy(whole[at:], p)
	g.free -= len(p)
	if g.tail { // the last piece ends where this one begins
		last := &g.parts[len(g.parts)-1]
		*last = (*last)[:len(*last)+len(p)]
		return
	}
	g.parts = append(g.parts, whole[at:at+len(p)])
	g.tail = true
}

// Parts is the block, valid until Free.
func (g *Gathered) Parts() [][]byte { return g.parts }

// Size is its length.
func (g *Gathered) Size() int64 { return g.n }

// Scratch is the memory that it has besides the batches.
func (g *Gathered) Scratch() (n int64) {
	for _, s := range g.scratch {
		n += int64(len(s))
	}
	return n
}

// Free may be called more than once.
func (g *Gathered) Free() {
	for _, s := range g.scratch {
		g.mem.Free(s)
	}
	for _, b := range g.batches {
		b.Release()
	}
	*g = Gathered{}
}
