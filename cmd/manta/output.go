package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
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
		return &csvWriter{out: out}, nil
	case "json":
		return &jsonWriter{out: out, open: "[", between: ",", close: "\n]\n"}, nil
	case "jsonl":
		return &jsonWriter{out: out}, nil
	case "arrow":
		return &arrowWriter{out: out}, nil
	case "parquet":
		return &parquetWriter{out: out}, nil
	}
	return nil, usagef("unknown output format %q; use table, csv, json, jsonl, arrow or parquet", format)
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
			line[c] = strings.Clone(visible(cell(b.Column(c), i, "NULL")))
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
		header[i] = visible(f.Name)
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

// csvWriter writes RFC 4180 with a header. NULL is an empty field, and an empty
// text is a quoted one, so that a reader can tell them apart.
type csvWriter struct {
	out  *bufio.Writer
	line []byte
}

func (c *csvWriter) begin(s *arrow.Schema) error {
	for i, f := range s.Fields() {
		c.field(i, f.Name)
	}
	return c.endLine()
}

func (c *csvWriter) rows(b arrow.RecordBatch) error {
	columns := b.Columns()
	for i := range int(b.NumRows()) {
		for j, column := range columns {
			if !column.IsNull(i) {
				c.field(j, cell(column, i, ""))
			} else if j > 0 {
				c.line = append(c.line, ',')
			}
		}
		if err := c.endLine(); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// field appends a text to the line.
func (c *csvWriter) field(at int, text string) {
	if at > 0 {
		c.line = append(c.line, ',')
	}
	if text != "" && !strings.ContainsAny(text, ",\"\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		c.line = append(c.line, text...)
		return
	}
	c.line = append(c.line, '"')
	c.line = append(c.line, strings.ReplaceAll(text, `"`, `""`)...)
	c.line = append(c.line, '"')
}

func (c *csvWriter) endLine() error {
	_, err := c.out.Write(append(c.line, '\n'))
	c.line = c.line[:0]
	return err
}

func (c *csvWriter) end() error { return c.out.Flush() }

// jsonWriter writes an object for each row: a line each, or the elements of one array.
type jsonWriter struct {
	out                  *bufio.Writer
	open, between, close string
	schema               *arrow.Schema
	line                 []byte
	wrote                bool
}

func (j *jsonWriter) begin(s *arrow.Schema) error {
	j.schema = s
	_, err := j.out.WriteString(j.open)
	return err
}

func (j *jsonWriter) rows(b arrow.RecordBatch) error {
	columns := b.Columns()
	for i := range int(b.NumRows()) {
		j.line = j.line[:0]
		if j.wrote {
			j.line = append(j.line, j.between...)
		}
		if j.wrote || j.open != "" {
			j.line = append(j.line, '\n')
		}
		j.wrote = true
		j.line = append(j.line, '{')
		for c, column := range columns {
			j.line = appendName(j.line, c, j.schema.Field(c).Name)
			j.line = appendJSON(j.line, column, i)
		}
		if _, err := j.out.Write(append(j.line, '}')); err != nil {
			return err
		}
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
