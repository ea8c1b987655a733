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

// wide makes a batch of 8 INT64 columns and a random partition column.
func wide(rows, partitions int) arrow.RecordBatch {
	var fields []arrow.Field
	for i := range 8 {
		fields = append(fields, arrow.Field{Name: fmt.Sprint(i), Type: arrow.PrimitiveTypes.Int64})
	}
	fields = append(fields, arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32})
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	r := rand.New(rand.NewPCG(1, 2))
	for range rows {
		for i := range 8 {
			b.Field(i).(*array.Int64Builder).Append(r.Int64())
		}
		b.Field(8).(*array.Uint32Builder).Append(uint32(r.IntN(partitions)))
	}
	return b.NewRecordBatch()
}

// The partitioning kernel alone, on batches of DuckDB's size.
func BenchmarkScatter(b *testing.B) {
	for _, partitions := range []int{2, 16, 128, 1024} {
		for _, rows := range []int{2048, 16384} {
			b.Run(fmt.Sprintf("partitions=%d/rows=%d", partitions, rows), func(b *testing.B) {
				in := wide(rows, partitions)
				defer in.Release()
				schema := arrow.NewSchema(in.Schema().Fields()[:8], nil)
				k := New(block.NewPool(), schema, partitions, min(1<<20, 64<<20/int64(partitions)))
				defer k.Release()
				emit := func(_ int, x arrow.RecordBatch) error { x.Release(); return nil }
				b.SetBytes(int64(rows * 64))
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				before := threadTime()
				for b.Loop() {
					if err := k.Scatter(in, 8, emit); err != nil {
						b.Fatal(err)
					}
				}
				// Unlike the time on the wall, it tells the same on a busy machine.
				used := threadTime() - before
				b.ReportMetric(float64(rows*64*b.N)/1e9/used.Seconds(), "GB/cpu-s")
			})
		}
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
