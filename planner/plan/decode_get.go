package plan

const (
	rowIDIndex = 1<<64 - 1
	noIndex    = 1<<64 - 1
)

// virtualColumns are DuckDB's numbers for columns that a reader makes.
var virtualColumns = map[uint64]Column{
	rowIDIndex: {Name: "rowid", Type: BigInt, Virtual: RowID},
	1<<64 - 2:  {Type: Boolean, Virtual: EmptyColumn},
	1 << 63:    {Name: "filename", Type: Varchar, Virtual: Filename},
	1<<63 + 1:  {Name: "file_row_number", Type: BigInt, Virtual: FileRowNumber},
	1<<63 + 2:  {Name: "file_index", Type: UBigInt, Virtual: FileIndex},
}

// get reads a source: Parquet files, a table, or a table function's call.
func (d *decoder) get(o *object) (Node, []binding) {
	name := o.text("name")
	o.what = "source " + name
	source := sourceFields(o)
	scan := d.scan(o, source)
	b := pickBindings(bindings(o.number("table_index"), len(scan.Read)), scan.Keep)
	if info := o.object("extra_info"); info.fields["sample_options"] != nil {
		fail(unsupported("a sample inside a source"))
	}
	// Hints: a row group order, a number of rows; the row number of WITH ORDINALITY is a window above, unless the call is
	// made for each row.
	ordinality := o.number("ordinality_idx") != noIndex
	o.ignore("row_group_order_options", "arguments", "original_arguments", "catalog_name", "schema_name")
	if !o.flag("has_serialize") {
		n, b := d.tableFunc(o, name, scan, source, b)
		if f, ok := n.(*TableFunc); ok && f.Child != nil {
			f.Ordinality = ordinality
		}
		if f, ok := n.(*TableFunc); ok && name == sourceFunction {
			return text(f), b
		}
		return n, b
	}
	data := o.object("function_data")
	if _, inner := d.children(o, 0); len(inner) > 0 || len(o.list("projected_input")) > 0 {
		fail(unsupported("a source %s with an input", name))
	}
	var n Node
	switch name {
	case "read_parquet", "parquet_scan":
		n = parquet(data, scan, source)
	case "seq_scan":
		n = &TableScan{Scan: scan, Source: source, Catalog: data.text("catalog"), Schema: data.text("schema"), Table: data.text("table")}
		data.ignore("is_index_scan", "is_create_index", "result_ids")
		data.done()
	default:
		fail(unsupported("source %s", name))
	}
	o.done()
	return n, b
}

func sourceFields(o *object) []Field {
	names, types := o.list("names"), decodeTypes(o.list("returned_types"))
	if len(names) != len(types) {
		fail(malformed("%s has %d names and %d types", o.what, len(names), len(types)))
	}
	out := make([]Field, len(names))
	for i, v := range names {
		name, ok := v.(string)
		if !ok {
			fail(malformed("a column name is not text"))
		}
		out[i] = Field{name, types[i]}
	}
	return out
}

// scan reads the columns and the filters.
func (d *decoder) scan(o *object, source []Field) Scan {
	var s Scan
	indexes := o.list("column_indexes")
	whole := map[uint64]int{} // index into names -> position in Read
	for _, v := range indexes {
		c := asObject(v, "a column index")
		index := c.number("index")
		col := sourceColumn(index, source)
		if kind := c.text("index_type"); kind == "PUSHDOWN_EXTRACT" {
			col = extracted(col, c)
		} else if kind != "FULL_READ" {
			fail(unsupported("column index type %s", kind))
		} else if _, ok := whole[index]; !ok {
			whole[index] = len(s.Read)
		}
		c.ignore("child_indexes", "type", "field", "has_index")
		c.done()
		s.Read = append(s.Read, col)
	}
	s.Keep = keep(o.take("projection_ids"), len(s.Read), "projection_ids of "+o.what)
	filters := o.object("table_filters")
	for _, v := range filters.list("filters") {
		f := asObject(v, "a filter")
		key := f.number("key")
		at, ok := whole[key]
		if !ok {
			at = len(s.Read)
			whole[key] = at
			s.Read = append(s.Read, sourceColumn(key, source))
		}
		if e := d.filter(f.object("value"), &Ref{at, s.Read[at].Type}); e != nil {
			s.Filters = append(s.Filters, e)
		}
		f.done()
	}
	filters.done()
	return s
}

