package kernel

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
)

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []Config{{MemoryLimit: -1}, {Threads: -1}, {MaxTempBytes: 1}, {MaxTempBytes: -1}, {Settings: map[string]string{"no_such": "1"}}, {Settings: map[string]string{"threads": "x"}}} {
		_, err := Open(c)
		require.ErrorIs(t, err, ErrConfig, c.String())
	}
}

func TestSettingsReachDuckDB(t *testing.T) {
	dir := t.TempDir()
	db := open(t, Config{MemoryLimit: 256 << 20, TempDir: dir, MaxTempBytes: 1 << 30, DisabledOptimizers: ExecutingDisabled, Settings: map[string]string{"TimeZone": "Europe/Berlin"}})
	c := connect(t, db)
	for name, want := range map[string]string{"threads": "1", "memory_limit": "256.0 MiB", "temp_directory": dir, "max_temp_directory_size": "1.0 GiB",
		"disabled_optimizers": ExecutingDisabled, "autoload_known_extensions": "false", "arrow_lossless_conversion": "false", "TimeZone": "Europe/Berlin"} {
		require.Equal(t, []string{want}, texts(t, c, "SELECT current_setting('"+name+"')::VARCHAR"), name)
	}
	require.True(t, strings.HasPrefix(Version(), "v1."))
}

func TestResultsOutliveEverything(t *testing.T) {
	db, err := Open(Config{})
	require.NoError(t, err)
	c, err := db.Connect()
	require.NoError(t, err)
	rows, err := c.Query(context.Background(), "SELECT i, 'value ' || i FROM range(5000) t(i)")
	require.NoError(t, err)
	require.Equal(t, []string{"BIGINT", "VARCHAR"}, rows.Types())
	var all []arrow.RecordBatch
	for {
		b, err := rows.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.LessOrEqual(t, b.NumRows(), int64(vectorRows))
		all = append(all, b)
	}
	_, err = rows.Next()
	require.Equal(t, io.EOF, err)
	rows.Close()
	rows.Close()
	c.Close()
	c.Close()
	require.NoError(t, db.Close())
	require.NoError(t, db.Close())
	require.Equal(t, "4096|value 4096", batchTexts(all[2])[0])
	for _, b := range all {
		b.Release()
	}
	_, err = db.Connect()
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.Query(context.Background(), "SELECT 1")
	require.ErrorIs(t, err, ErrClosed)
}

func TestCloseWaitsForConnections(t *testing.T) {
	db, err := Open(Config{})
	require.NoError(t, err)
	c, err := db.Connect()
	require.NoError(t, err)
	closed := make(chan struct{})
	go func() { _ = db.Close(); close(closed) }()
	select {
	case <-closed:
		t.Fatal("closed under a connection")
	case <-time.After(20 * time.Millisecond):
	}
	require.Equal(t, []string{"1"}, texts(t, c, "SELECT 1"))
	c.Close()
	<-closed
}

func TestOneResultAtATime(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	rows, err := c.Query(context.Background(), "SELECT * FROM range(100000)")
	require.NoError(t, err)
	_, err = c.Query(context.Background(), "SELECT 1")
	require.ErrorIs(t, err, ErrBusy)
	_, err = c.Describe(context.Background(), "SELECT 1")
	require.ErrorIs(t, err, ErrBusy)
	rows.Close()
	require.Equal(t, []string{"1"}, texts(t, c, "SELECT 1"))
}

