package rows

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ErrPartition is the error of a partition column that holds a NULL or a number that is no partition.
var ErrPartition = errors.New("rows: bad partition number")

// ErrSchema is the error of a batch whose columns are not those of the builder.
var ErrSchema = errors.New("rows: schema mismatch")

// Emit takes one finished batch of a partition.
type Emit func(partition int, batch arrow.RecordBatch) error

// column builds one column of all partitions.
type column interface {
	// append adds the rows idx of arr to partition p (borrows both). All rows of arr, in order, when idx is nil.
	append(p int, arr arrow.Array, idx []int32) error
	// scatter appends to every partition p the rows order[start[p]:start[p+1]].
	scatter(arr arrow.Array, order, start []int32) error
	// pick returns the rows idx of arr (borrows both) as an array of its own, with memory of mem.
	pick(mem memory.Allocator, arr arrow.Array, idx []int32) (arrow.Array, error)
	// finish returns what partition p holds, retained, and empties it.
	finish(p int) (arrow.Array, error)
	// bytes is the size of what partition p holds.
	bytes(p int) int64
	// room says whether partition p can take the rows idx of arr without passing the limits of its type.
	room(p int, arr arrow.Array) bool
	release()
}

// Builder collects rows for a fixed number of partitions.
type Builder struct {
	mem    memory.Allocator
	schema *arrow.Schema
	target int64
	cols   []column
	narrow []int   // columns whose type limits what one batch may hold
	width  int64   // bytes of a row when all columns are of fixed width, else 0
	rows   []int   // rows held, by partition
	size   []int64 // bytes held, by partition
	total  int64

	pack  *pack   // nil with few partitions, or columns of other than fixed width
	fan   *fan    // nil with few partitions, or a pack
	order []int32 // scratch: row numbers sorted by partition
	start []int32 // scratch: where each partition's rows begin in order
	rest  []int32 // scratch: order, when some partitions are done with
	whole []whole // scratch
}

// New makes a builder whose batches have the schema's columns and about target bytes.
func New(mem memory.Allocator, schema *arrow.Schema, partitions int, target int64) *Builder {
	b := newPlain(mem, schema, partitions)
	if b.pack = newPack(mem, schema, partitions); b.pack == nil {
		b.fan = newFan(mem, schema, partitions)
	}
	b.SetTarget(target)
	return b
}

// newPlain makes a builder with neither pack nor fan.
func newPlain(mem memory.Allocator, schema *arrow.Schema, partitions int) *Builder {
	b := &Builder{
		mem:    mem,
		schema: schema,
		target: 1,
		rows:   make([]int, partitions),
		size:   make([]int64, partitions),
		start:  make([]int32, partitions+1),
	}
	for _, f := range schema.Fields() {
		b.cols = append(b.cols, newColumn(mem, f.Type, partitions))
	}
	for _, c := range b.cols {
		f, ok := c.(*fixed)
		if !ok {
			b.width = 0
			break
		}
		b.width += int64(f.width)
	}
	for i, c := range b.cols {
		switch c.(type) {
		case *fixed, *boolean, *varlen[int64]:
		default:
			b.narrow = append(b.narrow, i)
		}
	}
	return b
}

// Bytes is the memory of the rows held.
func (b *Builder) Bytes() int64 {
	switch {
	case b.pack != nil:
		return b.total + b.pack.bytes()
	case b.fan != nil:
		return b.total + b.fan.groups.Bytes()
	}
	return b.total
}

// Partitions is their number.
func (b *Builder) Partitions() int { return len(b.rows) }

// SetTarget changes the size of the batches to come.
func (b *Builder) SetTarget(bytes int64) {
	b.target = max(bytes, 1)
	switch {
	case b.pack != nil:
		b.pack.memory = min(b.target, packMost/2) * int64(len(b.rows)) // batches are about twice the average
	case b.fan != nil:
		// A group's rows make batches of about the target. What is left over, since partitions differ, waits for little more.
		b.fan.setTarget(b.target)
		b.target = max(b.target/4, 1)
	}
}

// check refuses a batch whose first columns are not the schema's.
func (b *Builder) check(batch arrow.RecordBatch) error {
	if int(batch.NumCols()) < len(b.cols) {
		return fmt.Errorf("%w: %d columns where %d are due", ErrSchema, batch.NumCols(), len(b.cols))
	}
	for i := range b.cols {
		if got, want := batch.Column(i).DataType(), b.schema.Field(i).Type; !arrow.TypeEqual(got, want) {
			return fmt.Errorf("%w: column %d (%s) has type %s where %s is due", ErrSchema, i, b.schema.Field(i).Name, got, want)
		}
	}
	return nil
}

// Scatter adds each row of batch (borrowed) to the partition that the UINT32 column `by` names. Columns after the schema's are
// dropped.
func (b *Builder) Scatter(batch arrow.RecordBatch, by int, emit Emit) error {
	if by < 0 || by >= int(batch.NumCols()) {
		return fmt.Errorf("%w: no column %d", ErrPartition, by)
	}
	parts, ok := batch.Column(by).(*array.Uint32)
	if !ok {
		return fmt.Errorf("%w: column %d has type %s, not uint32", ErrPartition, by, batch.Column(by).DataType())
	}
	if parts.NullN() > 0 {
		return fmt.Errorf("%w: NULL", ErrPartition)
	}
	return b.ScatterTo(batch, parts.Uint32Values(), emit)
}

