package rows

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// pack collects rows of fixed-width columns for many partitions as rows: the values of one lie side by side. To write one then
// touches one place in memory that is not in the core's cache, not one for each column, and what is known of a partition is
// so little that the cache holds it for all. A partition's rows become columns when they leave.
//
// Memory is taken in pages and given to partitions in chunks. When there is no more the partition that has most leaves, so
// partitions have all sizes up to twice the average, and batches are twice as large as with equal shares. That is so
// whatever the skew.
type pack struct {
	mem     memory.Allocator
	cols    []packCol
	words   []int // columns of 8 bytes: they lie side by side
	values  int   // bytes of a row's values as columns
	width   int   // of a row: its values, and from the first null on a byte for each column that says whether it is valid
	nulls   bool
	memory  int64 // bytes that it may hold
	each    int   // rows of a chunk
	limit   int   // chunks, when memory is full
	pages   [][]byte
	made    int              // chunks in pages
	free    []unsafe.Pointer // chunks
	cursors []cursor         // by partition
	chunks  [][]unsafe.Pointer
	count   []int32 // of each partition's chunks, side by side
	full    []int   // partitions that have enough for a batch
	at      [packBlock]unsafe.Pointer
}

type packCol struct {
	width, offset int // in a row
	bit           bool
	dt            arrow.DataType
}

// cursor is where a partition's next row goes.
type cursor struct {
	at   unsafe.Pointer // nil when left is 0
	left int            // rows that the last chunk has room for
}

const (
	packFrom  = 16        // partitions from which on rows are faster than columns
	packBlock = 256       // rows whose places are in the cache while column after column is written to them
	packChunk = 4 << 10   // bytes of a chunk, about: enough that the processor reads ahead
	packPage  = 256 << 10 // bytes of the first page; others are as large as all before, up to
	packPages = 8 << 20
	packMost  = 1 << 20 // a batch leaves at this size, whatever memory is left
)

// newPack returns nil where columns are better, or the only way.
func newPack(mem memory.Allocator, schema *arrow.Schema, partitions int) *pack {
	if partitions < packFrom || schema.NumFields() == 0 {
		return nil
	}
	k := &pack{mem: mem, cursors: make([]cursor, partitions), chunks: make([][]unsafe.Pointer, partitions), count: make([]int32, partitions)}
	for _, f := range schema.Fields() {
		col := packCol{dt: f.Type}
		switch c := newColumn(mem, f.Type, 0).(type) {
		case *fixed:
			col.width = c.width
		case *boolean:
			col.width, col.bit = 1, true
		default:
			return nil
		}
		if col.width == 8 {
			k.words = append(k.words, len(k.cols))
		}
		k.cols = append(k.cols, col)
		k.values += col.width
	}
	return k
}

// layout places the columns in a row, the widest first so that each lies where its values may.
func (k *pack) layout() {
	at := 0
	for _, w := range []int{16, 8, 4, 2, 1, 0} {
		for i := range k.cols {
			c := &k.cols[i]
			if c.width == w || w == 0 && c.width&(c.width-1) != 0 || w == 16 && c.width > 16 && c.width&(c.width-1) == 0 {
				c.offset = at
				at += c.width
			}
		}
	}
	if k.nulls {
		at += len(k.cols)
	}
	k.width = pad(at)
	// A few chunks for each partition, so that what is unused of the last one is little.
	k.each = max(1, int(min(packChunk, k.memory/4/int64(len(k.cursors))))/k.width)
	k.limit = max(8, int(k.memory)/(k.each*k.width))
}

// bytes is the memory that it holds.
func (k *pack) bytes() (n int64) {
	for _, p := range k.pages {
		n += int64(len(p))
	}
	return n
}

