package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/kernel"
	"manta/planner/plan"
)

// session is the statement that gives another connection those settings of this
// one that change what a query means. They come from the process's environment,
// which is not the same on every node. folder is where relative paths begin.
func (s *Service) session(ctx context.Context, conn *kernel.Conn, folder string) (string, error) {
	zone, err := s.timeZone(ctx, conn)
	statement := "SET TimeZone = " + zone
	if folder != "" {
		statement += "; SET file_search_path = " + plan.Literal(folder)
	}
	return statement, err
}

// timeZone is this process's, as a literal. It is asked for once.
func (s *Service) timeZone(ctx context.Context, conn *kernel.Conn) (string, error) {
	if known := s.zone.Load(); known != nil {
		return *known, nil
	}
	rows, err := conn.Query(ctx, "SELECT current_setting('TimeZone')::VARCHAR")
	if err != nil {
		return "", err
	}
	defer rows.Close()
	zone := ""
	err = each(rows, func(b batch) error {
		zone = plan.Literal(b.Column(0).(*array.String).Value(0))
		return nil
	})
	if err == nil {
		s.zone.Store(&zone)
	}
	return zone, err
}

// effects are the table functions of DuckDB that do more than read: they write
// files, or change a node's instance for all queries. A SELECT can call them.
var effects = map[string]bool{
	"enable_logging": true, "disable_logging": true, "truncate_duckdb_logs": true,
	"enable_profiling": true, "disable_profiling": true, "checkpoint": true, "force_checkpoint": true,
	"enable_peg_parser": true, "disable_peg_parser": true,
}

// operator is an operator in DuckDB's EXPLAIN (FORMAT json); a table function has its own name.
type operator struct {
	Name     string
	Children []operator
}

// checkEffects refuses a query that calls one of effects.
func checkEffects(explain string) error {
	var roots []operator
	if err := json.Unmarshal([]byte(explain), &roots); err != nil {
		return fmt.Errorf("planner: DuckDB's EXPLAIN: %w", err)
	}
	var check func([]operator) error
	check = func(list []operator) error {
		for _, o := range list {
			if name := strings.ToLower(strings.TrimSpace(o.Name)); effects[name] {
				return fmt.Errorf("planner: %s() changes a node; a query may only read", name)
			}
			if err := check(o.Children); err != nil {
				return err
			}
		}
		return nil
	}
	return check(roots)
}

// checkAsWritten refuses a query that DuckDB refuses too, but only when it runs,
// and whose refusal leaves pointers to freed memory behind: an ASOF join in the
// step of a recursive CTE.
func checkAsWritten(explain string) error {
	var roots []operator
	if err := json.Unmarshal([]byte(explain), &roots); err != nil {
		return fmt.Errorf("planner: DuckDB's EXPLAIN: %w", err)
	}
	var asOf func(list []operator, inStep bool) bool
	asOf = func(list []operator, inStep bool) bool {
		for _, o := range list {
			if inStep && o.Name == "ASOF_JOIN" {
				return true
			}
			if o.Name == "REC_CTE" && len(o.Children) == 2 {
				if asOf(o.Children[:1], inStep) || asOf(o.Children[1:], true) {
					return true
				}
			} else if asOf(o.Children, inStep) {
				return true
			}
		}
		return false
	}
	if asOf(roots, false) {
		return &kernel.Error{Type: "Not implemented", Message: "AsOf joins are not supported in recursive CTEs yet"}
	}
	return nil
}
