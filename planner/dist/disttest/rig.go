package disttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"manta/planner/dist"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/split"
)

// Rig runs distributed plans without a cluster: real fragments in a real DuckDB,
// one task after the other, with slices of batches for exchanges. What it gives
// must be what DuckDB gives for the original text.
type Rig struct {
	T        *testing.T
	Planning *kernel.Conn
	Tables   []string // the statements that make the tables' views
	Session  string   // statements that every task's connection begins with

	running *kernel.DB
	views   int
}

// New opens a rig that lasts as long as the test.
func New(t *testing.T) *Rig {
	planning, err := kernel.Open(kernel.Config{DisabledOptimizers: kernel.PlanningDisabled})
	require.NoError(t, err)
	running, err := kernel.Open(kernel.Config{DisabledOptimizers: kernel.ExecutingDisabled, LosslessArrow: true})
	require.NoError(t, err)
	conn, err := planning.Connect()
	require.NoError(t, err)
	t.Cleanup(func() {
		conn.Close()
		require.NoError(t, planning.Close())
		require.NoError(t, running.Close())
	})
	return &Rig{T: t, Planning: conn, running: running}
}

// Table makes a table of Parquet files, each the result of one query.
func (r *Rig) Table(dir, name string, queries ...string) {
	for i, q := range queries {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.parquet", name, i))
		r.Exec("COPY (" + q + ") TO " + plan.Literal(path) + " (FORMAT parquet, ROW_GROUP_SIZE 2048)")
	}
	r.View(name, filepath.Join(dir, name+"-*.parquet"))
}

// View makes a table of existing files.
func (r *Rig) View(name, glob string) {
	statement := "CREATE VIEW " + name + " AS SELECT * FROM read_parquet(" + plan.Literal(glob) + ")"
	r.Exec(statement)
	r.Tables = append(r.Tables, statement)
}

// Exec runs a statement on the planning connection.
func (r *Rig) Exec(sql string) {
	require.NoError(r.T, r.Planning.Exec(context.Background(), sql), sql)
}

// Rows runs a query in one process and gives its rows as texts.
func (r *Rig) Rows(db *kernel.DB, sql string) []string {
	conn, err := db.Connect()
	require.NoError(r.T, err)
	defer conn.Close()
	require.NoError(r.T, conn.Exec(context.Background(), kernel.NoRangeMergeJoin))
	out, err := Ask(conn, sql)
	require.NoError(r.T, err, sql)
	return out
}

// statementTime bounds a statement, for one that has lost a condition is a cross product. One that runs out of it is
// tried again with patience times as much before that counts: the machine may be slow, or busy with something else.
const (
	statementTime = time.Minute
	patience      = 10
)

// Ask runs a query and gives its rows as texts.
func Ask(conn *kernel.Conn, sql string) ([]string, error) {
	rows, err := AskWithin(conn, sql, statementTime)
	if errors.Is(err, context.DeadlineExceeded) {
		rows, err = AskWithin(conn, sql, patience*statementTime)
	}
	return rows, err
}

// AskWithin is Ask for a query of which it is no matter that it runs out of time.
func AskWithin(conn *kernel.Conn, sql string, limit time.Duration) ([]string, error) {
	batches, err := collect(conn, sql, limit)
	defer release(batches)
	return texts(batches), err
}

func collect(conn *kernel.Conn, sql string, limit time.Duration) (out []arrow.RecordBatch, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, b)
	}
}

func release(batches []arrow.RecordBatch) {
	for _, b := range batches {
		b.Release()
	}
}

func texts(batches []arrow.RecordBatch) []string {
	var out []string
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			cells := make([]string, b.NumCols())
			for c := range cells {
				cells[c] = strings.Clone(b.Column(c).ValueStr(i)) // it may lie in the batch
			}
			out = append(out, strings.Join(cells, "|"))
		}
	}
	return out
}

// Place plans and places a query.
func (r *Rig) Place(sql string, o dist.Options) (*dist.Plan, map[string]dist.File) {
	p, files, err := r.TryPlace(sql, o)
	require.NoError(r.T, err, sql)
	return p, files
}

