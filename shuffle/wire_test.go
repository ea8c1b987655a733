package shuffle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/shufflepb"
)

// peer speaks frames to node 0 as node 1.
type peer struct {
	t    *testing.T
	wire *wire
}

func newPeer(t *testing.T, c *cluster, service string) *peer {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := c.nodes[1].Stream(ctx, c.nodes[0].ID(), service)
	require.NoError(t, err)
	p := &peer{t, newWire(conn)}
	t.Cleanup(p.wire.close)
	return p
}

func (p *peer) send(f frame, payload []byte) {
	require.NoError(p.t, p.wire.send(outgoing{f: f, text: payload}))
}

func (p *peer) hello(c *cluster) { p.send(frame{kind: frameHello}, []byte(c.nodes[1].ID())) }

func (p *peer) open(n uint32, ch *shufflepb.Channel) {
	data, err := proto.Marshal(ch)
	require.NoError(p.t, err)
	p.send(frame{kind: frameOpen, channel: n}, data)
}

// recv returns the next frame and its payload.
func (p *peer) recv() (frame, string, error) {
	f, err := p.wire.recv()
	if err != nil {
		return f, "", err
	}
	text, err := p.wire.text(smallBytes)
	return f, string(text), err
}

// refusal waits for the reason of the connection's end.
func (p *peer) refusal() error {
	for {
		f, text, err := p.recv()
		if err != nil {
			return err
		}
		if f.kind == frameFail && f.channel == 0 {
			return decodeFailure([]byte(text))
		}
	}
}

// A peer that breaks the protocol loses its link; nothing else happens.
func TestBadFrames(t *testing.T) {
	c := smallCluster(t, 2)
	for name, bad := range map[string]struct {
		f    frame
		text []byte
		why  string
	}{
		"no hello":        {f: frame{kind: frameData, channel: 1}, why: "before hello"},
		"kind":            {f: frame{kind: 99, channel: 1}, why: "kind 99"},
		"unknown channel": {f: frame{kind: frameData, channel: 7}, text: make([]byte, 10), why: "channel 7"},
		"channel 0":       {f: frame{kind: frameOpen}, why: "channel 0"},
		"bad open":        {f: frame{kind: frameOpen, channel: 1}, text: []byte{0xff, 0xff, 0xff}, why: "bad frame"},
		"long hello":      {f: frame{kind: frameHello}, text: make([]byte, 300), why: "300 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, c, linkService)
			if name != "no hello" && name != "long hello" {
				p.hello(c)
			}
			p.send(bad.f, bad.text)
			require.ErrorContains(t, p.refusal(), bad.why)
		})
	}
	require.Empty(t, c.leftovers())
}

// A channel that is no part of its edge is refused; bytes without credit end the link, before they are allocated.
func TestBadChannels(t *testing.T) {
	c := smallCluster(t, 2)
	j := c.job()
	e := &Edge{Job: j.ID(), ID: 9, Mode: Streaming, Producers: []actors.NodeID{c.nodes[0].ID(), c.nodes[1].ID()}, Consumers: []actors.NodeID{c.nodes[0].ID()}}
	r, err := c.reader(context.Background(), e, 0, testSchema)
	require.NoError(t, err)
	_, err = c.reader(context.Background(), e, 0, testSchema)
	require.ErrorIs(t, err, ErrEdge, "a second reader")

	p := newPeer(t, c, linkService)
	p.hello(c)
	p.open(1, &shufflepb.Channel{Job: string(j.ID()), Edge: 9, Producer: 0})
	f, text, err := p.recv()
	require.NoError(t, err)
	require.Equal(t, frameFail, f.kind, "producer 0 is on the other node")
	require.Contains(t, text, "no producer 0")
	p.open(2, &shufflepb.Channel{Job: string(j.ID()), Edge: 9, Producer: 2})
	f, _, _ = p.recv()
	require.Equal(t, frameFail, f.kind)
	p.open(3, &shufflepb.Channel{Job: string(j.ID()), Edge: 9, Producer: 1 << 30})
	f, _, _ = p.recv()
	require.Equal(t, frameFail, f.kind)

	format := newFormat(testSchema)
	p.open(4, &shufflepb.Channel{Job: string(j.ID()), Edge: 9, Producer: 1, Types: format.types})
	f, _, _ = p.recv()
	require.Equal(t, frameGrant, f.kind)
	rows := testBatch(c.mem, 0, 10, 1, 1)
	columns := array.NewRecordBatch(testSchema, rows.Columns()[:3], 10)
	rows.Release()
	blk, _, err := format.encode(c.mem, columns)
	require.NoError(t, err)
	columns.Release()
	p.send(frame{kind: frameData, channel: 4, sum: blk.checksum()}, bytes.Join(blk.parts, nil))
	blk.release()
	// The channel is not empty now, and this is far more than granted.
	huge := frame{kind: frameData, channel: 4, a: 1, size: 1 << 39}
	_, err = p.wire.conn.Write(huge.appendTo(nil))
	require.NoError(t, err)
	require.ErrorContains(t, p.refusal(), "more than granted")
	_, err = r.Next()
	require.Error(t, err, "the loss of the link")
	r.Close()
	j.Finish(nil)
	c.empty()

	late := newPeer(t, c, linkService)
	late.hello(c)
	late.open(1, &shufflepb.Channel{Job: string(j.ID()), Edge: 9, Producer: 1})
	f, text, _ = late.recv()
	require.Equal(t, frameFail, f.kind)
	require.ErrorIs(t, decodeFailure([]byte(text)), ErrJobEnded)
}

