package tpc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/kernel"
)

// null is the text of NULL in a table. No value of the data has it.
const null = "\x00NULL"

// table is a result as texts, one for each value, equal if and only if the values are.
type table struct {
	names []string
	rows  [][]string
}

func tableOf(r *Result) (*table, error) {
	t := &table{}
	for _, f := range r.Schema.Fields() {
		t.names = append(t.names, f.Name)
	}
	for _, b := range r.Batches {
		plain, err := kernel.FromLossless(b)
		if err != nil {
			return nil, err
		}
		for row := range int(plain.NumRows()) {
			values := make([]string, plain.NumCols())
			for c, column := range plain.Columns() {
				values[c] = valueText(column, row)
			}
			t.rows = append(t.rows, values)
		}
		plain.Release()
	}
	return t, nil
}

func valueText(column arrow.Array, row int) string {
	if column.IsNull(row) {
		return null
	}
	if d, ok := column.(*array.Float64); ok {
		return doubleText(d.Value(row))
	}
	return strings.Clone(column.ValueStr(row)) // the text may lie in the batch
}

// doubleText is the shortest text that reads back as the same value.
func doubleText(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// CompareAnswer compares got with an official answer. An error is a *Difference, or says that the answer is no answer.
func CompareAnswer(rule Rule, answer string, got *Result) (Report, error) {
	g, err := tableOf(got)
	if err != nil {
		return Report{}, err
	}
	w, err := answerTable(answer, got)
	if err != nil {
		return Report{}, err
	}
	for c, t := range got.Types {
		if !isNumber(t) || t == "DOUBLE" {
			continue
		}
		for _, row := range g.rows {
			row[c] = plainNumber(row[c])
		}
	}
	return compareTables(rule, w, g)
}

// answerTable reads an answer's text, taking the types of its columns from got.
func answerTable(answer string, got *Result) (*table, error) {
	lines := strings.Split(strings.TrimSuffix(answer, "\n"), "\n")
	names := strings.Split(lines[0], "|")
	if len(names) != len(got.Types) {
		return nil, &Difference{What: "numbers of columns differ", Want: lines[0], Got: strconv.Itoa(len(got.Types))}
	}
	t := &table{names: names}
	for n, line := range lines[1:] {
		row := strings.Split(line, "|")
		if len(row) != len(names) {
			return nil, fmt.Errorf("tpc: row %d of the answer has %d fields instead of %d: %s", n+1, len(row), len(names), short(line))
		}
		for c, text := range row {
			switch {
			case text == "":
				row[c] = null
			case got.Types[c] == "DOUBLE":
				v, err := strconv.ParseFloat(text, 64)
				if err != nil {
					return nil, fmt.Errorf("tpc: row %d of the answer, column %s: %w", n+1, names[c], err)
				}
				row[c] = doubleText(v)
			case isNumber(got.Types[c]):
				row[c] = plainNumber(text)
			}
		}
		t.rows = append(t.rows, row)
	}
	return t, nil
}

func isNumber(typ string) bool {
	return strings.HasPrefix(typ, "DECIMAL(") || typ == "DOUBLE" || typ == "FLOAT" || strings.HasSuffix(typ, "INT") || strings.HasSuffix(typ, "INTEGER")
}

// plainNumber drops the zeros that end a fraction.
func plainNumber(text string) string {
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
