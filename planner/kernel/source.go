package kernel

import (
	"strconv"
	"strings"
)

// SourceFunction is the table function that stands in for a reader whose plan DuckDB can't write down.
const SourceFunction = "manta_source"

// Source is a call of a reader that is planned with a stand-in.
type Source struct {
	Reader  string   // read_csv, read_json
	Options string   // further arguments of the call, each after a comma
	Files   []string // read in this order
	Rows    int64    // estimate
	Columns []Column
}

// SQL is the call of the stand-in, to select from. Its plan holds all but Rows as arguments.
func (s Source) SQL() string {
	var b strings.Builder
	b.WriteString(SourceFunction + "(" + QuoteString(s.Reader) + ", " + QuoteString(s.Options) + ", [")
	for i, f := range s.Files {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(QuoteString(f))
	}
	b.WriteString("], " + strconv.FormatInt(s.Rows, 10) + ", {")
	for i, c := range s.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(QuoteIdent(c.Name) + ": CAST(NULL AS " + c.Type + ")")
	}
	b.WriteString("})")
	return b.String()
}