// TryPlace is Place for a statement that may be refused.
func (r *Rig) TryPlace(sql string, o dist.Options) (*dist.Plan, map[string]dist.File, error) {
	ctx := context.Background()
	text, err := r.Planning.Plan(ctx, sql)
	if err != nil {
		return nil, nil, err
	}
	root, err := plan.Decode(text)
	if err != nil {
		return nil, nil, err
	}
	estimates, err := r.Planning.PlanCardinalities(ctx, sql)
	if err != nil {
		return nil, nil, err
	}
	rows, err := plan.ReadCardinalities(root, estimates)
	if err != nil {
		return nil, nil, err
	}
	files := map[string]dist.File{}
	plan.Walk(root, func(n plan.Node) bool {
		if get, ok := n.(*plan.Get); ok {
			for _, path := range get.Files {
				files[path] = r.file(path)
			}
		}
		return true
	})
	o.Rows = func(n plan.Node) (float64, bool) { v, ok := rows[n]; return float64(v), ok }
	o.FileBytes = func(paths []string) (bytes, rows int64) {
		for _, p := range paths {
			f := files[p]
			bytes, rows = bytes+f.Bytes(), rows+f.Rows()
		}
		return bytes, rows
	}
	placed, err := dist.Place(root, o)
	if err != nil {
		return nil, nil, err
	}
	p := dist.Cut(placed, o.Partitions)
	return p, files, p.Travels()
}

func (r *Rig) file(path string) dist.File {
	batches, err := collect(r.Planning, "SELECT row_group_id::BIGINT, any_value(row_group_num_rows)::BIGINT, sum(total_uncompressed_size)::BIGINT FROM parquet_metadata("+
		plan.Literal(path)+") GROUP BY ALL ORDER BY ALL", statementTime)
	require.NoError(r.T, err)
	defer release(batches)
	f := dist.File{Path: path}
	for _, b := range batches {
		for i := range int(b.NumRows()) {
			f.Groups = append(f.Groups, split.RowGroup{Rows: b.Column(1).(*array.Int64).Value(i), Bytes: b.Column(2).(*array.Int64).Value(i)})
		}
	}
	return f
}

// Run runs a plan and gives the rows of its result.
func (r *Rig) Run(p *dist.Plan, files map[string]dist.File) []string {
	out, err := r.TryRun(p, files)
	require.NoError(r.T, err)
	return out
}

// TryRun is Run for a plan whose rows may be an error.
func (r *Rig) TryRun(p *dist.Plan, files map[string]dist.File) ([]string, error) {
	require.NoError(r.T, dist.Check(p))
	return r.Unchecked(p, files)
}

// Unchecked runs a plan whatever dist.Check thinks of it.
func (r *Rig) Unchecked(p *dist.Plan, files map[string]dist.File) ([]string, error) {
	rows, err := r.within(statementTime, p, files)
	if errors.Is(err, context.DeadlineExceeded) {
		rows, err = r.within(patience*statementTime, p, files)
	}
	return rows, err
}

// within runs a plan each of whose fragments may take so long.
func (r *Rig) within(limit time.Duration, p *dist.Plan, files map[string]dist.File) ([]string, error) {
	queues := map[*dist.Edge][][]arrow.RecordBatch{} // by reader
	defer func() {
		for _, q := range queues {
			for _, b := range q {
				release(b)
			}
		}
	}()
	for _, s := range p.Stages {
		for task := range s.Tasks {
			if err := r.task(limit, p, s, task, files, queues); err != nil {
				return nil, err
			}
		}
	}
	return texts(queues[p.Result][0]), nil
}

