package rows

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// bits is a growing bitmap. Bits past n are undefined until set.
type bits struct {
	buf buf
	n   int
}

// extend makes room for k more bits, which are zero, and returns the bytes of the whole bitmap.
func (m *bits) extend(mem memory.Allocator, k int) []byte {
	if need := int(bitutil.BytesForBits(int64(m.n + k))); need > m.buf.len {
		clear(m.buf.grow(mem, need-m.buf.len))
	}
	m.n += k
	return m.buf.b
}

// gather appends bits off+idx[i] of src; bits off..off+k of it when idx is nil.
func (m *bits) gather(mem memory.Allocator, src []byte, off int, idx []int32, k int) {
	at := m.n
	dst := m.extend(mem, k)
	if idx == nil {
		bitutil.CopyBitmap(src, off, k, dst, at)
		return
	}
	for i, r := range idx {
		j := off + int(r)
		dst[(at+i)>>3] |= (src[j>>3] >> (j & 7) & 1) << ((at + i) & 7)
	}
}

// ones appends k set bits.
func (m *bits) ones(mem memory.Allocator, k int) {
	at := m.n
	dst := m.extend(mem, k)
	bitutil.SetBitsTo(dst, int64(at), int64(k), true)
}

// validity is the null bitmap of one partition of a column; it exists only once a null may be there.
type validity struct {
	bits bits
	on   bool
}

// append adds the validity of k rows to a partition that held `had` rows.
func (v *validity) append(mem memory.Allocator, had int, arr arrow.Array, idx []int32, k int) {
	if arr.NullN() == 0 {
		if v.on {
			v.bits.ones(mem, k)
		}
		return
	}
	if !v.on {
		v.on = true
		v.bits.ones(mem, had)
	}
	v.bits.gather(mem, arr.NullBitmapBytes(), arr.Data().Offset(), idx, k)
}

// take returns the bitmap and the count of nulls among n rows, and empties v. No bitmap: nil, 0.
func (v *validity) take(mem memory.Allocator, n int) (*memory.Buffer, int) {
	if !v.on {
		return nil, 0
	}
	b := v.bits.buf.take(mem)
	v.bits.n, v.on = 0, false
	return b, n - bitutil.CountSetBits(b.Bytes(), 0, n)
}

func (v *validity) free(mem memory.Allocator) {
	v.bits.buf.free(mem)
	*v = validity{}
}
