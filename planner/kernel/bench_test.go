package kernel

import (
	"context"
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		db, err := Open(Config{})
		require.NoError(b, err)
		require.NoError(b, db.Close())
	}
}

func BenchmarkConnect(b *testing.B) {
	db := open(b, Config{})
	for b.Loop() {
		c, err := db.Connect()
		require.NoError(b, err)
		c.Close()
	}
}

const benchRows = 1 << 20

// benchQuery has 44 bytes a row: three numbers and a text that is longer than DuckDB stores in place.
const benchQuery = "SELECT i, i * 2 AS j, (i / 7)::DOUBLE AS d, 'a text of row ' || i AS s FROM range(1048576) t(i)"

func BenchmarkRows(b *testing.B) {
	db := open(b, Config{})
	c := connect(b, db)
	require.NoError(b, c.Exec(context.Background(), "CREATE TABLE t AS "+benchQuery))
	for b.Loop() {
		require.NoError(b, c.Exec(context.Background(), "FROM t"))
	}
	b.SetBytes(benchRows * 44)
}

// again is a stream that yields the same batch a number of times.
type again struct {
	batch arrow.RecordBatch
	times int
}

func (a *again) Schema() *arrow.Schema { return a.batch.Schema() }
func (a *again) Close()                {}
func (a *again) Next() (arrow.RecordBatch, error) {
	if a.times == 0 {
		return nil, io.EOF
	}
	a.times--
	a.batch.Retain()
	return a.batch, nil
}

func BenchmarkStream(b *testing.B) {
	db := open(b, Config{})
	c := connect(b, db)
	rows, err := c.Query(context.Background(), benchQuery)
	require.NoError(b, err)
	var columns [4][]arrow.Array
	for range 16 { // 32,768 rows, 1.4 MB
		batch, err := rows.Next()
		require.NoError(b, err)
		for i := range columns {
			columns[i] = append(columns[i], batch.Column(i))
		}
	}
	var whole [4]arrow.Array
	for i := range whole {
		whole[i], err = array.Concatenate(columns[i], memory.DefaultAllocator)
		require.NoError(b, err)
	}
	batch := array.NewRecordBatch(rows.Schema(), whole[:], int64(whole[0].Len()))
	rows.Close()
	for name, sql := range map[string]string{"numbers": "SELECT sum(i + j + d) FROM s", "all": "SELECT sum(i + j + d), max(s) FROM s", "count": "SELECT count(*) FROM s"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				drop, err := c.RegisterStream("s", &again{batch, 32})
				require.NoError(b, err)
				require.NoError(b, c.Exec(context.Background(), sql))
				drop()
			}
			b.SetBytes(benchRows * 44)
		})
	}
	require.NoError(b, c.Exec(context.Background(), "CREATE TABLE t AS "+benchQuery))
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, c.Exec(context.Background(), "SELECT sum(i + j + d), max(s) FROM t"))
		}
		b.SetBytes(benchRows * 44)
	})
}
