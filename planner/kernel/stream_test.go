package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

// numbers is a stream of batches of (k BIGINT, v BIGINT) with v counting up. It ends with end after count batches.
type numbers struct {
	mem     memory.Allocator
	count   int
	size    int
	end     error
	started chan struct{} // closed at the first Next, if not nil
	wait    <-chan struct{}

	next   int64
	closed int
}

var numbersSchema = arrow.NewSchema([]arrow.Field{
	{Name: "k", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, {Name: "v", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
}, nil)

func (n *numbers) Schema() *arrow.Schema { return numbersSchema }
func (n *numbers) Close()                { n.closed++ }

func (n *numbers) Next() (arrow.RecordBatch, error) {
	if n.started != nil {
		close(n.started)
		n.started = nil
	}
	if n.count == 0 {
		if n.wait != nil {
			<-n.wait
		}
		return nil, n.end
	}
	n.count--
	b := array.NewRecordBuilder(n.mem, numbersSchema)
	defer b.Release()
	for range n.size {
		b.Field(0).(*array.Int64Builder).Append(n.next % 7)
		b.Field(1).(*array.Int64Builder).Append(n.next)
		n.next++
	}
	return b.NewRecordBatch(), nil
}

func newNumbers(t *testing.T, count, size int) *numbers {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return &numbers{mem: mem, count: count, size: size, end: io.EOF}
}

func TestStreamIsReadWithFiltersAndProjections(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	for query, want := range map[string]string{
		"SELECT sum(v), count(*) FROM s":                                  "49995000|10000",
		"SELECT sum(v) FROM s WHERE k = 3":                                "7146429",
		"SELECT count(*) FROM s":                                          "10000",
		"SELECT max(k) FROM s WHERE v BETWEEN 5 AND 7":                    "6",
		"SELECT count(*) FROM s JOIN range(3) r(x) ON s.v = r.x":          "3",
		"SELECT count(*) FROM range(3) r(x) JOIN s ON s.v = r.x":          "3",
		"SELECT v FROM s ORDER BY v DESC LIMIT 1":                         "9999",
		"SELECT count(*) FROM s WHERE v IN (1, 2, 3, 4, 5, 6, 7, 100000)": "7",
	} {
		n := newNumbers(t, 10, 1000)
		drop, err := c.RegisterStream("s", n)
		require.NoError(t, err)
		require.Equal(t, []string{want}, texts(t, c, query), query)
		drop()
		drop()
		require.Equal(t, 1, n.closed)
	}
}

var errProducer = errors.New("producer 3 failed")

func TestStreamReleasesEverythingAtEveryEnd(t *testing.T) {
	db := open(t, Config{})
	for name, run := range map[string]func(t *testing.T, c *Conn, n *numbers){
		"never read": func(t *testing.T, c *Conn, n *numbers) {},
		"closed early": func(t *testing.T, c *Conn, n *numbers) {
			rows, err := c.Query(context.Background(), "SELECT * FROM s")
			require.NoError(t, err)
			b, err := rows.Next()
			require.NoError(t, err)
			require.Equal(t, "0|0", batchTexts(b)[0])
			b.Release()
			rows.Close()
			_, err = rows.Next()
			require.ErrorIs(t, err, ErrClosed)
		},
		"enough": func(t *testing.T, c *Conn, n *numbers) {
			require.Len(t, texts(t, c, "SELECT * FROM s LIMIT 5"), 5)
		},
		"producer's error": func(t *testing.T, c *Conn, n *numbers) {
			n.end = fmt.Errorf("edge 7: %w", errProducer)
			_, err := tryTexts(c, "SELECT * FROM s")
			require.ErrorIs(t, err, errProducer)
			require.Same(t, n.end, err)
		},
		"producer's error in an aggregate": func(t *testing.T, c *Conn, n *numbers) {
			n.end = errProducer
			_, err := tryTexts(c, "SELECT k, sum(v) FROM s GROUP BY k")
			require.Same(t, errProducer, err)
		},
		"panic": func(t *testing.T, c *Conn, n *numbers) {
			n.end = nil // a nil batch
			_, err := tryTexts(c, "SELECT sum(v) FROM s")
			require.ErrorContains(t, err, "panic")
		},
		"query's error": func(t *testing.T, c *Conn, n *numbers) {
			_, err := tryTexts(c, "SELECT (v / 0.0)::VARCHAR::INT FROM s")
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "Conversion", e.Type)
		},
		"cancelled while it waits": func(t *testing.T, c *Conn, n *numbers) {
			ctx, cancel := context.WithCancelCause(context.Background())
			started := make(chan struct{})
			n.started, n.wait, n.end = started, ctx.Done(), context.Canceled
			go func() { <-started; cancel(errProducer) }()
			rows, err := c.Query(ctx, "SELECT sum(v) FROM s")
			if err == nil {
				_, err = rows.Next()
				rows.Close()
			}
			require.ErrorIs(t, err, context.Canceled)
		},
		"cancelled while it runs": func(t *testing.T, c *Conn, n *numbers) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
			defer cancel()
			_, err := c.Query(ctx, "SELECT count(*) FROM s a, range(1000000) b(x), range(1000) d(y) WHERE hash(a.v, x, y) = 1")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		},
		"read twice": func(t *testing.T, c *Conn, n *numbers) {
			_, err := tryTexts(c, "SELECT count(*) FROM s a JOIN s b ON a.v = b.v")
			require.ErrorIs(t, err, ErrReadTwice)
		},
		"connection closed": func(t *testing.T, c *Conn, n *numbers) {
			rows, err := c.Query(context.Background(), "SELECT * FROM s")
			require.NoError(t, err)
			_ = rows
			c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t, db)
			n := newNumbers(t, 10, 5000)
			drop, err := c.RegisterStream("s", n)
			require.NoError(t, err)
			run(t, c, n)
			drop()
			require.Equal(t, 1, n.closed)
			n.mem.(*memory.CheckedAllocator).AssertSize(t, 0)
			if !c.closed {
				require.Equal(t, []string{"1"}, texts(t, c, "SELECT 1"))
				_, err = tryTexts(c, "SELECT * FROM s")
				require.ErrorContains(t, err, "does not exist")
			}
		})
	}
}