func sourceColumn(index uint64, source []Field) Column {
	if c, ok := virtualColumns[index]; ok {
		return c
	}
	if index >= uint64(len(source)) {
		fail(unsupported("column number %d of %d", index, len(source)))
	}
	return Column{Name: source[index].Name, Type: source[index].Type}
}

// extracted follows the one path of a pushed down struct_extract.
func extracted(col Column, c *object) Column {
	for {
		children := asList(c.fields["child_indexes"], "a path")
		if len(children) == 0 {
			if leaf := decodeTypeOrInvalid(c.fields["type"]); leaf.ID != "INVALID" {
				col.Type = leaf
			}
			return col
		}
		if len(children) != 1 {
			fail(unsupported("%d paths into one column", len(children)))
		}
		c = asObject(children[0], "a path")
		index, ok := asNumber(c.fields["index"])
		if !ok || index >= uint64(len(col.Type.Fields)) {
			fail(unsupported("a path into %s", col.Type))
		}
		f := col.Type.Fields[index]
		col.Path, col.Type = append(col.Path, f.Name), f.Type
	}
}

func decodeTypeOrInvalid(v any) Type {
	if m, ok := v.(map[string]any); ok && m["id"] == "INVALID" {
		return Type{ID: "INVALID"}
	}
	return decodeType(v)
}

// filter reads a pushed down filter of a column; nil means that it is only a hint.
func (d *decoder) filter(o *object, col Expr) Expr {
	kind := o.text("filter_type")
	o.what = "filter " + kind
	var e Expr
	switch kind {
	case "CONSTANT_COMPARISON":
		e = &Compare{compareOp(o.text("comparison_type")), col, &Const{decodeValue(o.take("constant"))}}
	case "IS_NULL":
		e = &Operator{IsNull, []Expr{col}, Boolean}
	case "IS_NOT_NULL":
		e = &Operator{IsNotNull, []Expr{col}, Boolean}
	case "CONJUNCTION_AND", "CONJUNCTION_OR":
		e = d.filters(o.list("child_filters"), col, kind == "CONJUNCTION_OR")
	case "STRUCT_EXTRACT":
		name := o.text("child_name")
		o.ignore("child_idx")
		for _, f := range col.Type().Fields {
			if f.Name == name {
				part := &Func{Name: "struct_extract", Params: []Expr{col, &Const{Text(name)}}, T: f.Type}
				e = d.filter(o.object("child_filter"), part)
				o.done()
				return e
			}
		}
		fail(unsupported("a filter on field %s of %s", name, col.Type()))
	case "IN_FILTER":
		parts := []Expr{col}
		for _, v := range o.list("values") {
			parts = append(parts, &Const{decodeValue(v)})
		}
		e = &Operator{In, parts, Boolean}
	case "EXPRESSION_FILTER":
		e = MapRefs(scope{d: d, columns: 1}.expr(o.take("expr")), func(*Ref) Expr { return col })
	case "OPTIONAL_FILTER", "DYNAMIC_FILTER": // its condition stays above the scan
		return nil
	default:
		fail(unsupported("filter %s", kind))
	}
	o.done()
	return e
}

// filters joins filters. A hint within an AND falls away; within an OR it makes the whole OR one.
func (d *decoder) filters(list []any, col Expr, or bool) Expr {
	var parts []Expr
	hint := false
	for _, v := range list {
		if e := d.filter(asObject(v, "a filter"), col); e != nil {
			parts = append(parts, e)
		} else {
			hint = true
		}
	}
	switch {
	case len(parts) == 0 || or && hint:
		return nil
	case len(parts) == 1:
		return parts[0]
	}
	return &Conj{or, parts}
}

