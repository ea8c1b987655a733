package planner_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner"
)

// A Go program runs SQL on an embedded cluster of two nodes. With Config.Head set
// to the address of a running head, the same calls use that cluster.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "sales.csv")
	if err := os.WriteFile(file, []byte("region,amount\neast,10\nwest,7\neast,5\n"), 0o600); err != nil {
		log.Fatal(err)
	}

	client, err := planner.Connect(ctx, planner.Config{Nodes: 2, CPUs: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	result, err := client.Query(ctx, "SELECT region, sum(amount)::BIGINT AS total FROM sales GROUP BY region ORDER BY region",
		planner.Options{Shuffle: "streaming", Tables: map[string]string{"sales": file}})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Release()
	for result.Next() {
		batch := result.RecordBatch()
		region, total := batch.Column(0).(*array.String), batch.Column(1).(*array.Int64)
		for i := range int(batch.NumRows()) {
			fmt.Println(region.Value(i), total.Value(i))
		}
	}
	if err := result.Err(); err != nil {
		log.Fatal(err)
	}
	done, tasks := result.Progress()
	fmt.Println(done <= tasks)
	// Output:
	// east 15
	// west 7
	// true
}
