package objectstore_test

import (
	"fmt"
	"log"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/objectstore"
)

// A store holds values for as long as somebody holds them, and gives them back where they lie.
func Example() {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := objectstore.Open(objectstore.Config{Dir: dir, MemoryLimit: 64 << 20})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	id, err := store.Put("my job", []byte("hello, "), []byte("world"))
	if err != nil {
		log.Fatal(err)
	}
	object, err := store.Get(id) // pinned: its bytes stay where they are
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", object.Bytes())
	object.Release()

	if err := store.Release(id, "my job"); err != nil { // nobody holds it any more
		log.Fatal(err)
	}
	fmt.Println(store.Stats().Objects, "objects")
	// Output:
	// hello, world
	// 0 objects
}

// A record batch is copied once when it is put, and not at all when it is read.
func ExampleStore_PutBatch() {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := objectstore.Open(objectstore.Config{Dir: dir})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	batch := builder.NewRecordBatch()
	id, err := store.PutBatch("my job", batch)
	batch.Release()
	if err != nil {
		log.Fatal(err)
	}

	again, err := store.GetBatch(id)
	if err != nil {
		log.Fatal(err)
	}
	defer again.Release()
	fmt.Println(again.Column(0))
	// Output: [1 2 3]
}