// Requests for blocks are checked: no path, no range outside a file, no job that is not known.
func TestBadFetches(t *testing.T) {
	c := smallCluster(t, 2)
	j := c.job()
	e := &Edge{Job: j.ID(), ID: 3, Mode: Disk, Producers: []actors.NodeID{c.nodes[0].ID()}, Consumers: []actors.NodeID{c.nodes[1].ID()}}
	w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
	require.NoError(t, err)
	b := testBatch(c.mem, 0, 100, 1, 1)
	require.NoError(t, w.Write(b))
	b.Release()
	n, err := w.Close()
	require.NoError(t, err)
	p := newPeer(t, c, fetchService)
	p.hello(c)
	for name, req := range map[string]*shufflepb.Fetch{
		"job":     {Job: "../../etc", Edge: 3, Ref: &shufflepb.Ref{Size: 10}},
		"edge":    {Job: string(j.ID()), Edge: 4, Ref: &shufflepb.Ref{Size: 10}},
		"beyond":  {Job: string(j.ID()), Edge: 3, Ref: &shufflepb.Ref{Size: n.BytesSpilled, Offset: 1}},
		"before":  {Job: string(j.ID()), Edge: 3, Ref: &shufflepb.Ref{Size: 10, Offset: -1}},
		"huge":    {Job: string(j.ID()), Edge: 3, Ref: &shufflepb.Ref{Size: 1 << 62, Offset: 1 << 62}},
		"no ref":  {Job: "x"},
		"no id":   {Ref: &shufflepb.Ref{Object: []byte{1, 2, 3}}},
		"unknown": {Ref: &shufflepb.Ref{Object: make([]byte, 16)}},
	} {
		data, err := proto.Marshal(req)
		require.NoError(t, err)
		p.send(frame{kind: frameFetch}, data)
		f, text, err := p.recv()
		require.NoError(t, err, name)
		require.Equal(t, frameFail, f.kind, "%s: %s", name, text)
	}
	require.NoError(t, p.wire.end())
	j.Finish(nil)
	c.empty()
}

// What changed on its way from node to node is noticed, be it bytes of a block or a block in place of another.
func TestCorruptStream(t *testing.T) {
	for _, what := range []string{"nothing", "block", "head", "end"} {
		t.Run(what, func(t *testing.T) {
			c := smallCluster(t, 2)
			j := c.job()
			e := &Edge{Job: j.ID(), ID: 1, Mode: Streaming, Producers: []actors.NodeID{c.nodes[1].ID()}, Consumers: []actors.NodeID{c.nodes[0].ID()}}
			r, err := c.reader(context.Background(), e, 0, testSchema)
			require.NoError(t, err)
			p := newPeer(t, c, linkService)
			p.hello(c)
			f := newFormat(testSchema)
			p.open(1, &shufflepb.Channel{Job: string(j.ID()), Edge: 1, Types: f.types})
			batch := testBatch(c.mem, 0, 10, 1, 1)
			data := batch.NewSlice(0, 10)
			batch.Release()
			columns := array.NewRecordBatch(testSchema, data.Columns()[:3], 10)
			data.Release()
			blk, _, err := f.encode(c.mem, columns)
			require.NoError(t, err)
			columns.Release()
			sent := bytes.Join(blk.parts, nil)
			sum, head := blk.checksum(), f.head()
			blk.release()
			end := chain(0, sum)
			switch what {
			case "block":
				sent[len(sent)/2] ^= 1
			case "head":
				sent[head-1] ^= 1
			case "end":
				end++
			}
			p.send(frame{kind: frameData, channel: 1, sum: sum}, sent)
			p.send(frame{kind: frameEnd, channel: 1, a: 1, b: uint64(len(sent)), sum: end}, nil)
			for err == nil {
				var b arrow.RecordBatch
				if b, err = r.Next(); err == nil {
					require.Contains(t, []string{"nothing", "end"}, what, "rows of a corrupt block")
					b.Release()
				}
			}
			if what == "nothing" {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.ErrorIs(t, err, ErrCorrupt)
				require.ErrorContains(t, err, strings.Replace(what, "head", "block", 1))
			}
			r.Close()
			require.NoError(t, p.wire.end())
			j.Finish(nil)
			c.empty()
		})
	}
}