// ScatterTo adds each row of batch (borrowed) to the partition that parts (borrowed) has for it.
func (b *Builder) ScatterTo(batch arrow.RecordBatch, parts []uint32, emit Emit) error {
	if err := b.check(batch); err != nil {
		return err
	}
	if int64(len(parts)) != batch.NumRows() {
		return fmt.Errorf("%w: %d for %d rows", ErrPartition, len(parts), batch.NumRows())
	}
	cols := batch.Columns()[:len(b.cols)]
	switch {
	case b.pack != nil:
		return b.pack.add(cols, parts, emit, b.schema)
	case b.fan == nil || len(parts) == 0:
		return b.spread(cols, parts, emit)
	}
	return b.fan.add(cols, parts, len(b.rows), func(_ int, group arrow.RecordBatch) error { return b.part(group, emit) })
}

// spread gives each row of the columns (borrowed) to its partition.
func (b *Builder) spread(cols []arrow.Array, parts []uint32, emit Emit) error {
	if err := b.sort(parts); err != nil {
		return err
	}
	if err := b.pickWhole(cols, emit); err != nil {
		return err
	}
	for p := range b.rows {
		if b.start[p] == b.start[p+1] {
			continue
		}
		if err := b.ensureRoom(p, cols, emit); err != nil {
			return err
		}
		b.rows[p] += int(b.start[p+1] - b.start[p])
	}
	for i, c := range b.cols {
		if err := c.scatter(cols[i], b.order, b.start); err != nil {
			return err
		}
	}
	for p := range b.rows {
		if b.start[p] != b.start[p+1] {
			if err := b.grown(p, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// sort fills order and start: a counting sort of the row numbers by partition, stable.
func (b *Builder) sort(parts []uint32) error {
	n := uint32(len(b.rows))
	clear(b.start)
	count := b.start[1:]
	for _, p := range parts {
		if p >= n {
			return fmt.Errorf("%w: %d of %d", ErrPartition, p, n)
		}
		count[p]++
	}
	if cap(b.order) < len(parts) {
		b.order = make([]int32, len(parts))
	}
	b.order = b.order[:len(parts)]
	for p := 1; p < len(b.start); p++ {
		b.start[p] += b.start[p-1]
	}
	// start[p] moves to the end of partition p while rows are placed, so place from the back and it ends at the start.
	next := b.start[1:]
	for i := len(parts) - 1; i >= 0; i-- {
		p := parts[i]
		next[p]--
		b.order[next[p]] = int32(i)
	}
	copy(b.start, next)
	b.start[len(b.rows)] = int32(len(parts))
	return nil
}

// Add adds all rows of batch (borrowed) to partition p. A batch that is large enough passes whole, without a copy.
func (b *Builder) Add(p int, batch arrow.RecordBatch, emit Emit) error {
	if err := b.check(batch); err != nil {
		return err
	}
	n := int(batch.NumRows())
	if n == 0 {
		return nil
	}
	if err := b.unstage(emit); err != nil {
		return err
	}
	if b.rows[p] == 0 || b.size[p] >= b.target/2 {
		if pass := arrayBytes(batch.Columns()[:len(b.cols)]); pass >= b.target/2 {
			if err := b.flush(p, emit); err != nil {
				return err
			}
			return emit(p, array.NewRecordBatch(b.schema, batch.Columns()[:len(b.cols)], int64(n)))
		}
	}
	if err := b.ensureRoom(p, batch.Columns(), emit); err != nil {
		return err
	}
	b.rows[p] += n
	for i, c := range b.cols {
		if err := c.append(p, batch.Column(i), nil); err != nil {
			return err
		}
	}
	return b.grown(p, emit)
}

// ensureRoom flushes partition p when cols would pass the limit of a column's type.
func (b *Builder) ensureRoom(p int, cols []arrow.Array, emit Emit) error {
	if b.rows[p] == 0 {
		return nil
	}
	for _, i := range b.narrow {
		if !b.cols[i].room(p, cols[i]) {
			return b.flush(p, emit)
		}
	}
	return nil
}

// grown counts what partition p got and emits it when it has reached the target.
func (b *Builder) grown(p int, emit Emit) error {
	size := b.width * int64(b.rows[p])
	if b.width == 0 {
		for _, c := range b.cols {
			size += c.bytes(p)
		}
	}
	b.total += size - b.size[p]
	b.size[p] = size
	if size < b.target {
		return nil
	}
	return b.flush(p, emit)
}

// flush emits what partition p holds, if anything.
func (b *Builder) flush(p int, emit Emit) error {
	n := b.rows[p]
	if n == 0 {
		return nil
	}
	arrs := make([]arrow.Array, 0, len(b.cols))
	defer func() { releaseAll(arrs) }()
	b.total -= b.size[p]
	b.size[p], b.rows[p] = 0, 0
	for _, c := range b.cols {
		a, err := c.finish(p)
		if err != nil {
			return err
		}
		arrs = append(arrs, a)
	}
	return emit(p, array.NewRecordBatch(b.schema, arrs, int64(n)))
}

// Flush emits everything held.
func (b *Builder) Flush(emit Emit) error {
	if err := b.unstage(emit); err != nil {
		return err
	}
	for p := range b.rows {
		if err := b.flush(p, emit); err != nil {
			return err
		}
	}
	return nil
}

// Release frees everything held. The builder is empty and usable after it.
func (b *Builder) Release() {
	for _, c := range b.cols {
		c.release()
	}
	if b.pack != nil {
		b.pack.release()
	}
	if b.fan != nil {
		b.fan.groups.Release()
	}
	clear(b.rows)
	clear(b.size)
	b.total = 0
}

// unstage gives what pack or fan hold to their partitions.
func (b *Builder) unstage(emit Emit) error {
	switch {
	case b.pack != nil:
		return b.pack.flush(emit, b.schema)
	case b.fan != nil:
		return b.unfan(emit)
	}
	return nil
}
