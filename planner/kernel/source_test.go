package kernel

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A stand-in is planned with like the reader whose place it takes, and never run.
func TestSource(t *testing.T) {
	db, err := Open(Config{DisabledOptimizers: PlanningDisabled})
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.Connect()
	require.NoError(t, err)
	defer c.Close()
	ctx := context.Background()
	src := Source{Reader: "read_csv", Options: ", header = true", Files: []string{"it's.csv"}, Rows: 5000, Columns: []Column{
		{Name: "i", Type: "BIGINT"}, {Name: "a \"b\"", Type: "DECIMAL(9,2)"}, {Name: "n", Type: "STRUCT(\"x\" INTEGER[], \"y\" ENUM('p', 'q'))"},
	}}
	require.NoError(t, c.Exec(ctx, "CREATE TEMP VIEW t AS SELECT * FROM "+src.SQL()))
	columns, err := c.Describe(ctx, "FROM t")
	require.NoError(t, err)
	require.Equal(t, src.Columns, columns)
	text, err := c.Plan(ctx, "SELECT n.x FROM t WHERE i > 5000 AND \"a \"\"b\"\"\" IS NOT NULL")
	require.NoError(t, err)
	require.Contains(t, text, "it's.csv")
	require.Contains(t, text, "LOGICAL_FILTER") // an unknown source's rows are not foreseen
	estimates, err := c.PlanCardinalities(ctx, "FROM t")
	require.NoError(t, err)
	require.Contains(t, estimates, "5000")
	rows, err := c.Query(ctx, "FROM t")
	if err == nil {
		_, err = rows.Next()
		rows.Close()
	}
	require.ErrorContains(t, err, "only planned with")
}
