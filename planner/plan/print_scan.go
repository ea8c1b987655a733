package plan

import (
	"slices"
	"strconv"
	"strings"
)

// table selects from a table of the catalog.
func (p *Printer) table(n *TableScan) block {
	alias := p.Alias()
	from := Ident(n.Catalog) + "." + Ident(n.Schema) + "." + Ident(n.Table) + " AS " + alias
	return p.scan(&n.Scan, from, columnTexts(n.Read, alias), nil)
}

// scan selects from a source whose Read columns have these texts.
func (p *Printer) scan(s *Scan, from string, cols, where []string) block {
	return block{from: from, cols: choose(cols, s.Keep), where: slices.Concat(where, p.exprs(s.Filters, cols))}
}

// columnTexts gives the columns of a source as the types that the plan says: a part of the files may say otherwise.
func columnTexts(read []Column, alias string) []string {
	out := make([]string, len(read))
	for i, c := range read {
		text := alias + "." + Ident(c.Name)
		for _, f := range c.Path {
			text = "struct_extract(" + text + ", " + Literal(f) + ")"
		}
		switch c.Virtual {
		case Stored:
			text = castText(text, c.Type)
		case EmptyColumn:
			text = "CAST(NULL AS BOOLEAN)"
		}
		out[i] = text
	}
	return out
}

// parquet selects from the files, or from the ranges: one call for the whole files and one for each part of a file.
func (p *Printer) parquet(n *Get) block {
	if n.Ranges == nil {
		return p.parquetCall(n, n.Files, nil)
	}
	var whole []string
	var parts []block
	for _, r := range n.Ranges {
		if r.First == 0 && r.Last < 0 {
			whole = append(whole, r.File)
		} else {
			parts = append(parts, p.parquetCall(n, []string{r.File}, &r))
		}
	}
	if whole != nil {
		parts = append(parts, p.parquetCall(n, whole, nil))
	}
	switch len(parts) {
	case 0:
		return p.block(&Empty{Out: n.Types()})
	case 1:
		return parts[0]
	}
	texts := make([]string, len(parts))
	for i, b := range parts {
		texts[i] = "(" + b.String() + ")"
	}
	from := named("("+strings.Join(texts, " UNION ALL ")+")", p.Alias(), len(n.Keep))
	return block{from: from.sql, cols: from.cols}
}

// parquetCall selects from one call of the reader. The row range is a condition on the row number, by which the reader
// skips row groups; it stands in the same SELECT as the filters so that both reach the reader.
func (p *Printer) parquetCall(n *Get, files []string, r *FileRange) block {
	alias := p.Alias()
	if n.Text != nil {
		if r != nil {
			fail(unsupported("a part of a file of text"))
		}
		call := Ident(n.Text.Function) + "([" + literals(files) + "]" + n.Text.Options + ")"
		return p.scan(&n.Scan, call+" AS "+alias, columnTexts(n.Read, alias), nil)
	}
	call := "read_parquet([" + literals(files) + "]" + readerOptions(&n.Reader) + ")"
	if n.Reader.UnionByName {
		call = p.unionByName(n, call, r != nil)
	}
	var where []string
	if r != nil {
		row := alias + ".file_row_number"
		where = append(where, row+" >= "+strconv.FormatInt(r.First, 10))
		if r.Last >= 0 {
			where = append(where, row+" < "+strconv.FormatInt(r.Last, 10))
		}
	}
	return p.scan(&n.Scan, call+" AS "+alias, columnTexts(n.Read, alias), where)
}

// unionByName makes sure that all columns exist, whichever files are read: an empty relation has all of them.
func (p *Printer) unionByName(n *Get, call string, rows bool) string {
	all := block{where: []string{"FALSE"}}
	for _, f := range n.Source {
		all.named = append(all.named, literal(NullOf(f.Type))+" AS "+Ident(f.Name))
	}
	star := []string{"*"}
	for _, c := range n.Read {
		switch c.Virtual {
		case Filename, FileIndex:
			star = append(star, c.Name)
		case FileRowNumber:
			rows = true
		}
	}
	if rows && !n.Reader.FileRowNumber {
		star = append(star, "file_row_number")
	}
	return "(" + all.String() + " UNION ALL BY NAME SELECT " + strings.Join(star, ", ") + " FROM " + call + ")"
}

func readerOptions(r *Parquet) string {
	var b strings.Builder
	b.WriteString(", hive_partitioning = " + strconv.FormatBool(r.HivePartitioning))
	if r.HivePartitioning && len(r.HiveTypes) > 0 {
		types := make([]string, len(r.HiveTypes))
		for i, f := range r.HiveTypes {
			types[i] = Literal(f.Name) + ": " + Literal(f.Type.String())
		}
		b.WriteString(", hive_types = {" + strings.Join(types, ", ") + "}")
	}
	if r.BinaryAsString {
		b.WriteString(", binary_as_string = true")
	}
	if r.FileRowNumber {
		b.WriteString(", file_row_number = true")
	}
	if r.FilenameColumn != "" {
		b.WriteString(", filename = " + Literal(r.FilenameColumn))
	}
	if r.UnionByName {
		b.WriteString(", union_by_name = true")
	}
	return b.String()
}

func literals(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = Literal(t)
	}
	return strings.Join(out, ", ")
}

// tableFunc selects from a call, made once or for each row of the child.
func (p *Printer) tableFunc(n *TableFunc) block {
	var args []string
	for _, v := range n.Args {
		args = append(args, literal(v))
	}
	var child source
	lateral := ""
	switch {
	case n.Table:
		args = append(args[:0], "("+p.query(n.Child)+")")
	case n.Child != nil:
		child = p.from(n.Child)
		args = append(args, child.cols[:n.Params]...)
		lateral = child.sql + ", LATERAL "
	}
	for _, v := range n.Named {
		args = append(args, Ident(v.Name)+" := "+literal(v.Value))
	}
	alias := p.Alias()
	names := make([]string, len(n.Source)) // the source's own names may repeat
	for i := range names {
		names[i] = "x" + strconv.Itoa(i)
	}
	call := Ident(n.Name) + "(" + strings.Join(args, ", ") + ")"
	if n.Ordinality {
		call += " WITH ORDINALITY"
	} else if n.Child != nil && n.Name == "unnest" {
		call = "(SELECT unnest(" + strings.Join(args, ", ") + "))"
	}
	read := slices.Clone(n.Read)
	for i, c := range read {
		if c.Virtual == Stored {
			read[i].Name = names[slices.IndexFunc(n.Source, func(f Field) bool { return f.Name == c.Name })]
		}
	}
	b := p.scan(&n.Scan, lateral+call+" AS "+alias+"("+strings.Join(names, ", ")+")", columnTexts(read, alias), nil)
	if n.Child != nil {
		b.cols = append(b.cols, choose(child.cols, n.Pass)...)
	}
	return b
}
