package planner

import (
	"context"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"manta/planner/kernel"
)

// schemas gives the Arrow schema that DuckDB exchanges for a list of its types.
// DuckDB itself is asked, once for each list: what it makes of a type is
// nowhere repeated in Go.
type schemas struct {
	mu    sync.Mutex
	known map[string]*arrow.Schema // guarded by mu; by the types joined with a zero byte
}

// maxSchemas bounds the memory of lists that are asked once and never again.
const maxSchemas = 4096

// of returns the schema with the fields c0, c1, … of the given types.
func (s *schemas) of(ctx context.Context, conn *kernel.Conn, types []string) (*arrow.Schema, error) {
	key := strings.Join(types, "\x00")
	s.mu.Lock()
	schema := s.known[key]
	s.mu.Unlock()
	if schema != nil {
		return schema, nil
	}
	rows, err := conn.Query(ctx, emptyRelation(types))
	if err != nil {
		return nil, err
	}
	schema = rows.Schema()
	rows.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxSchemas {
		s.known = map[string]*arrow.Schema{}
	}
	s.known[key] = schema
	return schema, nil
}

// emptyRelation is a query without rows whose columns c0, c1, … have the given types.
func emptyRelation(types []string) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, t := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("CAST(NULL AS " + t + ") AS " + column(i))
	}
	b.WriteString(" WHERE FALSE")
	return b.String()
}

// ofQuery returns the schema of a query's rows, for types that SQL may not be able to spell.
func ofQuery(ctx context.Context, conn *kernel.Conn, sql string) (*arrow.Schema, error) {
	text := strings.TrimRight(strings.TrimSpace(sql), "; \n\t")
	rows, err := conn.Query(ctx, "SELECT * FROM (\n"+text+"\n) LIMIT 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Schema(), nil
}
