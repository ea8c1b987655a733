package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Expansion is what a PIVOT without IN stands for.
type Expansion struct {
	// Values are, for each ON without IN, in the order in which DuckDB asks for
	// them, the values that get columns.
	Values  [][]string
	Columns []Column // of the result
}

// ErrNoExpansion is returned by Expand for a text that is no PIVOT without IN.
var ErrNoExpansion = errors.New("kernel: not one statement that DuckDB makes several of")

// Expand finds the values of a PIVOT without IN. DuckDB makes several statements
// of it: each but the last makes an ENUM of the values of one ON, the last is a
// SELECT. All but the last are run; their types stay on the connection.
func (c *Conn) Expand(ctx context.Context, sql string) (*Expansion, error) {
	if err := c.ready(ctx, sql); err != nil {
		return nil, err
	}
	w := startWatch(ctx, c.handle)
	var all duckdb.ExtractedStatements
	defer duckdb.DestroyExtracted(&all)
	n := int(duckdb.ExtractStatements(c.handle, sql, &all))
	x := &Expansion{}
	err := c.expand(ctx, all, n, x)
	w.end()
	if err != nil {
		return nil, err
	}
	for i := range n - 1 {
		labels, err := c.texts(ctx, fmt.Sprintf("SELECT unnest(labels) FROM (FROM duckdb_types() WHERE type_name LIKE '\\_\\_pivot\\_enum\\_%%' ESCAPE '\\' ORDER BY type_oid LIMIT 1 OFFSET %d)", i))
		if err != nil {
			return nil, err
		}
		x.Values = append(x.Values, labels)
	}
	return x, nil
}

func (c *Conn) expand(ctx context.Context, all duckdb.ExtractedStatements, n int, x *Expansion) error {
	if n < 2 {
		return ErrNoExpansion
	}
	for i := range n {
		var stmt duckdb.PreparedStatement
		if duckdb.PrepareExtractedStatement(c.handle, all, duckdb.IdxT(i), &stmt) != duckdb.StateSuccess {
			err := c.failure(ctx, duckdb.PrepareError(stmt))
			duckdb.DestroyPrepare(&stmt)
			return err
		}
		kind := duckdb.PreparedStatementType(stmt)
		var err error
		switch {
		case i == n-1 && kind == duckdb.StatementTypeSelect:
			x.Columns = columnsOf(stmt)
		case i < n-1 && kind == duckdb.StatementTypeCreate:
			var result duckdb.Result
			if duckdb.ExecutePrepared(stmt, &result) != duckdb.StateSuccess {
				err = c.failure(ctx, duckdb.ResultError(&result))
			}
			duckdb.DestroyResult(&result)
		default:
			err = ErrNoExpansion
		}
		duckdb.DestroyPrepare(&stmt)
		if err != nil {
			return err
		}
	}
	return nil
}

// texts runs a query of one VARCHAR column.
func (c *Conn) texts(ctx context.Context, sql string) ([]string, error) {
	rows, err := c.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for {
		batch, err := rows.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		column := batch.Column(0).(*array.String)
		for i := range int(batch.NumRows()) {
			out = append(out, strings.Clone(column.Value(i)))
		}
		batch.Release()
	}
}
