package shuffle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sort"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"manta/actors"
	"manta/objectstore"
	"manta/shuffle/shufflepb"
)

// A producer that keeps what it stores goes on when a reader fails, or a node dies that has one, before the first row or
// later: its other readers get all, and what it keeps is whole. So it is when rows go to all readers and only one has enough.
func TestKeptOutlivesReaders(t *testing.T) {
	const lost = 1 // the partition, on the last of three nodes
	for _, mode := range storingModes {
		for _, how := range []string{"failed", "failed later", "dead", "dead later", "left"} {
			for _, route := range []Route{{Kind: ByColumn}, {Kind: ToAll}} {
				if how == "left" && route.Kind != ToAll {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, %d", mode, how, route.Kind), func(t *testing.T) {
					c := newCluster(t, 3, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
					j := c.job()
					e := c.edge(j, mode, 1, 3)
					in, err := c.reader(context.Background(), e, lost, testSchema)
					require.NoError(t, err)
					dead := how == "dead" || how == "dead later"
					lose := func() {
						if how == "left" {
							in.Close()
						} else if in.Abort(errors.New("it broke")); dead {
							require.NoError(t, c.nodes[2].Close())
						}
					}
					out, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: route.at(3), Schema: testSchema, Keep: true})
					require.NoError(t, err)
					o := &outcome{want: make([][]string, 3), got: make([][]string, 3), readers: make([]Counters, 3)}
					var readers sync.WaitGroup
					errs := make([]error, 3)
					for _, p := range []int{0, 2} {
						readers.Go(func() { errs[p] = c.consume(context.Background(), e, workload{}, p, o) })
					}
					if how == "failed" || how == "dead" || how == "left" {
						lose()
					}
					w := workload{mode: mode, partitions: 3, route: route}
					within(t, time.Minute, func() {
						for n := range 20 {
							if n == 10 && (how == "failed later" || how == "dead later") {
								if mode == ObjectStore { // some of it was on its way
									b, err := in.Next()
									require.NoError(t, err)
									b.Release()
								}
								lose()
							}
							b := testBatch(c.mem, n*100, 100, 3, 5)
							w.expect(o, b)
							require.NoError(t, out.Write(b))
							b.Release()
						}
						_, err := out.Close()
						require.NoError(t, err)
						require.True(t, out.Kept())
						readers.Wait()
					})
					for _, p := range []int{0, 2} {
						require.NoError(t, errs[p])
					}
					if dead {
						c.nodes, c.svcs = c.nodes[:2], c.svcs[:2]
					}
					next, adopted := c.after(j, e)
					require.Len(t, adopted, 1)
					e.Job = next.ID()
					e.Consumers[lost] = c.nodes[0].ID()
					again := make([][]string, 3)
					within(t, time.Minute, func() { require.NoError(t, c.serve(context.Background(), e, []int{lost}, again)) })
					for p, got := range [][]string{o.got[0], again[lost], o.got[2]} {
						sort.Strings(got)
						sort.Strings(o.want[p])
						require.NotEmpty(t, got)
						require.Equal(t, o.want[p], got, p)
					}
					next.Finish(nil)
					c.empty()
				})
			}
		}
	}
}

// at is the route with its column.
func (r Route) at(column int) Route {
	if r.Kind == ByColumn {
		r.Column = column
	}
	return r
}

// One that keeps nothing fails with its readers, who say so.
func TestReaderFails(t *testing.T) {
	for _, mode := range Modes {
		for failed := range 2 { // one on another node, one on the producer's
			c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
			j := c.job()
			e := c.edge(j, mode, 1, 2)
			in, err := c.reader(context.Background(), e, failed, testSchema)
			require.NoError(t, err)
			in.Abort(fmt.Errorf("it broke: %w", ErrPeer))
			w := workload{mode: mode, producers: 1, partitions: 2, route: Route{Kind: ByColumn}, batches: 50, rows: 200, abort: -1}
			o := &outcome{want: make([][]string, 2), writers: make([]Counters, 1)}
			within(t, time.Minute, func() { err = c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}) })
			require.ErrorIs(t, err, ErrReader, mode)
			require.ErrorIs(t, err, ErrPeer)
			require.ErrorContains(t, err, "it broke")
			j.Finish(nil)
			c.empty()
		}
	}
}

