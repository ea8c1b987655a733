package rows

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/objectstore/block"
)

// wide makes a batch of BIGINT and VARCHAR columns, the texts of 5 to 25 bytes, and a random partition column.
func wide(r *rand.Rand, ints, texts, rows, partitions int) arrow.RecordBatch {
	var fields []arrow.Field
	for i := range ints + texts {
		dt := arrow.DataType(arrow.PrimitiveTypes.Int64)
		if i >= ints {
			dt = arrow.BinaryTypes.String
		}
		fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: dt})
	}
	fields = append(fields, arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	const text = "furiously regular deposits"
	for range rows {
		for i := range ints {
			b.Field(i).(*array.Int64Builder).Append(r.Int64())
		}
		for i := range texts {
			b.Field(ints + i).(*array.StringBuilder).Append(text[:5+r.IntN(20)])
		}
		b.Field(ints + texts).(*array.Uint32Builder).Append(uint32(r.IntN(partitions)))
	}
	return b.NewRecordBatch()
}

// The partitioning kernel alone, on batches of DuckDB's size, which come from memory as a table's would: together they are
// larger than a core's caches.
func BenchmarkScatter(b *testing.B) {
	for _, shape := range []struct {
		name        string
		ints, texts int
	}{{"8ints", 8, 0}, {"4ints2texts", 4, 2}} {
		for _, partitions := range []int{2, 16, 128, 1024} {
			b.Run(fmt.Sprintf("%s/partitions=%d", shape.name, partitions), func(b *testing.B) {
				benchScatter(b, shape.ints, shape.texts, partitions)
			})
		}
	}
}

func benchScatter(b *testing.B, ints, texts, partitions int) {
	const rows = 2048
	r := rand.New(rand.NewPCG(1, 2))
	var in []arrow.RecordBatch
	var bytes int64
	for bytes < 16<<20 {
		in = append(in, wide(r, ints, texts, rows, partitions))
		bytes += arrayBytes(in[len(in)-1].Columns()[:ints+texts])
	}
	each := bytes / int64(len(in))
	schema := arrow.NewSchema(in[0].Schema().Fields()[:ints+texts], nil)
	k := New(block.NewPool(), schema, partitions, min(1<<20, 24<<20/int64(partitions)))
	defer k.Release()
	drop := func(_ int, x arrow.RecordBatch) error { x.Release(); return nil }
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	scatter := func(i int) {
		if err := k.Scatter(in[i%len(in)], ints+texts, drop); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 8 * len(in) { // until memory is there and partitions are as full as they get
		scatter(i)
	}
	b.SetBytes(each)
	before := threadTime()
	n := 0
	for b.Loop() {
		scatter(n)
		n++
	}
	// Unlike the time on the wall, it tells the same on a busy machine.
	used := threadTime() - before
	b.ReportMetric(float64(each*int64(n))/1e9/used.Seconds(), "GB/cpu-s")
	for _, x := range in {
		x.Release()
	}
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
