package planner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/wire"
	"manta/shuffle"
	batches "manta/shuffle/rows"
)

// stageFunc is the name under which every node runs stage tasks.
const stageFunc = "sql.stage"

// stageRun is one stage task while it runs. It is owned by the task's goroutine.
type stageRun struct {
	service *Service
	tc      *actors.TaskContext
	task    *wire.StageTask
	conn    *kernel.Conn
	inputs  []*input
	outputs []*output
	started time.Time
	spilled int64 // bytes that the node's store had ever spilled at the start
	stalls  int64 // times that a job had ever stood still on the node at the start
	rows    int64
	early   bool // every consumer had enough before the fragment ended
}

// input is an exchange that the fragment reads as a view.
type input struct {
	edge     uint32
	reader   *shuffle.Reader
	schema   *arrow.Schema
	drop     func()
	failed   error // of the task
	counters shuffle.Counters
}

// output is an exchange that the fragment's rows are written to.
type output struct {
	edge     uint32
	columns  []int // of the fragment's output, routing column last where there is one
	schema   *arrow.Schema
	writer   *shuffle.Writer
	closed   bool // its consumers have enough
	counters shuffle.Counters
}

// runStage runs one stage task: it opens the exchanges, streams the fragment's
// result into the outputs, and ends every exchange in one way or another.
func (s *Service) runStage(tc *actors.TaskContext, arg []byte) (result []byte, err error) {
	r := &stageRun{service: s, tc: tc, task: &wire.StageTask{}, started: time.Now(), spilled: tc.Node.Store().Stats().BytesSpilled,
		stalls: s.shuffle.Stats().Stalls}
	if err := proto.Unmarshal(arg, r.task); err != nil {
		return nil, fmt.Errorf("planner: stage task: %w", err)
	}
	defer func() {
		if err != nil {
			r.abort(err)
			err = memoryKind(err)
		}
	}()
	if r.task.Serve {
		return r.serve()
	}
	if err := checkPins(r.task.Files); err != nil {
		return nil, err
	}
	db, k := s.exec, stageTasks
	if r.task.Whole {
		k = wholeTasks
		if db, err = s.wholeDB(); err != nil {
			return nil, err
		}
	}
	s.memory.begin(k)
	defer s.memory.end(k)
	if r.conn, err = db.Connect(); err != nil {
		return nil, err
	}
	defer r.conn.Close()
	defer func() {
		for _, i := range r.inputs {
			i.failed = err
		}
		r.dropInputs()
	}()
	if err := r.open(); err != nil {
		return nil, err
	}
	if hook := s.opened; hook != nil {
		hook(tc, int(r.task.Stage), int(r.task.Index))
	}
	if err := r.stream(); err != nil {
		return nil, err
	}
	r.dropInputs()
	tc.Leave() // what waits for credit now, and the report, need not wait for a slot too
	for _, o := range r.outputs {
		c, err := o.writer.Close()
		if err != nil {
			return nil, err
		}
		o.counters = c
	}
	return proto.Marshal(r.stats())
}

// serve hands out what a task has stored in an attempt before.
func (r *stageRun) serve() ([]byte, error) {
	for _, out := range r.task.Outputs {
		edge, err := decodeEdge(out.Edge)
		if err != nil {
			return nil, err
		}
		o := &output{edge: edge.ID}
		readers := make([]int, len(out.Readers))
		for i, p := range out.Readers {
			readers[i] = int(p)
		}
		if o.writer, err = r.service.shuffle.Serve(r.tc, edge, int(out.Producer), readers); err != nil {
			return nil, err
		}
		r.outputs = append(r.outputs, o)
	}
	for _, o := range r.outputs {
		var err error
		if o.counters, err = o.writer.Close(); err != nil {
			return nil, err
		}
	}
	return proto.Marshal(r.stats())
}