// A producer does not go on for nothing: when one of its readers had enough, what it stores is not whole, and when the others are
// lost nobody reads it. Rows that go to all are whole though one had enough, and it does go on.
func TestNobodyIsLeft(t *testing.T) {
	for _, kind := range []RouteKind{ByColumn, ToAll} {
		c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
		j := c.job()
		e := c.edge(j, ObjectStore, 1, 3)
		for p := range 3 {
			in, err := c.reader(context.Background(), e, p, testSchema)
			require.NoError(t, err)
			if p == 0 {
				in.Close()
			} else {
				in.Abort(errors.New("it broke"))
			}
		}
		out, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Kind: kind}.at(3), Schema: testSchema, Keep: true})
		require.NoError(t, err)
		left := func() int {
			out.refs.mu.Lock()
			defer out.refs.mu.Unlock()
			return 3 - out.refs.gone - out.refs.lost
		}
		b := testBatch(c.mem, 0, 200, 3, 5)
		for end := time.Now().Add(time.Minute); left() > 0 && err == nil; err = out.Write(b) {
			require.True(t, time.Now().Before(end))
		}
		if err == nil {
			err = out.Write(b)
		}
		b.Release()
		if kind == ByColumn {
			require.ErrorIs(t, err, ErrClosed)
		} else {
			require.NoError(t, err)
		}
		_, err = out.Close()
		require.NoError(t, err)
		require.Equal(t, kind == ToAll, out.Kept())
		j.Finish(nil)
		c.empty()
	}
}

// A reader that fails gives back what it has not read, wherever that lies: it goes once it is kept no more. It does not count as
// read before.
func TestFailedReaderGivesBack(t *testing.T) {
	c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
	j := c.job()
	e := c.edge(j, ObjectStore, 1, 2)
	w := workload{mode: ObjectStore, producers: 1, partitions: 2, route: Route{Kind: ByColumn}, batches: 50, rows: 200, abort: -1, keep: true}
	o := &outcome{want: make([][]string, 2), writers: make([]Counters, 1)}
	require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}))
	store := c.nodes[0].Store()
	all := store.Stats().Objects
	require.Greater(t, int(all), 20)
	for p := range 2 {
		in, err := c.reader(context.Background(), e, p, testSchema)
		require.NoError(t, err)
		in.Abort(errors.New("it broke"))
	}
	here, err := c.svcs[0].job(j.ID())
	require.NoError(t, err)
	here.mu.Lock()
	k := here.kept[fileKey{e.ID, 0}]
	here.mu.Unlock()
	k.mu.Lock()
	read, size := k.read, int64(0)
	for _, list := range k.refs {
		for _, ref := range list {
			size += ref.GetSize()
		}
	}
	k.mu.Unlock()
	require.Less(t, read, size/4, "no more than what was fetched ahead")
	require.Equal(t, all, store.Stats().Objects, "it is kept")
	k.giveUp()
	require.Eventually(t, func() bool { return store.Stats().Objects == 0 }, time.Minute, time.Millisecond)
	j.Finish(nil)
	c.empty()
}

// A connection that breaks inside a block is a lost connection, as it is between two.
func TestBrokenInsideABlock(t *testing.T) {
	for _, size := range []int64{1 << 20, bigBlock + 1} {
		c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
		j := c.job()
		e := c.edge(j, Concat, 1, 1)
		c.nodes[0].Streams().Handle(fetchService, func(conn net.Conn) {
			defer func() { _ = conn.Close() }()
			wire := newWire(conn)
			if f, err := wire.recv(); err != nil || f.kind == frameHello { // the hello comes first
				_, _ = wire.recv()
			}
			part := frame{kind: framePart, a: uint64(size), size: partBytes}
			_, _ = conn.Write(append(part.appendTo(nil), make([]byte, 100)...))
		})
		in, err := c.reader(context.Background(), e, 0, testSchema)
		require.NoError(t, err)
		id := objectstore.ID{}
		closed, err := in.src.(*refSource).q.take(e.Producers[0], &shufflepb.Refs{
			Channel: e.channel(0, 0, 0), Refs: []*shufflepb.Ref{{Object: id[:], Size: size}}, End: true,
		})
		require.NoError(t, err)
		require.False(t, closed)
		within(t, time.Minute, func() { _, err = in.Next() })
		require.ErrorIs(t, err, ErrPeer)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		in.Abort(err)
		j.Finish(nil)
		c.empty()
	}
}

