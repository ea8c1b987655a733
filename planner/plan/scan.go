package plan

import (
	"slices"
	"strings"
)

// Scan is what all sources have in common: columns are read, rows are filtered, columns are output.
type Scan struct {
	Read    []Column
	Filters []Expr // ANDed, over Read
	Keep    []int  // output, as positions in Read
}

// Column is a column of a source.
type Column struct {
	Name    string
	Type    Type
	Virtual Virtual  // not a stored column; Name is then the virtual column's
	Path    []string // fields to follow into a struct; Type is the leaf's
}

// Virtual is a column that the reader makes.
type Virtual int

// Virtual columns. EmptyColumn has no values: it stands where only the number of rows counts.
const (
	Stored Virtual = iota
	RowID
	EmptyColumn
	Filename
	FileRowNumber
	FileIndex
)

// Get reads files: Parquet, or text.
type Get struct {
	Scan
	Files []string
	// Ranges, when not nil, restricts the scan to these rows; Files is then not read. See FileRange.
	Ranges []FileRange
	Source []Field // all columns of the source, those that the reader adds included
	Reader Parquet
	Text   *TextReader // not nil: the files are no Parquet files
}

// TextReader is how files of text are read: by a call of Function with the files and Options.
type TextReader struct {
	Function string // read_csv, read_json
	Options  string // further arguments of the call, each after a comma
}

// FileRange is the rows [First, Last) of a file. Last < 0 means to the end: with First 0 that is the whole file.
type FileRange struct {
	File        string
	First, Last int64
}

// Parquet is the reader's options.
type Parquet struct {
	BinaryAsString   bool
	FileRowNumber    bool
	FilenameColumn   string // "" = no such column
	HivePartitioning bool
	HiveTypes        []Field
	UnionByName      bool
}

// Splittable reports whether the scan's parts, each with some of the files or rows, add up to the scan, and why not.
func (n *Get) Splittable() (ok bool, why string) {
	if slices.ContainsFunc(n.Read, func(c Column) bool { return c.Virtual == FileIndex || c.Virtual == RowID }) {
		return false, "it numbers the files or rows of the whole scan"
	}
	return true, ""
}

// RowSplittable reports whether files can be split by rows: a column of the data may hide the row number.
func (n *Get) RowSplittable() bool {
	if n.Text != nil {
		return false
	}
	return n.Reader.FileRowNumber || !slices.ContainsFunc(n.Source, func(f Field) bool { return strings.EqualFold(f.Name, "file_row_number") })
}

// TableScan reads a table of a DuckDB catalog.
type TableScan struct {
	Scan
	Catalog, Schema, Table string
	Source                 []Field
}

// TableFunc calls a table function. With a Child the call is made for each row: the child's first columns are the
// arguments, and the columns in Pass follow the function's in the output.
type TableFunc struct {
	Scan
	Name   string
	Args   []Value
	Named  []NamedValue
	Source []Field
	Child  Node // nil = none
	Params int  // with a Child: how many of its columns are arguments
	Table  bool // with a Child: the whole child is one argument
	Pass   []int

	Ordinality bool // with a Child: the last of Source is the number of the call's row
}

// NamedValue is a named argument.
type NamedValue struct {
	Name  string
	Value Value
}

// Types are those of the columns in Keep.
func (s *Scan) Types() []Type {
	out := make([]Type, len(s.Keep))
	for i, k := range s.Keep {
		out[i] = s.Read[k].Type
	}
	return out
}

func (n *TableFunc) Types() []Type {
	out := n.Scan.Types()
	if n.Child != nil {
		out = append(out, pick(n.Child.Types(), n.Pass)...)
	}
	return out
}

func (*Get) Children() []Node         { return nil }
func (*TableScan) Children() []Node   { return nil }
func (n *TableFunc) Children() []Node { return optional(n.Child) }

func (n *Get) WithChildren([]Node) Node       { return n }
func (n *TableScan) WithChildren([]Node) Node { return n }

func (n *TableFunc) WithChildren(c []Node) Node {
	m := *n
	if n.Child != nil {
		m.Child = c[0]
	}
	return &m
}
