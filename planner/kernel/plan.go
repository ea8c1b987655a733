package kernel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// ErrNotSerializable is wrapped by the errors of Plan for a statement that is right but whose plan DuckDB can't write
// down: CSV and JSON readers, BIT constants, statements other than SELECT, and DuckDB's own internal failures.
var ErrNotSerializable = errors.New("kernel: the plan can't be serialized")

// Plan returns DuckDB's bound and optimized logical plan as strict JSON. The instance must have been opened with
// PlanningDisabled. NaN, Infinity and -Infinity, which DuckDB writes as bare words, are quoted. A mistake in the text
// is an *Error.
func (c *Conn) Plan(ctx context.Context, sql string) (string, error) {
	text, err := c.single(ctx, "SELECT json_serialize_plan("+QuoteString(sql)+", optimize := true, skip_null := false, "+
		"skip_empty := false, skip_default := false)::VARCHAR", 0)
	if err != nil {
		return "", err
	}
	if text == "" {
		return "", fmt.Errorf("%w: it holds a constant that is no text", ErrNotSerializable)
	}
	text = strictJSON(text)
	var failed struct {
		Error    bool   `json:"error"`
		Type     string `json:"error_type"`
		Message  string `json:"error_message"`
		Position string `json:"position"`
	}
	// Only the small error object is decoded here: a plan begins with "error":false.
	if !strings.HasPrefix(text, `{"error":false`) {
		if err := json.Unmarshal([]byte(text), &failed); err != nil {
			return "", fmt.Errorf("%w: %w", ErrNotSerializable, err)
		}
	}
	if failed.Error {
		return "", planError(failed.Type, failed.Message, failed.Position)
	}
	return text, nil
}

// planError tells the user's mistakes from what DuckDB can't serialize.
func planError(kind, message, at string) error {
	e := &Error{Type: errorTypes[kind], Message: oneLine(message), Position: position(at)}
	if e.Type == "" {
		e.Type = kind
	}
	switch kind {
	case "not implemented", "serialization", "internal", "fatal":
		return fmt.Errorf("%w: %w", ErrNotSerializable, e)
	}
	if strings.Contains(message, "does not support serialization") {
		return fmt.Errorf("%w: %w", ErrNotSerializable, e)
	}
	return e
}

// errorTypes maps the names that json_serialize_plan uses to those of DuckDB's messages.
var errorTypes = map[string]string{
	"parser": "Parser", "binder": "Binder", "catalog": "Catalog", "syntax": "Syntax", "io": "IO",
	"conversion": "Conversion", "invalid input": "Invalid Input", "out of range": "Out of Range",
	"out of memory": "Out of Memory", "permission": "Permission", "interrupt": "INTERRUPT",
	"not implemented": "Not implemented", "serialization": "Serialization", "internal": "INTERNAL",
}

// PlanCardinalities returns EXPLAIN (FORMAT json) of the optimized logical plan: the same tree as Plan, with
// DuckDB's estimates.
func (c *Conn) PlanCardinalities(ctx context.Context, sql string) (string, error) {
	if err := c.ready(ctx, sql); err != nil {
		return "", err
	}
	if !c.explain {
		if err := c.command("SET explain_output = 'optimized_only'"); err != nil {
			return "", err
		}
		c.explain = true
	}
	const explain = "EXPLAIN (FORMAT json) "
	text, err := c.single(ctx, explain+sql, 1)
	if e, ok := errors.AsType[*Error](err); ok && e.Position > len(explain) {
		e.Position -= len(explain)
	}
	return text, err
}

// single runs a query whose result is one row, and returns one of its text columns.
func (c *Conn) single(ctx context.Context, sql string, column int) (string, error) {
	rows, err := c.begin(ctx, sql, (*Rows).collect)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	batch, err := rows.Next()
	if err == io.EOF {
		return "", errors.New("kernel: no row where one was expected")
	}
	if err != nil {
		return "", err
	}
	defer batch.Release()
	values, ok := batch.Column(column).(*array.String)
	if !ok {
		return "", fmt.Errorf("kernel: %s where text was expected", batch.Column(column).DataType())
	}
	return strings.Clone(values.Value(0)), nil
}

// strictJSON quotes the words NaN, Infinity and -Infinity where they stand outside strings.
func strictJSON(s string) string {
	if !strings.Contains(s, "NaN") && !strings.Contains(s, "Infinity") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		if s[i] == '"' {
			end := stringEnd(s, i)
			b.WriteString(s[i:end])
			i = end
			continue
		}
		word := ""
		for _, w := range []string{"NaN", "-NaN", "Infinity", "-Infinity"} {
			if strings.HasPrefix(s[i:], w) {
				word = w
			}
		}
		if word == "" {
			b.WriteByte(s[i])
			i++
			continue
		}
		b.WriteString(`"` + word + `"`)
		i += len(word)
	}
	return b.String()
}

// stringEnd returns the index after the string that starts at s[i].
func stringEnd(s string, i int) int {
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s)
}