func TestErrorsAreDuckDBs(t *testing.T) {
	db := open(t, Config{MemoryLimit: 20 << 20})
	c := connect(t, db)
	notParquet := filepath.Join(t.TempDir(), "x.parquet")
	require.NoError(t, os.WriteFile(notParquet, []byte("this is no parquet file"), 0o600))
	for _, test := range []struct {
		sql, kind, message string
		position           int
	}{
		{"SELECT x FROM", "Parser", "syntax error at end of input", 14},
		{"SELECT 1\n FROM FROM", "Parser", `syntax error at or near "FROM"`, 16},
		{"SELECT\n a + 1 FROM range(3)", "Binder", `Referenced column "a" not found`, 9},
		{"SELECT * FROM missing", "Catalog", "Table with name missing does not exist!", 15},
		{"SELECT 'ö', nope(3)", "Catalog", "Scalar Function with name nope does not exist!", 14},
		{"SELECT 'abc'::INT", "Conversion", "Could not convert string 'abc' to INT32", 13},
		{"SELECT * FROM '/no/such/*.parquet'", "IO", "No files found", 0},
		{"SELECT * FROM '" + notParquet + "'", "Invalid Input", "magic bytes", 0},
		{"SELECT count(*) FROM (SELECT DISTINCT hash(i), hash(i + 1) FROM range(2000000) t(i))", "Out of Memory", "", 0},
		{"", "Parser", "no statement", 0},
		{"SELECT \x00", "Parser", "NUL", 8},
	} {
		_, err := tryTexts(c, test.sql)
		var e *Error
		require.ErrorAs(t, err, &e, test.sql)
		require.Equal(t, test.kind, e.Type, test.sql)
		require.Contains(t, e.Message, test.message)
		require.Equal(t, test.position, e.Position, test.sql)
		require.NotContains(t, e.Error(), "\n")
	}
	require.Equal(t, []string{"1"}, texts(t, c, "SELECT 1"))
}

func TestErrorWhileStreaming(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	rows, err := c.Query(context.Background(), "SELECT CASE WHEN i = 900000 THEN 'x' ELSE '1' END::INT FROM range(1000000) t(i)")
	require.NoError(t, err)
	defer rows.Close()
	n := int64(0)
	for {
		b, err := rows.Next()
		if err != nil {
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "Conversion", e.Type)
			_, again := rows.Next()
			require.Same(t, err, again)
			break
		}
		n += b.NumRows()
		b.Release()
	}
	require.Greater(t, n, int64(100000))
}

const forever = "SELECT count(*) FROM range(1000000) a(x), range(1000000) b(y) WHERE hash(x, y) = 1"

func TestCancelInterruptsOneQueryOnly(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	cause := errors.New("the user has enough")
	for range 20 {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
		_, err := c.Query(ctx, forever)
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, []string{"499999500000"}, texts(t, c, "SELECT sum(x) FROM range(1000000) t(x)"))
	}
}

// A context that ends at any moment, before, during or after a short query, spoils no other query.
func TestCancelAtAnyMoment(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	for i := range 300 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*3*time.Microsecond)
		if rows, err := c.Query(ctx, "SELECT sum(x) FROM range(10000) t(x)"); err == nil {
			_, err = rows.Next()
			rows.Close()
			if err != nil {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		} else {
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		require.Equal(t, []string{"7"}, texts(t, c, "SELECT 7"))
		cancel()
	}
}

func TestCancelBetweenBatches(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	ctx, cancel := context.WithCancel(context.Background())
	rows, err := c.Query(ctx, "SELECT * FROM range(10000000)")
	require.NoError(t, err)
	b, err := rows.Next()
	require.NoError(t, err)
	b.Release()
	cancel()
	_, err = rows.Next()
	require.ErrorIs(t, err, context.Canceled)
	rows.Close()
	require.Equal(t, []string{"1"}, texts(t, c, "SELECT 1"))
}

func TestPivotIsSeveralStatements(t *testing.T) {
	db := open(t, Config{})
	c := connect(t, db)
	require.Equal(t, []string{"1|3"}, texts(t, c, "PIVOT (SELECT 'a' AS k, 1 AS v UNION ALL SELECT 'b', 3) ON k USING sum(v)"))
	require.Equal(t, []string{"5"}, texts(t, c, "CREATE TEMP TABLE t5 AS SELECT 5 AS x; SELECT x FROM t5;"))
}

// The limit of what may be spilled is one that DuckDB heeds.
func TestMaxTempBytes(t *testing.T) {
	const sql = "SELECT count(*) FROM (SELECT md5(i::VARCHAR) || i AS k, count(*) FROM range(1500000) t(i) GROUP BY 1)"
	for limit, fits := range map[int64]bool{1 << 20: false, 0: true} {
		db := open(t, Config{MemoryLimit: 64 << 20, TempDir: t.TempDir(), MaxTempBytes: limit})
		err := connect(t, db).Exec(context.Background(), sql)
		if fits {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "failed to offload data block")
		}
	}
}
