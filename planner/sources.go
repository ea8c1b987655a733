package planner

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/dist"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/planner/split"
)

// What DuckDB's readers of text sniff, dialect and column types, depends on the
// files that a call reads. It is therefore asked once, for all of a table's
// files, and written into every fragment.

// maxTextFiles is the number of files up to which each one's dialect is asked.
const maxTextFiles = 1000

// textRow is a guess at the bytes of a row.
const textRow = 64

// textSource describes a table of text files for planning. It is nil when
// fragments that read some of the files could not be told to read them just as
// one call reads all of them.
func textSource(ctx context.Context, conn *kernel.Conn, glob string) (*kernel.Source, error) {
	function := readerOf(glob)
	if function == readParquet || remote(glob) {
		return nil, nil
	}
	columns, err := conn.Describe(ctx, "SELECT * FROM "+reader(glob))
	if err != nil {
		return nil, err
	}
	files, err := textColumn(ctx, conn, "SELECT file FROM glob("+plan.Literal(glob)+")")
	if err != nil || len(files) == 0 || len(files) > maxTextFiles {
		return nil, err
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.ContainsAny(f, "*?[") }) {
		return nil, nil // DuckDB takes every name for a pattern
	}
	src := &kernel.Source{Reader: function, Files: files, Columns: columns}
	var ok bool
	if function == readCSV {
		src.Options, ok, err = csvOptions(ctx, conn, src)
	} else {
		src.Options, ok = jsonOptions(src)
	}
	if err != nil || !ok {
		return nil, err
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return nil, fmt.Errorf("planner: %w", err)
		}
		src.Rows += info.Size()/textRow + 1
	}
	return src, nil
}

// The columns and the file's name in the call that sniff_csv proposes.
var (
	promptFile    = regexp.MustCompile(`^FROM read_csv\('(?:[^']|'')*', `)
	promptColumns = regexp.MustCompile(`, columns=\{.*\}`)
)

// csvOptions gives the options with which each file is read as all are read at
// once; not ok when the files differ in dialect or columns.
func csvOptions(ctx context.Context, conn *kernel.Conn, src *kernel.Source) (options string, ok bool, err error) {
	var names []string
	for _, c := range src.Columns {
		names = append(names, c.Name)
	}
	for i, f := range src.Files {
		rows, err := textColumn(ctx, conn, "SELECT unnest([Prompt, list_transform(Columns, lambda c: c.name)::VARCHAR, "+stringList(names)+"::VARCHAR])"+
			" FROM sniff_csv("+plan.Literal(f)+")")
		if err != nil || len(rows) != 3 || rows[1] != rows[2] {
			return "", false, nil // whatever it is, one call over all files may know how to read it
		}
		prompt := strings.TrimSuffix(rows[0], ");")
		file := promptFile.FindString(prompt)
		if file == "" {
			return "", false, nil
		}
		own := promptColumns.ReplaceAllString(prompt[len(file):], "")
		if i > 0 && own != options {
			return "", false, nil
		}
		options = own
	}
	return ", " + options + ", columns = " + columnStruct(src.Columns) + ", hive_partitioning = false", true, nil
}

// jsonOptions gives the options with which each file is read as all are read at
// once; not ok where a type's format was sniffed too.
func jsonOptions(src *kernel.Source) (options string, ok bool) {
	for _, c := range src.Columns {
		if strings.Contains(c.Type, "DATE") || strings.Contains(c.Type, "TIME") || strings.EqualFold(c.Name, "json") {
			return "", false
		}
	}
	return ", columns = " + columnStruct(src.Columns) + ", hive_partitioning = false", true
}

func columnStruct(columns []kernel.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = plan.Literal(c.Name) + ": " + plan.Literal(c.Type)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func stringList(values []string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = plan.Literal(v)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// textColumn runs a query of one VARCHAR column.
func textColumn(ctx context.Context, conn *kernel.Conn, sql string) ([]string, error) {
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	err = each(rows, func(b batch) error {
		column := b.Column(0).(*array.String)
		for i := range int(b.NumRows()) {
			out = append(out, strings.Clone(column.Value(i)))
		}
		return nil
	})
	return out, err
}

// planningViews are the statements that make the tables known for planning: those
// of tableViews, with a stand-in for each table of text files that can be shared out.
func planningViews(ctx context.Context, conn *kernel.Conn, tables map[string]string, setup []string) ([]string, error) {
	out := slices.Clone(setup)
	for i, name := range tableNames(tables) {
		src, err := textSource(ctx, conn, tables[name])
		if err != nil {
			return nil, unplaced(err)
		}
		if src != nil {
			out[i] = "CREATE TEMP VIEW " + plan.Ident(name) + " AS SELECT * FROM " + src.SQL()
		}
	}
	return out, nil
}

// textFile describes a file of text: one run of rows, for nobody knows where the rows begin.
func textFile(path string) (dist.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return dist.File{}, fmt.Errorf("planner: %w", err)
	}
	f := dist.File{Path: path, Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	f.Groups = []split.RowGroup{{Rows: info.Size()/textRow + 1, Bytes: info.Size()}}
	return f, nil
}