// A file that changed under its reader is noticed.
func TestCorruptFile(t *testing.T) {
	for _, reader := range []int{0, 1} {
		c := smallCluster(t, 2)
		j := c.job()
		e := &Edge{Job: j.ID(), ID: 3, Mode: Disk, Producers: []actors.NodeID{c.nodes[0].ID()}, Consumers: []actors.NodeID{c.nodes[reader].ID()}}
		w, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Column: 3}, Schema: testSchema})
		require.NoError(t, err)
		b := testBatch(c.mem, 0, 100, 1, 1)
		require.NoError(t, w.Write(b))
		b.Release()
		_, err = w.Close()
		require.NoError(t, err)
		files, err := filepath.Glob(filepath.Join(c.svcs[0].cfg.Dir, "job-*", "*"))
		require.NoError(t, err)
		require.Len(t, files, 1)
		data, err := os.ReadFile(files[0])
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, os.WriteFile(files[0], data, 0o600))
		r, err := c.reader(context.Background(), e, 0, testSchema)
		require.NoError(t, err)
		_, err = r.Next()
		require.ErrorIs(t, err, ErrCorrupt)
		require.ErrorContains(t, err, string(c.nodes[0].ID()))
		r.Close()
		j.Finish(err)
		c.empty()
	}
}

// concat fails with its limit where streaming finishes; streaming stays within its own.
func TestMemoryLimits(t *testing.T) {
	c := newCluster(t, 2, Config{MemoryLimit: 2 << 20, BatchBytes: 64 << 10}, objectstore.Config{MemoryLimit: 1 << 20})
	j := c.job()
	w := workload{mode: Streaming, producers: 2, partitions: 4, batches: 150, rows: 500, width: 5, abort: -1}
	o := c.run(context.Background(), j, w)
	c.verify(o)
	for _, s := range c.svcs {
		require.LessOrEqual(t, s.Stats().Peak, int64(2<<20))
		require.Positive(t, s.Stats().Peak)
	}
	w.mode = Concat
	o = c.run(context.Background(), j, w)
	err := errors.Join(o.writeErrs...)
	require.ErrorIs(t, err, ErrConcat)
	require.ErrorContains(t, err, "1.0 MiB")
	require.ErrorIs(t, errors.Join(o.readErrs...), ErrConcat, "readers learn why")
	w.mode = ObjectStore
	o = c.run(context.Background(), j, w)
	c.verify(o)
	j.Finish(nil)
	c.empty()
}

// Memory does not grow with the number of partitions.
func TestManyPartitions(t *testing.T) {
	const limit = 8 << 20
	for _, partitions := range []int{16, 300} {
		c := newCluster(t, 2, Config{MemoryLimit: limit, BatchBytes: 64 << 10}, objectstore.Config{MemoryLimit: 16 << 20})
		for _, mode := range []Mode{Streaming, Disk, ObjectStore} {
			j := c.job()
			o := c.run(context.Background(), j, workload{mode: mode, producers: 4, partitions: partitions, batches: 6, rows: 1200, width: 5, abort: -1})
			c.verify(o)
			j.Finish(nil)
			c.empty()
		}
		for _, s := range c.svcs {
			require.LessOrEqual(t, s.Stats().Peak, int64(limit))
			require.Positive(t, s.Stats().PeakBusy)
		}
		j := c.job()
		require.NoError(t, errors.Join(c.run(context.Background(), j, workload{mode: Streaming, producers: 1, partitions: 1, batches: 1, rows: 1, abort: -1}).writeErrs...))
		for _, s := range c.svcs {
			require.Less(t, s.Stats().PeakBusy, s.Stats().Peak/4, "a small job after large ones")
		}
		j.Finish(nil)
	}
}

// What an earlier process left is removed at the start.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "job-1", "rows-1.arrow")
	require.NoError(t, os.MkdirAll(filepath.Dir(old), 0o700))
	require.NoError(t, os.WriteFile(old, []byte("x"), 0o600))
	c := newCluster(t, 1, Config{Dir: dir}, objectstore.Config{})
	require.NoFileExists(t, old)
	require.Empty(t, c.leftovers())
}
