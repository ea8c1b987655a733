package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"manta/actors"
	"manta/objectstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a few nodes in this process, with real gRPC between them.
type cluster struct {
	t     testing.TB
	nodes []*actors.Node
	svcs  []*Service
	mem   *memory.CheckedAllocator
	next  uint32
}

func newCluster(t testing.TB, n int, cfg Config, store objectstore.Config, change ...func(*actors.Config)) *cluster {
	c := &cluster{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator())}
	hub := actors.NewHub()
	dir := t.TempDir()
	for i := range n {
		cfg := cfg
		if cfg.Allocator == nil {
			cfg.Allocator = c.mem
		}
		svc := NewService(cfg)
		ac := actors.Config{
			DataDir: filepath.Join(dir, fmt.Sprint(i)), CPUs: 2, MemoryBytes: 1 << 30, MaxJobs: 100, InProcess: hub,
			Services: []actors.Service{svc}, Store: store, Heartbeat: 100 * time.Millisecond, Lease: 10 * time.Second,
		}
		if i > 0 {
			ac.Head = c.nodes[0].Address()
		}
		for _, f := range change {
			f(&ac)
		}
		node, err := actors.Start(context.Background(), ac)
		require.NoError(t, err)
		c.nodes = append(c.nodes, node)
		c.svcs = append(c.svcs, svc)
	}
	t.Cleanup(c.close)
	return c
}

func (c *cluster) close() {
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if c.nodes[i] != nil {
			require.NoError(c.t, c.nodes[i].Close())
		}
	}
	if c.mem.CurrentAlloc() != 0 {
		c.t.Errorf("%d bytes of batches are left", c.mem.CurrentAlloc())
	}
}

// empty fails unless no exchange memory, channel, writer, reader, file or job is left.
func (c *cluster) empty() {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return c.leftovers() == "" }, time.Minute, 5*time.Millisecond, "%s", c)
}

func (c *cluster) String() string { return c.leftovers() }

func (c *cluster) leftovers() string {
	var out []string
	for i, s := range c.svcs {
		if c.nodes[i] == nil {
			continue
		}
		st := s.Stats()
		if st.Bytes != 0 || st.Channels != 0 || st.Writers != 0 || st.Readers != 0 || st.Links != 0 || st.Files != 0 || st.Jobs != 0 {
			out = append(out, fmt.Sprintf("node %d: %+v", i, st))
		}
		if n := c.nodes[i].Store().Stats().Objects; n != 0 {
			out = append(out, fmt.Sprintf("node %d: %d objects", i, n))
		}
	}
	if n := c.mem.CurrentAlloc(); n != 0 {
		out = append(out, fmt.Sprintf("%d bytes of batches", n))
	}
	return strings.Join(out, "; ")
}

func (c *cluster) job() *actors.Job {
	j, err := c.nodes[0].NewJob(context.Background(), actors.JobSpec{Name: "test"})
	require.NoError(c.t, err)
	return j
}

// edge makes an edge whose tasks go round the nodes.
func (c *cluster) edge(j *actors.Job, mode Mode, producers, partitions int) *Edge {
	c.next++
	e := &Edge{Job: j.ID(), ID: c.next, Mode: mode}
	for i := range producers {
		e.Producers = append(e.Producers, c.nodes[i%len(c.nodes)].ID())
	}
	for p := range partitions {
		e.Consumers = append(e.Consumers, c.nodes[(p+1)%len(c.nodes)].ID())
	}
	// As it would reach the tasks.
	data, err := e.MarshalBinary()
	require.NoError(c.t, err)
	var out Edge
	require.NoError(c.t, out.UnmarshalBinary(data))
	require.Equal(c.t, *e, out)
	return &out
}

func (c *cluster) service(n actors.NodeID) *Service {
	for i, node := range c.nodes {
		if node != nil && node.ID() == n {
			return c.svcs[i]
		}
	}
	panic("no such node")
}

func taskOn(ctx context.Context, s *Service, e *Edge, name string) *actors.TaskContext {
	return &actors.TaskContext{Context: ctx, Job: e.Job, Task: actors.TaskID(name), Node: s.node}
}

func (c *cluster) writer(ctx context.Context, e *Edge, i int, o WriterOptions) (*Writer, error) {
	s := c.service(e.Producers[i])
	return s.Writer(taskOn(ctx, s, e, fmt.Sprintf("producer-%d", i)), e, i, o)
}

func (c *cluster) reader(ctx context.Context, e *Edge, p int, schema *arrow.Schema) (*Reader, error) {
	s := c.service(e.Consumers[p])
	return s.Reader(taskOn(ctx, s, e, fmt.Sprintf("reader-%d", p)), e, p, schema)
}

var testSchema = arrow.NewSchema([]arrow.Field{
	{Name: "i", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
}, nil)

// testBatch makes n rows from start on, with a routing column at the end.
func testBatch(mem memory.Allocator, start, n, partitions int, width int) arrow.RecordBatch {
	fields := append(append([]arrow.Field(nil), testSchema.Fields()...), arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32})
	b := array.NewRecordBuilder(mem, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i := start; i < start+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		if i%5 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(strings.Repeat(fmt.Sprint(i), 1+width*(i%3)))
		}
		l := b.Field(2).(*array.ListBuilder)
		if i%7 == 0 {
			l.AppendNull()
		} else {
			l.Append(true)
			for k := range i % 4 {
				l.ValueBuilder().(*array.Int32Builder).Append(int32(i + k))
			}
		}
		b.Field(3).(*array.Uint32Builder).Append(uint32(i*2654435761>>7) % uint32(partitions))
	}
	return b.NewRecordBatch()
}