// add copies the rows of columns (borrowed), whose partitions are parts (borrowed).
func (k *pack) add(cols []arrow.Array, parts []uint32, emit Emit, schema *arrow.Schema) error {
	last := uint32(0)
	for _, p := range parts {
		last = max(last, p)
	}
	if last >= uint32(len(k.cursors)) {
		return fmt.Errorf("%w: %d of %d", ErrPartition, last, len(k.cursors))
	}
	if err := k.ready(cols, emit, schema); err != nil {
		return err
	}
	for from := 0; from < len(parts); {
		n, err := k.room(emit, schema)
		if err != nil {
			return err
		}
		n = min(n, packBlock, len(parts)-from)
		k.place(parts[from : from+n])
		k.write(cols, from, n)
		from += n
		for _, p := range k.full {
			if err := k.leave(p, emit, schema); err != nil {
				return err
			}
		}
		k.full = k.full[:0]
	}
	return nil
}

// ready gives rows room for nulls once there are some, and memory back that is no longer its.
func (k *pack) ready(cols []arrow.Array, emit Emit, schema *arrow.Schema) error {
	nulls := k.nulls
	for _, c := range cols {
		nulls = nulls || c.NullN() > 0
	}
	if nulls != k.nulls || k.bytes() > max(k.memory, int64(8*k.each*k.width)) {
		if err := k.flush(emit, schema); err != nil {
			return err
		}
	}
	if k.made == 0 {
		k.nulls = nulls
		k.layout()
	}
	return nil
}

// room returns how many chunks are free, at least one: as many rows can be placed, wherever they go.
func (k *pack) room(emit Emit, schema *arrow.Schema) (int, error) {
	for len(k.free) < packBlock && k.made < k.limit {
		k.grow()
	}
	for len(k.free) < min(packBlock, max(1, k.made/8)) {
		if err := k.leave(k.most(), emit, schema); err != nil {
			return 0, err
		}
	}
	return len(k.free), nil
}

// most is the partition that has most chunks.
func (k *pack) most() (most int) {
	top := int32(-1)
	for p, n := range k.count {
		if n > top {
			most, top = p, n
		}
	}
	return most
}

// grow takes one more page.
func (k *pack) grow() {
	chunk := k.each * k.width
	n := max(1, min(max(packPage, k.made*chunk), packPages)/chunk)
	n = min(n, k.limit-k.made)
	page := k.mem.Allocate(n * chunk)
	k.pages = append(k.pages, page)
	for i := range n {
		k.free = append(k.free, unsafe.Pointer(&page[i*chunk]))
	}
	k.made += n
}

// place takes a place for each of the rows.
func (k *pack) place(parts []uint32) {
	for i, p := range parts {
		c := &k.cursors[p]
		if c.left == 0 {
			k.extend(int(p))
		}
		k.at[i] = c.at
		if c.left--; c.left > 0 {
			c.at = unsafe.Add(c.at, k.width)
		} else {
			c.at = nil // what is behind is somebody else's
		}
	}
}

func (k *pack) extend(p int) {
	last := len(k.free) - 1
	chunk := k.free[last]
	k.free = k.free[:last]
	k.cursors[p] = cursor{chunk, k.each}
	k.chunks[p] = append(k.chunks[p], chunk)
	k.count[p]++
	if n := len(k.chunks[p]) - 1; n > 0 && n*k.each*k.values >= packMost && (n-1)*k.each*k.values < packMost {
		k.full = append(k.full, p)
	}
}

// write copies n rows of columns (borrowed) to their places.
func (k *pack) write(cols []arrow.Array, from, n int) {
	rest := k.words
	for ; len(rest) >= 4; rest = rest[4:] {
		var src [4][]uint64
		for j, i := range rest[:4] {
			data := cols[i].Data()
			src[j] = as[uint64](data.Buffers()[1].Bytes())[data.Offset()+from:][:n]
		}
		writeFour(k.at[:n], k.cols[rest[0]].offset, src[0], src[1], src[2], src[3])
	}
	for _, i := range rest {
		k.writeOne(i, cols[i], from, n)
	}
	for i := range k.cols {
		if c := &k.cols[i]; c.width != 8 {
			k.writeOne(i, cols[i], from, n)
		}
		if k.nulls {
			k.writeValid(i, cols[i], from, n)
		}
	}
}

