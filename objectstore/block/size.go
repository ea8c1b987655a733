package block

import (
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Size is the exact length of the block that EncodeTo writes. It copies no data.
func Size(mem memory.Allocator, schema *arrow.Schema, batches ...arrow.RecordBatch) (int64, error) {
	var n counter
	err := EncodeTo(&n, mem, schema, batches...)
	return int64(n), err
}

// EncodeTo writes the block of batches (borrowed), all of the schema, to w in pieces that are w's until Write returns.
func EncodeTo(w io.Writer, mem memory.Allocator, schema *arrow.Schema, batches ...arrow.RecordBatch) error {
	out := ipc.NewWriter(w, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	for _, b := range batches {
		if err := out.Write(b); err != nil {
			_ = out.Close()
			return fmt.Errorf("block: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return nil
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