// withColumn adds a routing column (taken) to a batch (borrowed).
func withColumn(b arrow.RecordBatch, p arrow.Array) arrow.RecordBatch {
	defer p.Release()
	fields := append(append([]arrow.Field(nil), b.Schema().Fields()...), arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Uint32})
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), append(append([]arrow.Array(nil), b.Columns()...), p), b.NumRows())
}

// rowsOf lists the rows of a batch of the test schema as text.
func rowsOf(b arrow.RecordBatch) (out []string) {
	ints := b.Column(0).(*array.Int64)
	texts := b.Column(1).(*array.String)
	lists := b.Column(2).(*array.List)
	items := lists.ListValues().(*array.Int32)
	var row []byte
	for r := range int(b.NumRows()) {
		row = strconv.AppendInt(row[:0], ints.Value(r), 10)
		row = append(row, '|')
		if texts.IsNull(r) {
			row = append(row, "NULL"...)
		} else {
			row = append(row, texts.Value(r)...)
		}
		row = append(row, '|')
		if lists.IsNull(r) {
			row = append(row, "NULL"...)
		} else {
			for from, to := lists.ValueOffsets(r); from < to; from++ {
				row = strconv.AppendInt(append(row, ','), int64(items.Value(int(from))), 10)
			}
		}
		out = append(out, string(row))
	}
	return out
}

// workload is one exchange to run.
type workload struct {
	mode                  Mode
	producers, partitions int
	route                 Route
	batches, rows, width  int
	stopAfter             map[int]int // a reader that leaves after so many rows
	slow                  map[int]time.Duration
	abort                 int // producer that aborts halfway, -1 none
	keep                  bool
}

type outcome struct {
	want, got  [][]string // rows, by partition
	writers    []Counters
	readers    []Counters
	writeErrs  []error
	readErrs   []error
	readerDone []time.Duration
}

// run runs a workload and returns what came out.
func (c *cluster) run(ctx context.Context, j *actors.Job, w workload) *outcome {
	e := c.edge(j, w.mode, w.producers, w.partitions)
	o := &outcome{
		want: make([][]string, w.partitions), got: make([][]string, w.partitions),
		writers: make([]Counters, w.producers), readers: make([]Counters, w.partitions),
		writeErrs: make([]error, w.producers), readErrs: make([]error, w.partitions),
		readerDone: make([]time.Duration, w.partitions),
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := time.Now()
	for i := range w.producers {
		wg.Go(func() { o.writeErrs[i] = c.produce(ctx, e, w, i, o, &mu) })
	}
	for p := range w.partitions {
		wg.Go(func() {
			o.readErrs[p] = c.consume(ctx, e, w, p, o)
			o.readerDone[p] = time.Since(start)
		})
	}
	wg.Wait()
	for p := range w.partitions {
		sort.Strings(o.want[p])
		sort.Strings(o.got[p])
	}
	return o
}

func (c *cluster) produce(ctx context.Context, e *Edge, w workload, i int, o *outcome, mu *sync.Mutex) (err error) {
	opts := WriterOptions{Columns: 3, Route: w.route, Schema: testSchema, Keep: w.keep}
	if w.route.Kind == ByColumn {
		opts.Route.Column = 3
	}
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	out, err := c.writer(ctx, e, i, opts)
	if err != nil {
		return err
	}
	for n := range w.batches {
		if i == w.abort && n == w.batches/2 {
			out.Abort(errors.New("it was told to"))
			return nil
		}
		b := testBatch(c.mem, (i*w.batches+n)*w.rows, w.rows, w.partitions, w.width)
		if n%2 == 1 && b.NumRows() > 2 { // a slice, with an offset
			whole := b
			b = whole.NewSlice(1, whole.NumRows())
			whole.Release()
		}
		mu.Lock()
		w.expect(o, b)
		mu.Unlock()
		err := out.Write(b)
		b.Release()
		if errors.Is(err, ErrClosed) {
			break
		}
		if err != nil {
			out.Abort(err)
			o.writers[i] = out.n
			return err
		}
	}
	o.writers[i], err = out.Close()
	return err
}

// expect notes where the rows of a batch are to go.
func (w *workload) expect(o *outcome, b arrow.RecordBatch) {
	for r, row := range rowsOf(b) {
		for p := range w.partitions {
			switch {
			case w.route.Kind == ToAll, w.route.Kind == To && w.route.Partition == p,
				w.route.Kind == ByColumn && int(b.Column(3).(*array.Uint32).Value(r)) == p:
				o.want[p] = append(o.want[p], row)
			}
		}
	}
}

func (c *cluster) consume(ctx context.Context, e *Edge, w workload, p int, o *outcome) error {
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	in, err := c.reader(ctx, e, p, testSchema)
	if err != nil {
		return err
	}
	defer func() { o.readers[p] = in.Close() }()
	for {
		if limit, ok := w.stopAfter[p]; ok && len(o.got[p]) >= limit {
			return nil
		}
		b, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		o.got[p] = append(o.got[p], rowsOf(b)...)
		b.Release()
		if d := w.slow[p]; d > 0 {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
}