func (r *Rig) task(limit time.Duration, p *dist.Plan, s *dist.Stage, task int, files map[string]dist.File, queues map[*dist.Edge][][]arrow.RecordBatch) error {
	conn, err := r.running.Connect()
	require.NoError(r.T, err)
	defer conn.Close()
	for _, statement := range append(s.Setup(), r.Session) {
		if statement != "" {
			require.NoError(r.T, conn.Exec(context.Background(), statement))
		}
	}
	f, err := s.Fragment(task, dist.Names{
		View: func(e *dist.Edge) string { r.views++; return fmt.Sprintf("edge_%d_%d", e.ID, r.views) },
		Shares: func(paths []string) []dist.File {
			out := make([]dist.File, len(paths))
			for i, p := range paths {
				out[i] = files[p]
			}
			return out
		},
	}, p.Partitions)
	if err != nil {
		return err
	}
	for _, in := range f.Inputs {
		types := in.Edge.TravelTypes()
		for i, t := range types {
			types[i] = "CAST(NULL AS " + t + ") AS " + columnName(i)
		}
		rows, err := conn.Query(context.Background(), "SELECT "+strings.Join(types, ", ")+" WHERE FALSE")
		require.NoError(r.T, err)
		schema := rows.Schema()
		rows.Close()
		drop, err := conn.RegisterStream(in.View, &queue{schema: schema, batches: queues[in.Edge][task]})
		require.NoError(r.T, err)
		queues[in.Edge][task] = nil
		defer drop()
	}
	batches, err := collect(conn, f.SQL, limit)
	defer release(batches)
	if err != nil {
		return fmt.Errorf("%w\n%s", err, f.SQL)
	}
	for _, e := range s.Outputs {
		if queues[e] == nil {
			queues[e] = make([][]arrow.RecordBatch, e.Readers())
		}
		for _, b := range batches {
			if e.Writes(task) {
				r.send(e, f, task, b, queues[e])
			}
		}
	}
	return nil
}

// send routes one batch row by row: slow, and hard to get wrong.
func (r *Rig) send(e *dist.Edge, f *dist.Fragment, task int, b arrow.RecordBatch, to [][]arrow.RecordBatch) {
	columns := make([]arrow.Array, len(e.Keep))
	fields := make([]arrow.Field, len(e.Keep))
	for i, k := range e.Keep {
		columns[i], fields[i] = b.Column(k), b.Schema().Field(k)
		fields[i].Name = columnName(i)
	}
	part := array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.NumRows())
	defer part.Release()
	give := func(reader int, first, end int64) { to[reader] = append(to[reader], part.NewSlice(first, end)) }
	switch e.Kind {
	case dist.Gather, dist.Pin:
		give(0, 0, b.NumRows())
	case dist.Forward:
		give(task, 0, b.NumRows())
	case dist.Broadcast:
		for reader := range to {
			give(reader, 0, b.NumRows())
		}
	case dist.Hash, dist.Range:
		route := b.Column(f.Routing[e]).(*array.Uint32)
		for i := range b.NumRows() {
			give(int(route.Value(int(i))), i, i+1)
		}
	}
}

func columnName(i int) string { return fmt.Sprintf("c%d", i) }

type queue struct {
	schema  *arrow.Schema
	batches []arrow.RecordBatch
}

func (q *queue) Schema() *arrow.Schema { return q.schema }
func (q *queue) Close()                { release(q.batches) }
func (q *queue) Next() (arrow.RecordBatch, error) {
	if len(q.batches) == 0 {
		return nil, io.EOF
	}
	b := q.batches[0]
	q.batches = q.batches[1:]
	return b, nil
}

// Variants are the settings under which every query must give the same rows:
// every exchange that can be, as few as can be, and what estimates choose.
func Variants() []dist.Options {
	return []dist.Options{
		{Partitions: 1, BroadcastBytes: 1 << 40},
		{Partitions: 2},
		{Partitions: 2, BroadcastBytes: 1 << 40},
		{Partitions: 3, ReplicateBytes: 20_000, BroadcastBytes: 100_000},
		{Partitions: 16},
		{Partitions: 3, ReplicateBytes: 1 << 40, BroadcastBytes: 1 << 40},
	}
}

// Same compares rows; ordered says that their order counts.
func (r *Rig) Same(sql string, want, got []string, ordered bool, o dist.Options) {
	if !ordered {
		want, got = slices.Clone(want), slices.Clone(got)
		sort.Strings(want)
		sort.Strings(got)
	}
	require.Equal(r.T, want, got, "%s\npartitions %d, replicate %d, broadcast %d", sql, o.Partitions, o.ReplicateBytes, o.BroadcastBytes)
}
