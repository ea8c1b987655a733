package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// rowWriter writes a result in one format, batch by batch.
type rowWriter interface {
	begin(*arrow.Schema) error
	rows(arrow.RecordBatch) error // borrows
	end() error
}

func newRowWriter(format string, w io.Writer) (rowWriter, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	switch format {
	case "table":
		return &tableWriter{out: out}, nil
	case "csv":
		return &csvWriter{out: out, csv: csv.NewWriter(out)}, nil
	case "json":
		return &jsonWriter{out: out, open: "[", between: ",", close: "\n]\n"}, nil
	case "jsonl":
		return &jsonWriter{out: out}, nil
	}
	return nil, usagef("unknown output format %q; use table, csv, json or jsonl", format)
}

// page is the number of rows of which a table's column widths are found, so that
// a long result is printed while it comes.
const page = 1000

// tableWriter draws tables of at most a page.
type tableWriter struct {
	out    *bufio.Writer
	schema *arrow.Schema
	lines  []table.Row
	total  int64
}

func (t *tableWriter) begin(s *arrow.Schema) error {
	t.schema = s
	return nil
}

func (t *tableWriter) rows(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		line := make(table.Row, b.NumCols())
		for c := range line {
			line[c] = strings.Clone(cell(b.Column(c), i, "NULL"))
		}
		t.lines = append(t.lines, line)
		t.total++
		if len(t.lines) == page {
			if err := t.draw(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tableWriter) draw() error {
	header := make([]any, t.schema.NumFields())
	var columns []table.ColumnConfig
	for i, f := range t.schema.Fields() {
		header[i] = f.Name
		if numeric(f.Type) {
			columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight})
		}
	}
	w := newTable(t.out, header...)
	w.SetColumnConfigs(columns)
	w.AppendRows(t.lines)
	w.Render()
	t.lines = nil
	return t.out.Flush()
}

func (t *tableWriter) end() error {
	if len(t.lines) > 0 || t.total == 0 {
		if err := t.draw(); err != nil {
			return err
		}
	}
	rows := "rows"
	if t.total == 1 {
		rows = "row"
	}
	fmt.Fprintf(t.out, "(%d %s)\n", t.total, rows)
	return t.out.Flush()
}

// csvWriter writes RFC 4180 with a header; NULL is an empty field.
type csvWriter struct {
	out *bufio.Writer
	csv *csv.Writer
}

func (c *csvWriter) begin(s *arrow.Schema) error {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return c.csv.Write(names)
}

func (c *csvWriter) rows(b arrow.RecordBatch) error {
	line := make([]string, b.NumCols())
	for i := range int(b.NumRows()) {
		for j := range line {
			line[j] = cell(b.Column(j), i, "")
		}
		if err := c.csv.Write(line); err != nil {
			return err
		}
	}
	return c.end()
}

func (c *csvWriter) end() error {
	c.csv.Flush()
	if err := c.csv.Error(); err != nil {
		return err
	}
	return c.out.Flush()
}

// jsonWriter writes an object for each row: a line each, or the elements of one array.
type jsonWriter struct {
	out                  *bufio.Writer
	open, between, close string
	names                [][]byte
	wrote                bool
}

func (j *jsonWriter) begin(s *arrow.Schema) error {
	for _, f := range s.Fields() {
		name, err := json.Marshal(f.Name)
		if err != nil {
			return err
		}
		j.names = append(j.names, name)
	}
	_, err := j.out.WriteString(j.open)
	return err
}

func (j *jsonWriter) rows(b arrow.RecordBatch) error {
	for i := range int(b.NumRows()) {
		if j.wrote {
			j.out.WriteString(j.between)
		}
		if j.wrote || j.open != "" {
			j.out.WriteByte('\n')
		}
		j.wrote = true
		for c, name := range j.names {
			if c == 0 {
				j.out.WriteByte('{')
			} else {
				j.out.WriteByte(',')
			}
			j.out.Write(name)
			j.out.WriteByte(':')
			value, err := json.Marshal(jsonValue(b.Column(c), i))
			if err != nil {
				return fmt.Errorf("column %s: %w", name, err)
			}
			j.out.Write(value)
		}
		j.out.WriteByte('}')
	}
	return j.out.Flush()
}

func (j *jsonWriter) end() error {
	j.out.WriteString(j.close)
	if j.close == "" && j.wrote {
		j.out.WriteByte('\n')
	}
	return j.out.Flush()
}

// cell is one value as text; it may lie in the column's memory.
func cell(column arrow.Array, i int, null string) string {
	if column.IsNull(i) {
		return null
	}
	switch c := column.(type) {
	case *array.Timestamp:
		return timestampText(c, i)
	case *array.Binary:
		return blobText(c.Value(i))
	case *array.Decimal128:
		return c.Value(i).ToString(c.DataType().(*arrow.Decimal128Type).Scale)
	}
	return column.ValueStr(i)
}

// timestampText is the time as DuckDB writes it.
func timestampText(c *array.Timestamp, i int) string {
	t := c.DataType().(*arrow.TimestampType)
	text := c.Value(i).ToTime(t.Unit).UTC().Format("2006-01-02 15:04:05.999999999")
	if t.TimeZone != "" {
		text += "+00"
	}
	return text
}

// blobText shows printable bytes as they are and others as \xNN.
func blobText(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		if c >= ' ' && c < 0x7f && c != '\\' {
			s.WriteByte(c)
		} else {
			fmt.Fprintf(&s, "\\x%02X", c)
		}
	}
	return s.String()
}

func numeric(t arrow.DataType) bool {
	return arrow.IsInteger(t.ID()) || arrow.IsFloating(t.ID()) || arrow.IsDecimal(t.ID())
}

// jsonValue is one value for encoding/json: decimals are numbers with all their
// digits, and what JSON has no number for is text.
func jsonValue(column arrow.Array, i int) any {
	if column.IsNull(i) {
		return nil
	}
	switch c := column.(type) {
	case *array.Float64:
		return finite(c.Value(i))
	case *array.Float32:
		return finite(float64(c.Value(i)))
	case *array.Timestamp:
		return timestampText(c, i)
	case *array.Binary:
		return blobText(c.Value(i))
	case *array.Struct:
		m := map[string]any{}
		for f := range c.NumField() {
			m[c.DataType().(*arrow.StructType).Field(f).Name] = jsonValue(c.Field(f), i)
		}
		return m
	case *array.List:
		from, to := c.ValueOffsets(i)
		list := make([]any, 0, to-from)
		for k := from; k < to; k++ {
			list = append(list, jsonValue(c.ListValues(), int(k)))
		}
		return list
	}
	if arrow.IsDecimal(column.DataType().ID()) {
		return json.Number(cell(column, i, ""))
	}
	return column.GetOneForMarshal(i)
}

func finite(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return f
}