// open runs the setup statements and opens every exchange of the task.
func (r *stageRun) open() error {
	if err := makeTables(r.tc, r.conn, r.task.Setup); err != nil {
		return err
	}
	for _, in := range r.task.Inputs {
		edge, err := decodeEdge(in.Edge)
		if err != nil {
			return err
		}
		schema, err := r.service.schemas.of(r.tc, r.conn, in.Types)
		if err != nil {
			return err
		}
		reader, err := r.service.shuffle.Reader(r.tc, edge, int(in.Partition), schema)
		if err != nil {
			return err
		}
		i := &input{edge: edge.ID, reader: reader, schema: schema}
		if i.drop, err = r.conn.RegisterStream(in.View, i); err != nil {
			reader.Close()
			return err
		}
		r.inputs = append(r.inputs, i)
	}
	schema, err := r.schema()
	if err != nil {
		return err
	}
	for _, out := range r.task.Outputs {
		o, err := r.openOutput(out, schema)
		if err != nil {
			return err
		}
		r.outputs = append(r.outputs, o)
	}
	return nil
}

// schema is the schema of the fragment's rows.
func (r *stageRun) schema() (*arrow.Schema, error) {
	if len(r.task.Types) == 0 {
		return ofQuery(r.tc, r.conn, r.task.Sql)
	}
	return r.service.schemas.of(r.tc, r.conn, r.task.Types)
}

// openOutput opens one exchange for writing; fragment is the schema of the fragment's rows.
func (r *stageRun) openOutput(out *wire.Output, fragment *arrow.Schema) (*output, error) {
	edge, err := decodeEdge(out.Edge)
	if err != nil {
		return nil, err
	}
	o := &output{edge: edge.ID}
	var fields []arrow.Field
	for _, c := range out.Columns {
		o.columns = append(o.columns, int(c))
		f := fragment.Field(int(c))
		f.Name = fmt.Sprintf("c%d", len(fields))
		fields = append(fields, f)
	}
	data := arrow.NewSchema(fields, nil)
	o.schema = data
	route := shuffle.Route{Partition: int(out.Partition)}
	switch out.Route {
	case wire.RouteKind_BY_COLUMN:
		route.Kind, route.Column = shuffle.ByColumn, len(fields)
		o.columns = append(o.columns, int(out.Column))
		o.schema = arrow.NewSchema(append(fields, fragment.Field(int(out.Column))), nil)
	case wire.RouteKind_TO_ALL:
		route.Kind = shuffle.ToAll
	case wire.RouteKind_TO:
		route.Kind = shuffle.To
	default:
		return nil, fmt.Errorf("planner: unknown route %v", out.Route)
	}
	o.writer, err = r.service.shuffle.Writer(r.tc, edge, int(out.Producer), shuffle.WriterOptions{
		Columns: len(fields), Route: route, Schema: data, Keep: true,
	})
	return o, err
}

// stream runs the fragment and writes its rows to the outputs until it ends or nobody wants more.
func (r *stageRun) stream() error {
	rows, err := r.conn.Query(r.tc, r.task.Sql)
	if err != nil {
		return r.cause(r.spoken(err))
	}
	defer rows.Close()
	for {
		batch, err := rows.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return r.cause(r.spoken(err))
		}
		r.rows += batch.NumRows()
		open, err := r.pieces(batch)
		batch.Release()
		if err != nil {
			return err
		}
		if !open {
			r.early = true
			return nil
		}
	}
}

// pieces writes a batch (borrowed), in pieces if batches are to be small, and reports whether an output still wants rows.
func (r *stageRun) pieces(batch arrow.RecordBatch) (open bool, err error) {
	most := int64(r.service.config.batchRows)
	if most == 0 || batch.NumRows() <= most || batches.HasUnion(batch.Schema()) {
		return r.write(batch)
	}
	for at := int64(0); at < batch.NumRows(); at += most {
		piece := batch.NewSlice(at, min(at+most, batch.NumRows()))
		open, err = r.write(piece)
		piece.Release()
		if err != nil || !open {
			return open, err
		}
	}
	return open, nil
}

// write gives one batch (borrowed) to every output that still wants rows, and reports whether one does.
func (r *stageRun) write(batch arrow.RecordBatch) (open bool, err error) {
	for _, o := range r.outputs {
		if o.closed {
			continue
		}
		columns := make([]arrow.Array, len(o.columns))
		for i, c := range o.columns {
			columns[i] = batch.Column(c)
		}
		part := array.NewRecordBatch(o.schema, columns, batch.NumRows())
		err := o.writer.Write(part)
		part.Release()
		switch {
		case errors.Is(err, shuffle.ErrClosed):
			o.closed = true
		case err != nil:
			return false, err
		default:
			open = true
		}
	}
	return open, nil
}