// writeFour is writeOf for four columns that lie side by side.
func writeFour(at []unsafe.Pointer, offset int, a, b, c, d []uint64) {
	a, b, c, d = a[:len(at)], b[:len(at)], c[:len(at)], d[:len(at)]
	for r, p := range at {
		to := (*[4]uint64)(unsafe.Add(p, offset))
		to[0], to[1], to[2], to[3] = a[r], b[r], c[r], d[r]
	}
}

// writeOne copies n values of column i to the places of their rows.
func (k *pack) writeOne(i int, arr arrow.Array, from, n int) {
	col := &k.cols[i]
	at := k.at[:n]
	data := arr.Data()
	if col.bit {
		bits, off := data.Buffers()[1].Bytes(), data.Offset()+from
		for r, p := range at {
			*(*byte)(unsafe.Add(p, col.offset)) = bits[(off+r)>>3] >> ((off + r) & 7) & 1
		}
	} else {
		src := data.Buffers()[1].Bytes()[(data.Offset()+from)*col.width:]
		switch col.width {
		case 8:
			writeOf[uint64](at, src, col.offset)
		case 4:
			writeOf[uint32](at, src, col.offset)
		case 16:
			writeOf[[2]uint64](at, src, col.offset)
		case 2:
			writeOf[uint16](at, src, col.offset)
		case 1:
			writeOf[uint8](at, src, col.offset)
		default:
			for r, p := range at {
				copy(unsafe.Slice((*byte)(unsafe.Add(p, col.offset)), col.width), src[r*col.width:])
			}
		}
	}
}

// writeValid notes which of n values of column i are valid.
func (k *pack) writeValid(i int, arr arrow.Array, from, n int) {
	offset := k.width - len(k.cols) + i // the last bytes
	for r, p := range k.at[:n] {
		valid := byte(0)
		if arr.IsValid(from + r) {
			valid = 1
		}
		*(*byte)(unsafe.Add(p, offset)) = valid
	}
}

func writeOf[T any](at []unsafe.Pointer, bytes []byte, offset int) {
	src := as[T](bytes)[:len(at)]
	for r, p := range at {
		*(*T)(unsafe.Add(p, offset)) = src[r]
	}
}

// leave emits what partition p holds, as columns in one slab.
func (k *pack) leave(p int, emit Emit, schema *arrow.Schema) error {
	chunks := k.chunks[p]
	n := len(chunks)*k.each - k.cursors[p].left
	if n == 0 {
		return nil
	}
	size := 0
	for _, c := range k.cols {
		size += pad(c.width * n)
	}
	slab := newSlab(k.mem, size)
	outs := make([][]byte, len(k.cols))
	for i, c := range k.cols {
		outs[i] = slab.Allocate(c.width * n)
	}
	for j, chunk := range chunks {
		k.read(outs, chunk, j*k.each, min(k.each, n-j*k.each))
	}
	arrs := make([]arrow.Array, len(k.cols))
	for i, c := range k.cols {
		valid, nulls := k.validity(i, chunks, n)
		values := memory.NewBufferWithAllocator(outs[i], slab)
		if c.bit {
			values = k.packBits(values, n)
		}
		arrs[i] = makeArray(c.dt, n, nulls, valid, values)
	}
	slab.close()
	k.free = append(k.free, chunks...)
	k.chunks[p], k.count[p], k.cursors[p] = chunks[:0], 0, cursor{}
	batch := array.NewRecordBatch(schema, arrs, int64(n))
	releaseAll(arrs)
	return emit(p, batch)
}

