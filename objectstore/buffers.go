package objectstore

import (
	"cmp"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"time"
	"unsafe"
)

const (
	alignment   = 64       // start of every value's bytes: what Arrow wants of its buffers
	exactAbove  = 64 << 20 // capacities above are not rounded to a size class
	idleReserve = 16 << 20 // cached memory that a store keeps for good
)

// hugePage is the size of what the system can map with one fault. A fresh page of 4 KiB costs one too, which takes ten
// times longer than copying a value into it.
const hugePage = 2 << 20

// runFor is how much memory is mapped at once for buffers of a capacity, to be cut into them: as much as makes most of
// it huge pages.
func runFor(capacity int64) int64 {
	switch {
	case capacity <= hugePage/2:
		return hugePage
	case capacity < 2*hugePage:
		return 4 * hugePage
	}
	return capacity
}

var pageSize = int64(os.Getpagesize())

// capacityFor returns the bytes that a mapped buffer for n bytes takes: whole pages, and eight size classes to
// each doubling so that freed buffers fit the next value. At most 1/8 is wasted.
func capacityFor(n, limit int64) int64 {
	pages := roundUp(max(n, 1), pageSize)
	if n > exactAbove || n <= 8*pageSize {
		return pages
	}
	step := int64(1) << (bits.Len64(uint64(n-1)) - 4)
	if class := roundUp(n, max(step, pageSize)); class <= limit {
		return class
	}
	return pages // a value of nearly the whole limit still fits
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// alignedHeap returns n bytes of the Go heap that start at a multiple of alignment.
func alignedHeap(n int) []byte {
	b := make([]byte, n+alignment-1)
	skip := -int(address(b)) & (alignment - 1)
	return b[skip : skip+n : skip+n]
}

// buffers hands out mapped memory by capacity and keeps what comes back, within the limit: fresh pages cost a
// fault each, which is as much as filling them, and many times that in a virtual machine. What was not needed for
// a while goes back to the system. Guarded by the store's mutex.
type buffers struct {
	limit       int64
	free        map[int64][][]byte // by capacity
	cached      int64              // bytes in free
	least       int64              // that cached has been since relax
	relaxed     time.Time
	mapped      int64 // bytes mapped, in use or cached
	peak        int64 // highest mapped
	mapFailures int64

	shared *sharedFiles     // when other processes may map what is here; nil when not
	names  map[*byte]string // of the files of mapped memory, when it is shared
}

// reuse returns a cached buffer of exactly that capacity, or nil.
func (p *buffers) reuse(capacity int64) []byte {
	list := p.free[capacity]
	if len(list) == 0 {
		return nil
	}
	b := list[len(list)-1]
	p.setList(capacity, list[:len(list)-1])
	p.cached -= capacity
	p.least = min(p.least, p.cached)
	return b
}

// begin counts buffers that are about to be mapped, and says how many. used is what the budget counts, one buffer
// included: cached buffers go so that both together stay within the limit.
func (p *buffers) begin(capacity, used int64) (n int64) {
	p.trim(p.limit - used)
	n = 1
	run := runFor(capacity)
	if more := run / capacity; p.shared == nil && used+p.cached+(more-1)*capacity <= p.limit && run <= p.limit/16 {
		n = more
	}
	p.mapped += n * capacity
	p.peak = max(p.peak, p.mapped)
	return n
}

// mapFresh maps n buffers, one after the other in memory. It needs no lock.
func (p *buffers) mapFresh(n, capacity int64) (b []byte, name string, err error) {
	switch size := n * capacity; {
	case p.shared != nil:
		b, name, err = p.shared.get(capacity)
	case size < hugePage:
		b, err = mapMemory(int(size))
	default:
		if b, err = mapAligned(int(size), hugePage); err == nil {
			adviseHuge(b)
		}
	}
	if err != nil {
		return nil, "", fmt.Errorf("map %s of memory: %w", bytesText(capacity), err)
	}
	return b, name, nil
}

// end takes note of what became of begin. The first buffer is the caller's, the others are kept.
func (p *buffers) end(b []byte, name string, n, capacity int64) []byte {
	if b == nil {
		p.mapped -= n * capacity
		p.mapFailures++
		return nil
	}
	if name != "" {
		p.names[unsafe.SliceData(b)] = name
	}
	for at := capacity; at < n*capacity; at += capacity {
		p.keep(b[at : at+capacity : at+capacity])
	}
	return b[:capacity:capacity]
}

// put takes a buffer back.
func (p *buffers) put(b []byte) {
	b = b[:cap(b)]
	poison(b)
	p.keep(b)
}

func (p *buffers) keep(b []byte) {
	p.free[int64(cap(b))] = append(p.free[int64(cap(b))], b)
	p.cached += int64(cap(b))
}

// relax returns to the system what was cached and not needed since it was last called, which must be at least a
// period ago, and says whether there is anything left to look at later.
func (p *buffers) relax(now time.Time, period time.Duration) bool {
	if now.Sub(p.relaxed) >= period {
		for _, list := range p.free { // what is kept should be neighbours: a huge page goes as a whole
			slices.SortFunc(list, func(a, b []byte) int { return cmp.Compare(address(a), address(b)) })
		}
		p.trim(max(p.cached-p.least, idleReserve))
		p.least, p.relaxed = p.cached, now
	}
	return p.cached > idleReserve
}

// trim returns cached buffers to the system until at most keep bytes are cached.
func (p *buffers) trim(keep int64) {
	for capacity, list := range p.free {
		for len(list) > 0 && p.cached > max(keep, 0) {
			p.unmap(list[len(list)-1])
			list = list[:len(list)-1]
			p.cached -= capacity
		}
		p.setList(capacity, list)
		p.least = min(p.least, p.cached)
		if p.cached <= max(keep, 0) {
			return
		}
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (p *buffers) setList(capacity int64, list [][]byte) {
	if len(list) == 0 {
		delete(p.free, capacity)
		return
	}
	p.free[capacity] = list
}

func (p *buffers) unmap(b []byte) {
	p.mapped -= int64(cap(b))
	if name, ok := p.names[unsafe.SliceData(b)]; ok {
		delete(p.names, unsafe.SliceData(b))
		_ = os.Remove(name) // what stays goes with its folder
	}
	if err := unmapMemory(b); err != nil {
		// Only a slice that mapMemory did not return can fail here.
		panic(fmt.Sprintf("objectstore: unmap: %v", err))
	}
}