// cause prefers the reason for which the task was ended over the interrupt that ended it.
func (r *stageRun) cause(err error) error {
	if r.tc.Err() != nil {
		return errors.Join(context.Cause(r.tc), err)
	}
	return err
}

// fragmentColumn is where DuckDB names a column of a fragment, which the user's query does not have.
var fragmentColumn = regexp.MustCompile(` when casting from source column c\d+\b`)

// spoken is an error of DuckDB in terms of the user's query: without the names of
// a fragment, which the user has never seen, and with the place in the query.
func (r *stageRun) spoken(err error) error {
	sql, ok := err.(*kernel.Error)
	if !ok {
		return err
	}
	if r.task.Whole { // it is the user's own text
		return &kernel.Error{Type: sql.Type, Message: located(sql.Message, sql.Position)}
	}
	text := fragmentColumn.ReplaceAllString(sql.Message, "")
	return &kernel.Error{Type: sql.Type, Message: located(text, plan.Origin(r.task.Sql, sql.Position))}
}

// dropInputs closes every input; those not read to their end tell their producers to stop. Idempotent.
func (r *stageRun) dropInputs() {
	for _, i := range r.inputs {
		if i.drop != nil {
			i.drop()
			i.drop = nil
		}
	}
}

// abort fails every output that has not ended.
func (r *stageRun) abort(err error) {
	for _, o := range r.outputs {
		o.writer.Abort(err)
	}
}

func (r *stageRun) stats() *wire.TaskStats {
	st := &wire.TaskStats{
		Node:              string(r.tc.Node.ID()),
		ElapsedNanos:      int64(time.Since(r.started)),
		RowsOut:           r.rows,
		ClosedEarly:       r.early,
		PeakExchangeBytes: r.service.shuffle.Stats().PeakBusy,
		PeakRssBytes:      peakRSS(),

		StoreSpilledBefore: r.spilled,
		StoreSpilledAfter:  r.tc.Node.Store().Stats().BytesSpilled,
		StallsBefore:       r.stalls,
		StallsAfter:        r.service.shuffle.Stats().Stalls,
	}
	for _, i := range r.inputs {
		st.Inputs = append(st.Inputs, &wire.EdgeCounters{Edge: i.edge, Counters: countersToWire(i.counters)})
	}
	for _, o := range r.outputs {
		st.Outputs = append(st.Outputs, &wire.EdgeCounters{Edge: o.edge, Counters: countersToWire(o.counters), Kept: o.writer.Kept()})
	}
	return st
}

// Schema, Next and Close make an input a kernel.Stream.
func (i *input) Schema() *arrow.Schema { return i.schema }

// Next returns the next batch, retained, or io.EOF.
func (i *input) Next() (arrow.RecordBatch, error) { return i.reader.Next() }

// Close ends the reading, before the end of the exchange or at it.
func (i *input) Close() {
	if i.failed != nil {
		i.counters = i.reader.Abort(i.failed)
		return
	}
	i.counters = i.reader.Close()
}

func decodeEdge(b []byte) (*shuffle.Edge, error) {
	e := &shuffle.Edge{}
	if err := e.UnmarshalBinary(b); err != nil {
		return nil, fmt.Errorf("planner: edge: %w", err)
	}
	return e, nil
}

// checkPins refuses a task whose files are not the ones that were planned for:
// row counts, minima and maxima of the planned files are folded into the fragment.
func checkPins(pins []*wire.FilePin) error {
	for _, pin := range pins {
		info, err := os.Stat(pin.Path)
		if err != nil {
			return fmt.Errorf("planner: file %s was there when the query was planned: %w", pin.Path, err)
		}
		if info.Size() != pin.Size || info.ModTime().UnixNano() != pin.ModifiedNanos {
			return fmt.Errorf("planner: file %s changed after the query was planned; run the query again", pin.Path)
		}
	}
	return nil
}

// remote reports whether a path is a URL, which os.Stat cannot pin.
func remote(path string) bool { return strings.Contains(path, "://") }
