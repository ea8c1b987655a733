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
	"manta/planner/sqltext"
)

// What DuckDB's readers of text sniff, dialect and column types, depends on the
// files that a call reads. It is therefore asked once, for all of a table's
// files, and written into every fragment.

// maxTextFiles is the number of files up to which each one's dialect is asked.
const maxTextFiles = 1000

// textRow is a guess at the bytes of a row.
const textRow = 64

// textSource describes what a call of a reader of text gives, for planning. It is nil when
// fragments that read some of the files could not be told to read them just as
// one call reads all of them.
func textSource(ctx context.Context, conn *kernel.Conn, call textCall) (*kernel.Source, error) {
	if slices.ContainsFunc(call.paths, remote) || !call.known() {
		return nil, nil
	}
	all := func(string) bool { return true }
	columns, err := conn.Describe(ctx, "SELECT * FROM "+call.sql(call.own(all)))
	if err != nil {
		return nil, err
	}
	var files []string
	for _, path := range call.paths {
		found, err := textColumn(ctx, conn, "SELECT file FROM glob("+plan.Literal(path)+")")
		if err != nil || len(found) == 0 {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) > maxTextFiles {
		return nil, nil
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.ContainsAny(f, "*?[") }) {
		return nil, nil // DuckDB takes every name for a pattern
	}
	src := &kernel.Source{Reader: call.function, Files: files, Columns: columns}
	var ok bool
	if call.isCSV() {
		src.Options, ok = csvOptions(ctx, conn, call, src)
	} else {
		src.Options, ok = jsonOptions(call, src)
	}
	if !ok {
		return nil, nil
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

// promptFile is the file's name in the call that sniff_csv proposes.
var promptFile = regexp.MustCompile(`^FROM read_csv\('(?:[^']|'')*', `)

// csvOptions gives the options with which each file is read as all are read at
// once; not ok when the files differ in dialect or columns.
func csvOptions(ctx context.Context, conn *kernel.Conn, call textCall, src *kernel.Source) (options string, ok bool) {
	var names, types []string
	for _, c := range src.Columns {
		names, types = append(names, c.Name), append(types, c.Type)
	}
	given := call.own(func(name string) bool { return name != "columns" })
	if call.has("columns") { // sniff_csv refuses columns of other types than it finds
		given += ", names = " + stringList(names) + ", types = " + stringList(types)
	}
	for i, f := range src.Files {
		rows, err := textColumn(ctx, conn, "SELECT unnest([Prompt, list_transform(Columns, lambda c: c.name)::VARCHAR, "+stringList(names)+"::VARCHAR])"+
			" FROM sniff_csv("+plan.Literal(f)+given+")")
		if err != nil || len(rows) != 3 || rows[1] != rows[2] {
			return "", false // whatever it is, one call over all files may know how to read it
		}
		prompt := strings.TrimSuffix(rows[0], ");")
		file := promptFile.FindString(prompt)
		if file == "" {
			return "", false
		}
		own := withoutColumns(prompt[len(file):])
		if i > 0 && own != options {
			return "", false
		}
		options = own
	}
	options = ", " + options + ", columns = " + columnStruct(src.Columns) + ", hive_partitioning = false"
	return options, describes(ctx, conn, call, options, src.Columns)
}

// withoutColumns leaves the columns out of the options that sniff_csv proposes.
func withoutColumns(prompt string) string {
	var out []string
	for _, arg := range arguments(sqltext.Tokens(prompt), 0) {
		if !arg[0].Is("columns") {
			out = append(out, prompt[arg[0].From:arg[len(arg)-1].To])
		}
	}
	return strings.Join(out, ", ")
}

// describes reports whether a call with those options gives those columns.
func describes(ctx context.Context, conn *kernel.Conn, call textCall, options string, columns []kernel.Column) bool {
	got, err := conn.Describe(ctx, "SELECT * FROM "+call.sql(options))
	return err == nil && slices.Equal(got, columns)
}

// jsonOptions gives the options with which each file is read as all are read at
// once; not ok where a type's format was sniffed too.
func jsonOptions(call textCall, src *kernel.Source) (options string, ok bool) {
	for _, c := range src.Columns {
		sniffed := strings.Contains(c.Type, "DATE") || strings.Contains(c.Type, "TIME")
		if sniffed && !call.has("columns") || strings.EqualFold(c.Name, "json") {
			return "", false
		}
	}
	return call.own(func(name string) bool { return jsonOptionNames[name] }) + ", columns = " + columnStruct(src.Columns) + ", hive_partitioning = false", true
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
		call, ok := callOf(tables[name])
		if !ok {
			continue
		}
		src, err := textSource(ctx, conn, call)
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
