package shuffle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore"
)

// stageArg is what a task of the pipeline is told.
type stageArg struct {
	Index   int
	In      [][]byte // edges, read one after the other to the end
	Out     []byte
	Batches int
}

// pipelineTasks are a source, and a stage that first reads all of one input, then streams the next.
func pipelineTasks(s **Service, mem memory.Allocator) map[string]actors.TaskFunc {
	open := func(tc *actors.TaskContext, raw []byte) (arg stageArg, out *Writer, err error) {
		if err := json.Unmarshal(raw, &arg); err != nil {
			return arg, nil, err
		}
		var e Edge
		if err := e.UnmarshalBinary(arg.Out); err != nil {
			return arg, nil, err
		}
		out, err = (*s).Writer(tc, &e, arg.Index, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
		return arg, out, err
	}
	return map[string]actors.TaskFunc{
		"source": func(tc *actors.TaskContext, raw []byte) ([]byte, error) {
			arg, out, err := open(tc, raw)
			if err != nil {
				return nil, err
			}
			for n := range arg.Batches {
				b := testBatch(mem, (arg.Index*arg.Batches+n)*100, 100, len(out.edge.Consumers), 5)
				err := out.Write(b)
				b.Release()
				if err != nil {
					out.Abort(err)
					return nil, err
				}
			}
			_, err = out.Close()
			return nil, err
		},
		"stage": func(tc *actors.TaskContext, raw []byte) (_ []byte, err error) {
			arg, out, err := open(tc, raw)
			if err != nil {
				return nil, err
			}
			defer func() { out.Abort(err) }()
			var ins []*Reader
			defer func() {
				for _, in := range ins {
					in.Close()
				}
			}()
			for _, data := range arg.In {
				var e Edge
				if err := e.UnmarshalBinary(data); err != nil {
					return nil, err
				}
				in, err := (*s).Reader(tc, &e, arg.Index, testSchema)
				if err != nil {
					return nil, err
				}
				ins = append(ins, in)
			}
			for _, in := range ins {
				for {
					b, err := in.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						return nil, err
					}
					// Route by the first column again.
					n := int(b.NumRows())
					p := array.NewUint32Builder(mem)
					for r := range n {
						p.Append(uint32(b.Column(0).(*array.Int64).Value(r)) % uint32(len(out.edge.Consumers)))
					}
					routed := withColumn(b, p.NewArray())
					p.Release()
					b.Release()
					err = out.Write(routed)
					routed.Release()
					if err != nil {
						return nil, err
					}
				}
			}
			_, err = out.Close()
			return nil, err
		},
	}
}

// Three stages of four tasks on two nodes with one slot each, started last stage first: tasks that wait give their slot
// to those they wait for, in every mode and with little memory.
func TestPipelineWithFewSlots(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	c := &cluster{t: t, mem: mem}
	hub := actors.NewHub()
	dir := t.TempDir()
	for i := range 2 {
		svc := NewService(Config{MemoryLimit: 256 << 10, BatchBytes: 16 << 10, Allocator: mem})
		cfg := actors.Config{DataDir: filepath.Join(dir, fmt.Sprint(i)), CPUs: 1, MemoryBytes: 1 << 30, InProcess: hub,
			Services: []actors.Service{svc}, Tasks: pipelineTasks(&svc, mem), Store: objectstore.Config{MemoryLimit: 16 << 20}}
		if i > 0 {
			cfg.Head = c.nodes[0].Address()
		}
		n, err := actors.Start(context.Background(), cfg)
		require.NoError(t, err)
		c.nodes, c.svcs = append(c.nodes, n), append(c.svcs, svc)
	}
	t.Cleanup(c.close)
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) {
			c.t = t
			within(t, time.Minute, func() { c.pipeline(mode) })
			c.empty()
		})
	}
}

func (c *cluster) pipeline(mode Mode) {
	const width, batches = 4, 60
	t := c.t
	j := c.job()
	left, right, result := c.edge(j, mode, width, width), c.edge(j, mode, width, width), c.edge(j, mode, width, 1)
	result.Consumers[0] = c.nodes[0].ID()
	for i := range width { // the stage's tasks run where it reads
		result.Producers[i] = left.Consumers[i]
	}
	pack := func(e *Edge) []byte {
		data, err := e.MarshalBinary()
		require.NoError(t, err)
		return data
	}
	var tasks []*actors.Task
	submit := func(name string, node actors.NodeID, arg stageArg) {
		raw, err := json.Marshal(arg)
		require.NoError(t, err)
		task, err := j.Submit(actors.TaskSpec{Name: fmt.Sprint(name, arg.Index), Func: name, Arg: raw, Node: node})
		require.NoError(t, err)
		tasks = append(tasks, task)
	}
	for i := range width {
		submit("stage", left.Consumers[i], stageArg{Index: i, In: [][]byte{pack(left), pack(right)}, Out: pack(result)})
	}
	for i := range width {
		submit("source", right.Producers[i], stageArg{Index: i, Out: pack(right), Batches: batches})
	}
	for i := range width {
		submit("source", left.Producers[i], stageArg{Index: i, Out: pack(left), Batches: batches})
	}
	r, err := c.svcs[0].Reader(j.TaskContext(), result, 0, testSchema)
	require.NoError(t, err)
	var got []int
	for {
		b, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for i := range int(b.NumRows()) {
			got = append(got, int(b.Column(0).(*array.Int64).Value(i)))
		}
		b.Release()
	}
	r.Close()
	for _, task := range tasks {
		_, err := task.Wait(context.Background())
		require.NoError(t, err)
	}
	j.Finish(nil)
	sort.Ints(got)
	require.Len(t, got, 2*width*batches*100)
	for i, v := range got {
		require.Equal(t, i/2, v)
	}
}