func parquet(data *object, scan Scan, source []Field) Node {
	n := &Get{Scan: scan, Source: source}
	for _, v := range data.list("files") {
		f, ok := v.(string)
		if !ok {
			fail(malformed("a file name is not text"))
		}
		n.Files = append(n.Files, f)
	}
	data.ignore("types", "names") // of the source, again
	o := data.object("parquet_options")
	data.done()
	n.Reader.BinaryAsString = o.flag("binary_as_string")
	n.Reader.FileRowNumber = o.flag("file_row_number")
	if schema := o.list("schema"); len(schema) > 0 {
		fail(unsupported("read_parquet with a schema"))
	}
	if o.take("encryption_config") != nil {
		fail(unsupported("read_parquet with encryption"))
	}
	o.ignore("explicit_cardinality", "can_have_nan")
	f := o.object("file_options")
	o.done()
	if f.flag("filename") {
		n.Reader.FilenameColumn = f.text("filename_column")
	}
	n.Reader.HivePartitioning = f.flag("hive_partitioning")
	n.Reader.UnionByName = f.flag("union_by_name")
	n.Reader.HiveTypes = decodeFields(f.list("hive_types_schema"), "key", "value")
	f.ignore("filename_column", "auto_detect_hive_partitioning", "hive_types_autocast")
	f.done()
	if len(n.Files) == 0 { // all pruned
		return &Empty{Out: n.Types()}
	}
	return n
}

// sourceFunction stands in for a reader of text; its arguments are the reader, the reader's options, the files, an
// estimate of the rows, and the columns.
const sourceFunction = "manta_source"

func text(f *TableFunc) Node {
	if len(f.Args) != 5 || f.Child != nil {
		fail(malformed("%s has %d arguments", f.Name, len(f.Args)))
	}
	n := &Get{Scan: f.Scan, Source: f.Source, Text: &TextReader{Function: f.Args[0].Text, Options: f.Args[1].Text}}
	for _, v := range f.Args[2].Children {
		n.Files = append(n.Files, v.Text)
	}
	return n
}

func (d *decoder) tableFunc(o *object, name string, scan Scan, source []Field, b []binding) (Node, []binding) {
	n := &TableFunc{Scan: scan, Name: name, Source: source}
	for _, v := range o.list("parameters") {
		n.Args = append(n.Args, tableArg(v, n))
	}
	for _, v := range o.list("named_parameters") {
		p := asObject(v, "a named parameter")
		n.Named = append(n.Named, NamedValue{p.text("key"), decodeValue(p.take("value"))})
		p.done()
	}
	inputs := o.list("input_table_types")
	o.ignore("input_table_names")
	pass := asInts(o.take("projected_input"), "projected_input")
	list := asList(o.fields["children"], "children of "+o.what)
	if len(list) == 0 {
		d.children(o, 0)
		if len(pass) > 0 || n.Table {
			fail(malformed("%s has no input but passes it on", o.what))
		}
		o.done()
		return n, b
	}
	children, inner := d.children(o, 1)
	n.Child, n.Pass = children[0], pass
	b = append(b, pickBindings(inner[0], pass)...)
	n.Params = len(inputs)
	if !n.Table && (len(n.Args) > 0 || n.Params > len(n.Child.Types())) {
		fail(unsupported("%s with constants and columns as arguments", name))
	}
	o.done()
	return n, b
}

// tableArg reads a constant argument; the place of an input table is an untyped NULL.
func tableArg(v any, n *TableFunc) Value {
	m, _ := v.(map[string]any)
	if t, ok := m["type"].(map[string]any); ok && t["id"] == "NULL" && len(n.Args) == 0 {
		n.Table = true
		return NullOf(Null)
	}
	return decodeValue(v)
}
