package kernel

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, c Config) *DB {
	t.Helper()
	db, err := Open(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func connect(t testing.TB, db *DB) *Conn {
	t.Helper()
	c, err := db.Connect()
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// texts runs a query and returns its rows, values joined by "|".
func texts(t testing.TB, c *Conn, sql string) []string {
	t.Helper()
	out, err := tryTexts(c, sql)
	require.NoError(t, err, sql)
	return out
}

func tryTexts(c *Conn, sql string) ([]string, error) {
	rows, err := c.Query(context.Background(), sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, batchTexts(b)...)
		b.Release()
	}
}

func batchTexts(b arrow.RecordBatch) []string {
	var out []string
	for row := range int(b.NumRows()) {
		var values []string
		for col := range int(b.NumCols()) {
			values = append(values, b.Column(col).ValueStr(row)) // may alias the batch
		}
		out = append(out, strings.Clone(strings.Join(values, "|")))
	}
	return out
}