// read makes values of columns out of the rows of a chunk.
func (k *pack) read(outs [][]byte, chunk unsafe.Pointer, at, rows int) {
	rest := k.words
	for ; len(rest) >= 4; rest = rest[4:] {
		var dst [4][]uint64
		for j, i := range rest[:4] {
			dst[j] = as[uint64](outs[i])[at:][:rows]
		}
		readFour(dst[0], dst[1], dst[2], dst[3], unsafe.Add(chunk, k.cols[rest[0]].offset), k.width)
	}
	for i := range k.cols {
		if c := &k.cols[i]; c.width != 8 || slices.Contains(rest, i) {
			c.read(outs[i][at*c.width:][:rows*c.width], chunk, k.width, rows)
		}
	}
}

// readFour is readOf for four columns that lie side by side.
func readFour(a, b, c, d []uint64, from unsafe.Pointer, stride int) {
	b, c, d = b[:len(a)], c[:len(a)], d[:len(a)]
	for r := range a {
		row := (*[4]uint64)(unsafe.Add(from, r*stride))
		a[r], b[r], c[r], d[r] = row[0], row[1], row[2], row[3]
	}
}

// read makes the values of a column out of the rows of a chunk.
func (c *packCol) read(dst []byte, chunk unsafe.Pointer, stride, rows int) {
	from := unsafe.Add(chunk, c.offset)
	switch c.width {
	case 8:
		readOf[uint64](dst, from, stride, rows)
	case 4:
		readOf[uint32](dst, from, stride, rows)
	case 16:
		readOf[[2]uint64](dst, from, stride, rows)
	case 2:
		readOf[uint16](dst, from, stride, rows)
	case 1:
		readOf[uint8](dst, from, stride, rows)
	default:
		for r := range rows {
			copy(dst[r*c.width:(r+1)*c.width], unsafe.Slice((*byte)(unsafe.Add(from, r*stride)), c.width))
		}
	}
}

func readOf[T any](bytes []byte, from unsafe.Pointer, stride, rows int) {
	dst := as[T](bytes)[:rows]
	for r := range dst {
		dst[r] = *(*T)(unsafe.Add(from, r*stride))
	}
}

// validity is the null bitmap of column i of n rows, and its nulls; nil and 0 when all are valid.
func (k *pack) validity(i int, chunks []unsafe.Pointer, n int) (*memory.Buffer, int) {
	if !k.nulls {
		return nil, 0
	}
	valid := make([]byte, n)
	for j, chunk := range chunks {
		rows := min(k.each, n-j*k.each)
		readOf[uint8](valid[j*k.each:][:rows], unsafe.Add(chunk, k.width-len(k.cols)+i), k.width, rows)
	}
	b := k.packBits(memory.NewBufferBytes(valid), n)
	nulls := 0
	for _, v := range valid {
		nulls += 1 - int(v)
	}
	if nulls == 0 {
		b.Release()
		return nil, 0
	}
	return b, nulls
}

// packBits makes a bitmap of n bytes that are 0 or 1 (taken).
func (k *pack) packBits(bytes *memory.Buffer, n int) *memory.Buffer {
	defer bytes.Release()
	dst := k.mem.Allocate((n + 7) / 8)
	clear(dst)
	for i, v := range bytes.Bytes()[:n] {
		dst[i>>3] |= v << (i & 7)
	}
	return memory.NewBufferWithAllocator(dst, k.mem)
}

// flush emits everything and gives the memory back.
func (k *pack) flush(emit Emit, schema *arrow.Schema) error {
	for p := range k.chunks {
		if err := k.leave(p, emit, schema); err != nil {
			return err
		}
	}
	k.release()
	return nil
}

func (k *pack) release() {
	for _, p := range k.pages {
		k.mem.Free(p)
	}
	k.pages, k.free, k.made = nil, nil, 0
	clear(k.cursors)
	clear(k.chunks)
	clear(k.count)
	clear(k.at[:])
	k.full = k.full[:0]
}
