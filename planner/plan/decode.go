package plan

// Decode reads the text that json_serialize_plan gave for one statement, asked for with nothing skipped and made strict
// JSON: NaN and the infinities are quoted. An *UnsupportedError means that the plan cannot be used and that the
// statement's own text must run.
func Decode(text string) (n Node, err error) {
	if text == "" {
		return nil, unsupported("a constant that DuckDB cannot write as text")
	}
	v, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case failure:
			n, err = nil, r.error
		default:
			panic(r)
		}
	}()
	top := asObject(v, "the plan")
	if top.flag("error") {
		return nil, unsupported("%s", top.text("error_message"))
	}
	plans := top.list("plans")
	if len(plans) != 1 {
		return nil, unsupported("%d statements", len(plans))
	}
	n, _ = new(decoder).node(plans[0])
	return n, nil
}

// decoder holds what is in scope at the place where it reads.
type decoder struct {
	delims    int   // IDs given so far
	delimOpen []int // the DelimJoins in whose other side we are, innermost last
}

// binding is DuckDB's name of a column before positions are resolved: needed below table functions that have an input,
// where DuckDB leaves references unresolved.
type binding struct{ table, column uint64 }

// bindings are the first n columns of a table index.
func bindings(table uint64, n int) []binding {
	out := make([]binding, n)
	for i := range out {
		out[i] = binding{table, uint64(i)}
	}
	return out
}

func pickBindings(b []binding, keep []int) []binding {
	out := make([]binding, len(keep))
	for i, k := range keep {
		if k >= len(b) {
			fail(malformed("a map names column %d of %d", k, len(b)))
		}
		out[i] = b[k]
	}
	return out
}

// keep makes a projection map explicit.
func keep(v any, columns int, what string) []int {
	list := asInts(v, what)
	if len(list) == 0 {
		return Range(columns)
	}
	for _, k := range list {
		if k >= columns {
			fail(malformed("%s names column %d of %d", what, k, columns))
		}
	}
	return list
}
