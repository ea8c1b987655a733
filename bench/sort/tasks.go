package sort

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"manta/actors"
	exchange "manta/shuffle"
	"manta/shuffle/keys"
)

// schema is that of records on their way. They are ordered by all of their bytes, so by their keys first.
var schema = arrow.NewSchema([]arrow.Field{{Name: "record", Type: &arrow.FixedSizeBinaryType{ByteWidth: recordBytes}}}, nil)

var order = []keys.Key{{Column: 0}}

// worker is what the tasks share.
type worker struct {
	exchange *exchange.Service
	dir      string
	sorters  chan *sorter // as many as work at once
}

// work is the argument of a task.
type work struct {
	Edge   []byte
	Index  int    // of the producer, or the range
	Sample []byte // records whose order gives the bounds
	Ranges int
}

// done is the result of one.
type done struct {
	Records  int64
	Counters exchange.Counters
	Spilled  int64 // by the sorter
}

func (w *worker) tasks() map[string]actors.TaskFunc {
	task := func(do func(*actors.TaskContext, *work, *exchange.Edge) (*done, error)) actors.TaskFunc {
		return func(tc *actors.TaskContext, arg []byte) ([]byte, error) {
			var a work
			if err := json.Unmarshal(arg, &a); err != nil {
				return nil, err
			}
			var e exchange.Edge
			if err := e.UnmarshalBinary(a.Edge); err != nil {
				return nil, err
			}
			d, err := do(tc, &a, &e)
			if err != nil {
				return nil, err
			}
			return json.Marshal(d)
		}
	}
	return map[string]actors.TaskFunc{"partition": task(w.partition), "sort": task(w.sort)}
}

func input(dir string, i int) string  { return filepath.Join(dir, fmt.Sprintf("input-%03d", i)) }
func output(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("output-%05d", i)) }

// batchOf views records as a batch.
func batchOf(records []byte) arrow.RecordBatch {
	n := len(records) / recordBytes
	data := array.NewData(schema.Field(0).Type, n, []*memory.Buffer{nil, memory.NewBufferBytes(records)}, nil, 0, 0)
	defer data.Release()
	column := array.MakeFromData(data)
	defer column.Release()
	return array.NewRecordBatch(schema, []arrow.Array{column}, int64(n))
}

// readRecords is how many a producer reads at once.
const readRecords = 4096

// partition reads a file and sends its records to their ranges.
func (w *worker) partition(tc *actors.TaskContext, a *work, e *exchange.Edge) (*done, error) {
	sampled := batchOf(a.Sample)
	defer sampled.Release()
	bounds, err := keys.Bounds(memory.DefaultAllocator, sampled, order, a.Ranges)
	if err != nil {
		return nil, err
	}
	defer bounds.Release()
	out, err := w.exchange.Writer(tc, e, a.Index, exchange.WriterOptions{
		Columns: 1, Schema: schema, Route: exchange.Route{Kind: exchange.ByRange, Keys: order, Bounds: bounds},
	})
	if err != nil {
		return nil, err
	}
	d := &done{}
	if err := w.feed(out, a.Index, d); err != nil {
		out.Abort(err)
		return nil, err
	}
	d.Counters, err = out.Close()
	return d, err
}

func (w *worker) feed(out *exchange.Writer, i int, d *done) error {
	f, err := os.Open(input(w.dir, i))
	if err != nil {
		return err
	}
	defer f.Close()
	buffer := make([]byte, readRecords*recordBytes)
	for {
		n, err := io.ReadFull(f, buffer)
		if err == io.EOF {
			return nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return err
		}
		b := batchOf(buffer[:n])
		err = out.Write(b)
		b.Release()
		if err != nil {
			return err
		}
		d.Records += int64(n / recordBytes)
	}
}

// sort reads a range, sorts it and writes its file.
func (w *worker) sort(tc *actors.TaskContext, a *work, e *exchange.Edge) (*done, error) {
	in, err := w.exchange.Reader(tc, e, a.Index, schema)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s := <-w.sorters // there is one: no more ranges are sorted at once
	defer func() {
		s.reset()
		w.sorters <- s
	}()
	before := s.spilled
	d := &done{}
	for {
		b, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		column := b.Column(0).(*array.FixedSizeBinary)
		from := column.Offset() * recordBytes
		err = s.add(column.Data().Buffers()[1].Bytes()[from : from+column.Len()*recordBytes])
		d.Records += b.NumRows()
		b.Release()
		if err != nil {
			return nil, err
		}
	}
	f, err := os.Create(output(w.dir, a.Index))
	if err != nil {
		return nil, err
	}
	if err := s.finish(f); err != nil {
		_ = f.Close()
		return nil, err
	}
	d.Spilled, d.Counters = s.spilled-before, in.Close()
	return d, f.Close()
}