func TestStreamsOnManyConnections(t *testing.T) {
	db := open(t, Config{})
	var wg sync.WaitGroup
	for i := range 20 {
		c := connect(t, db)
		wg.Go(func() {
			for round := range 20 {
				n := newNumbers(t, 3, 1000)
				drop, err := c.RegisterStream(fmt.Sprintf("s_%d_%d", i, round), n)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := tryTexts(c, fmt.Sprintf("SELECT sum(v) FROM s_%d_%d", i, round))
				if err != nil || len(got) != 1 || got[0] != "4498500" {
					t.Error(got, err)
				}
				drop()
			}
		})
	}
	wg.Wait()
	c := connect(t, db)
	require.Equal(t, []string{"0"}, texts(t, c, "SELECT count(*) FROM duckdb_views() WHERE NOT internal"))
}

// A query that waits for input holds up no other query, with one thread as with several.
func TestWaitingStreamBlocksNobody(t *testing.T) {
	for _, threads := range []int{1, 4} {
		db := open(t, Config{Threads: threads})
		gate, started := make(chan struct{}), make(chan struct{})
		waiting := connect(t, db)
		n := newNumbers(t, 10, 5000)
		n.started, n.wait = started, gate
		drop, err := waiting.RegisterStream("s", n)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			got, err := tryTexts(waiting, "SELECT sum(v), count(*) FROM s WHERE k <> 3")
			if err != nil || len(got) != 1 || got[0] != "1071400000|42857" {
				t.Error(got, err)
			}
		}()
		<-started
		require.Equal(t, []string{"499999500000"}, texts(t, connect(t, db), "SELECT sum(x) FROM range(1000000) t(x)"))
		close(gate)
		<-done
		drop()
	}
}

func TestForeignStreamCannotBeRead(t *testing.T) {
	db := open(t, Config{})
	mine, other := connect(t, db), connect(t, db)
	drop, err := mine.RegisterStream("s", newNumbers(t, 1, 1))
	require.NoError(t, err)
	defer drop()
	_, err = tryTexts(other, "SELECT * FROM s")
	require.ErrorContains(t, err, "does not exist")
	_, err = tryTexts(other, fmt.Sprintf("SELECT * FROM manta_stream(%d)", nextStream.Load()))
	require.ErrorContains(t, err, "no stream of this number")
	_, err = mine.RegisterStream("s", newNumbers(t, 1, 1))
	require.ErrorContains(t, err, "already exists")
}

func TestBatchOfAnotherSchemaIsAnError(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	_, whole := collect(t, c, "SELECT 1 AS k, 'x' AS v")
	drop, err := c.RegisterStream("s", &batches{numbersSchema, []arrow.RecordBatch{whole}})
	require.NoError(t, err)
	defer drop()
	_, err = tryTexts(c, "SELECT * FROM s")
	require.ErrorContains(t, err, "a batch of")
}
