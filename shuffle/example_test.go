package shuffle_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/actors"
	"manta/shuffle"
)

var words = arrow.NewSchema([]arrow.Field{{Name: "word", Type: arrow.BinaryTypes.String}}, nil)

// A program counts words without any SQL: two tasks send words to three others, equal words to the same one.
func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	// A node with exchanges, and with the functions that its tasks run.
	exchanges := shuffle.NewService(shuffle.Config{})
	node, err := actors.Start(context.Background(), actors.Config{
		DataDir: dir, InProcess: actors.NewHub(), Services: []actors.Service{exchanges},
		Tasks: map[string]actors.TaskFunc{
			"split": func(tc *actors.TaskContext, arg []byte) ([]byte, error) { return split(tc, exchanges, arg) },
			"count": func(tc *actors.TaskContext, arg []byte) ([]byte, error) { return count(tc, exchanges, arg) },
		},
	})
	if err != nil {
		panic(err)
	}
	defer node.Close()

	job, err := node.NewJob(context.Background(), actors.JobSpec{Name: "word count"})
	if err != nil {
		panic(err)
	}
	defer job.Finish(nil)
	here := node.ID()
	edge := shuffle.Edge{
		Job: job.ID(), ID: 1, Mode: shuffle.Streaming,
		Producers: []actors.NodeID{here, here}, Consumers: []actors.NodeID{here, here, here},
	}
	about, err := edge.MarshalBinary()
	if err != nil {
		panic(err)
	}
	start := func(name string, index int) *actors.Task {
		t, err := job.Submit(actors.TaskSpec{Func: name, Arg: append([]byte{byte(index)}, about...), Node: here})
		if err != nil {
			panic(err)
		}
		return t
	}
	tasks := []*actors.Task{start("count", 0), start("count", 1), start("count", 2), start("split", 0), start("split", 1)}
	for _, t := range tasks {
		result, err := t.Wait(context.Background())
		if err != nil {
			panic(err)
		}
		fmt.Print(string(result))
	}
	// Unordered output:
	// to 2
	// be 2
	// or 1
	// not 1
}

// split is a producer.
func split(tc *actors.TaskContext, s *shuffle.Service, arg []byte) ([]byte, error) {
	var edge shuffle.Edge
	if err := edge.UnmarshalBinary(arg[1:]); err != nil {
		return nil, err
	}
	w, err := s.Writer(tc, &edge, int(arg[0]), shuffle.WriterOptions{
		Columns: 1, Schema: words, Route: shuffle.Route{Kind: shuffle.ByKey, Columns: []int{0}},
	})
	if err != nil {
		return nil, err
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, words)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues(strings.Fields([]string{"to be or", "not to be"}[arg[0]]), nil)
	batch := b.NewRecordBatch()
	defer batch.Release()
	if err := w.Write(batch); err != nil {
		w.Abort(err)
		return nil, err
	}
	_, err = w.Close()
	return nil, err
}

// count reads a partition.
func count(tc *actors.TaskContext, s *shuffle.Service, arg []byte) ([]byte, error) {
	var edge shuffle.Edge
	if err := edge.UnmarshalBinary(arg[1:]); err != nil {
		return nil, err
	}
	r, err := s.Reader(tc, &edge, int(arg[0]), words)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	seen := map[string]int{}
	for {
		batch, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		column := batch.Column(0).(*array.String)
		for i := range column.Len() {
			seen[strings.Clone(column.Value(i))]++
		}
		batch.Release()
	}
	var out strings.Builder
	for word, n := range seen {
		fmt.Fprintln(&out, word, n)
	}
	return []byte(out.String()), nil
}
