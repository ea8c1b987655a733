package kernel

import (
	"context"

	duckdb "github.com/duckdb/duckdb-go-bindings"
)

// Column is a column of a result.
type Column struct {
	Name string
	Type string // DuckDB's name, as Rows.Types gives it
}

// Describe returns the columns that a statement will have, without running it.
func (c *Conn) Describe(ctx context.Context, sql string) ([]Column, error) {
	var columns []Column
	err := c.prepared(ctx, sql, func(stmt duckdb.PreparedStatement) {
		columns = columnsOf(stmt)
	})
	return columns, err
}

func columnsOf(stmt duckdb.PreparedStatement) []Column {
	columns := make([]Column, duckdb.PreparedStatementColumnCount(stmt))
	for i := range columns {
		t := duckdb.PreparedStatementColumnLogicalType(stmt, duckdb.IdxT(i))
		columns[i] = Column{Name: duckdb.PreparedStatementColumnName(stmt, duckdb.IdxT(i)), Type: typeName(t)}
		duckdb.DestroyLogicalType(&t)
	}
	return columns
}

// prepared parses and binds one statement and hands it to f.
func (c *Conn) prepared(ctx context.Context, sql string, f func(duckdb.PreparedStatement)) error {
	if err := c.ready(ctx, sql); err != nil {
		return err
	}
	w := startWatch(ctx, c.handle)
	defer w.end()
	var stmt duckdb.PreparedStatement
	defer duckdb.DestroyPrepare(&stmt)
	if duckdb.Prepare(c.handle, sql, &stmt) != duckdb.StateSuccess {
		return c.failure(ctx, duckdb.PrepareError(stmt))
	}
	f(stmt)
	return nil
}

// Statements says what a text holds.
type Statements struct {
	Count   int
	Kind    string   // of the first: SELECT, INSERT, COPY, ... or "" without one
	Columns []Column // of the first, if it has a result
}

// Statements parses a text. The first statement is bound, so an unknown table is an error; then Count is still right.
func (c *Conn) Statements(ctx context.Context, sql string) (s Statements, err error) {
	if err := c.ready(ctx, sql); err != nil {
		return s, err
	}
	w := startWatch(ctx, c.handle)
	defer w.end()
	var all duckdb.ExtractedStatements
	defer duckdb.DestroyExtracted(&all)
	s.Count = int(duckdb.ExtractStatements(c.handle, sql, &all))
	if s.Count == 0 {
		if message := duckdb.ExtractStatementsError(all); message != "" {
			return s, c.failure(ctx, message)
		}
		return s, nil
	}
	var stmt duckdb.PreparedStatement
	defer duckdb.DestroyPrepare(&stmt)
	if duckdb.PrepareExtractedStatement(c.handle, all, 0, &stmt) != duckdb.StateSuccess {
		return s, c.failure(ctx, duckdb.PrepareError(stmt))
	}
	s.Kind, s.Columns = kinds[duckdb.PreparedStatementType(stmt)], columnsOf(stmt)
	return s, nil
}

var kinds = map[duckdb.StatementType]string{
	duckdb.StatementTypeSelect: "SELECT", duckdb.StatementTypeInsert: "INSERT", duckdb.StatementTypeUpdate: "UPDATE",
	duckdb.StatementTypeExplain: "EXPLAIN", duckdb.StatementTypeDelete: "DELETE", duckdb.StatementTypePrepare: "PREPARE",
	duckdb.StatementTypeCreate: "CREATE", duckdb.StatementTypeExecute: "EXECUTE", duckdb.StatementTypeAlter: "ALTER",
	duckdb.StatementTypeTransaction: "TRANSACTION", duckdb.StatementTypeCopy: "COPY", duckdb.StatementTypeAnalyze: "ANALYZE",
	duckdb.StatementTypeVariableSet: "SET VARIABLE", duckdb.StatementTypeCreateFunc: "CREATE FUNCTION",
	duckdb.StatementTypeDrop: "DROP", duckdb.StatementTypeExport: "EXPORT", duckdb.StatementTypePragma: "PRAGMA",
	duckdb.StatementTypeVacuum: "VACUUM", duckdb.StatementTypeCall: "CALL", duckdb.StatementTypeSet: "SET",
	duckdb.StatementTypeLoad: "LOAD", duckdb.StatementTypeRelation: "RELATION", duckdb.StatementTypeExtension: "EXTENSION",
	duckdb.StatementTypeLogicalPlan: "LOGICAL PLAN", duckdb.StatementTypeAttach: "ATTACH", duckdb.StatementTypeDetach: "DETACH",
	duckdb.StatementTypeMulti: "MULTI", duckdb.StatementTypeCopyDatabase: "COPY DATABASE",
	duckdb.StatementTypeUpdateExtensions: "UPDATE EXTENSIONS", duckdb.StatementTypeMergeInto: "MERGE",
}