// A reader that waits for a block of a node that has fallen silent hears of its death, though the producer had ended and the
// connection stands.
func TestDeadWhileItIsFetchedFrom(t *testing.T) {
	for _, mode := range []Mode{ObjectStore, Disk} {
		t.Run(string(mode), func(t *testing.T) {
			c := newCluster(t, 2, Config{MemoryLimit: 8 << 20, BatchBytes: 1 << 10}, objectstore.Config{MemoryLimit: 64 << 20})
			j := c.job()
			e := c.edge(j, mode, 1, 1)
			require.NotEqual(t, e.Producers[0], e.Consumers[0])
			asked, once := make(chan struct{}), sync.Once{}
			c.nodes[0].Streams().Handle(fetchService, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1))
				once.Do(func() { close(asked) })
				_, _ = io.Copy(io.Discard, conn) // until the other end closes it
				_ = conn.Close()
			})
			out, err := c.writer(context.Background(), e, 0, WriterOptions{Columns: 3, Route: Route{Kind: To}, Schema: testSchema, Keep: true})
			require.NoError(t, err)
			b := testBatch(c.mem, 0, 100, 1, 5)
			require.NoError(t, out.Write(b))
			b.Release()
			_, err = out.Close()
			require.NoError(t, err)
			in, err := c.reader(context.Background(), e, 0, testSchema)
			require.NoError(t, err)
			within(t, time.Minute, func() {
				<-asked
				c.service(e.Consumers[0]).NodeDead(e.Producers[0], "silent")
				_, err = in.Next()
			})
			require.ErrorIs(t, err, actors.ErrNodeDead)
			require.ErrorContains(t, err, "silent")
			in.Abort(err)
			j.Finish(nil)
			c.empty()
		})
	}
}

// Of what is kept that goes first which nobody reads, and it is not spilled; what readers are to come for stays.
func TestSpareGoesFirst(t *testing.T) {
	c := newCluster(t, 1, Config{MemoryLimit: 4 << 20, BatchBytes: 16 << 10}, objectstore.Config{MemoryLimit: 8 << 20})
	j := c.job()
	w := workload{mode: ObjectStore, producers: 1, partitions: 1, route: Route{Kind: ByColumn}, batches: 20, rows: 500, width: 8, abort: -1, keep: true}
	var edges []*Edge
	write := func(id actors.JobID) {
		e := c.edge(j, w.mode, 1, 1)
		e.Job = id
		o := &outcome{want: make([][]string, 1), writers: make([]Counters, 1)}
		require.NoError(t, c.produce(context.Background(), e, w, 0, o, &sync.Mutex{}))
		edges = append(edges, e)
	}
	used := func() int64 { return c.nodes[0].Store().Stats().MemoryUsed }
	write(j.ID())
	size := used()
	for range 3 { // four of them, far from short
		write(j.ID())
	}
	next, err := c.nodes[0].NewJob(context.Background(), actors.JobSpec{Name: "next", After: j})
	require.NoError(t, err)
	var all []Output
	for _, e := range edges {
		all = append(all, Output{e.ID, 0})
	}
	adopted, err := c.svcs[0].Adopt(context.Background(), c.nodes[0].ID(), j.ID(), next.ID(), all)
	require.NoError(t, err)
	require.Len(t, adopted, 4)
	require.NoError(t, c.svcs[0].Spare(context.Background(), c.nodes[0].ID(), next.ID(), all[1:3]))
	j.Finish(nil)

	j = next
	for n := 0; used()+size < c.nodes[0].Store().Stats().MemoryLimit/100*keepBelow; n++ {
		require.Less(t, n, 1000)
		write(next.ID())
		require.Equal(t, len(edges), c.svcs[0].Stats().Kept)
	}
	before := len(edges)
	write(next.ID())
	write(next.ID())
	require.Less(t, c.svcs[0].Stats().Kept, before+2)
	require.Zero(t, c.nodes[0].Store().Stats().BytesSpilled)
	for i, e := range edges {
		if i == 1 || i == 2 {
			continue // one of these at least has gone, as was seen
		}
		e.Job = next.ID()
		out, err := c.svcs[0].Serve(taskOn(context.Background(), c.svcs[0], e, "server"), e, 0, []int{0})
		require.NoError(t, err, i)
		out.Abort(errors.New("it was only to be looked at"))
	}
	next.Finish(nil)
	c.empty()
}
