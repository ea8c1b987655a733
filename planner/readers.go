package planner

import (
	"slices"
	"strconv"
	"strings"

	"manta/planner/sqltext"
)

// textCall is a call of a reader of text, as a query has it or as a table's name stands for it.
type textCall struct {
	function string // read_csv, read_json, read_ndjson
	paths    []string
	options  []readerOption
}

// readerOption is a named argument; name is in lower case, value SQL.
type readerOption struct{ name, value string }

// textReaders are DuckDB's readers of text, by all their names.
var textReaders = map[string]string{
	"read_csv": readCSV, "read_csv_auto": readCSV, "read_json": readJSON, "read_json_auto": readJSON,
	"read_ndjson": readNDJSON, "read_ndjson_auto": readNDJSON,
}

func (c textCall) isCSV() bool { return c.function == readCSV }

// sql is the call with other options behind the paths, each after a comma.
func (c textCall) sql(options string) string {
	return c.function + "(" + stringList(c.paths) + options + ")"
}

// own are the call's own options, those that keep takes.
func (c textCall) own(keep func(name string) bool) string {
	var b strings.Builder
	for _, o := range c.options {
		if keep(o.name) {
			b.WriteString(", " + o.name + " = " + o.value)
		}
	}
	return b.String()
}

func (c textCall) has(name string) bool {
	return slices.ContainsFunc(c.options, func(o readerOption) bool { return o.name == name })
}

// known reports whether it is known what every option says of a part of the files.
func (c textCall) known() bool {
	known := jsonOptionNames
	if c.isCSV() {
		known = csvOptionNames
	}
	return !slices.ContainsFunc(c.options, func(o readerOption) bool { _, ok := known[o.name]; return !ok })
}

// csvOptionNames are the options that sniff_csv takes, and writes into the call that it proposes.
var csvOptionNames = names("delim sep quote escape header skip nullstr ignore_errors types dtypes column_types columns null_padding " +
	"all_varchar max_line_size maximum_line_size dateformat timestampformat decimal_separator thousands comment new_line names " +
	"column_names sample_size strict_mode normalize_names auto_type_candidates force_not_null allow_quoted_nulls encoding compression parallel")

// jsonOptionNames are the options that say how a row is read, true, or only what the columns are, false.
var jsonOptionNames = func() map[string]bool {
	out := names("format ignore_errors maximum_object_size compression records dateformat date_format timestampformat timestamp_format")
	for name := range names("columns sample_size maximum_depth convert_strings_to_integers map_inference_threshold field_appearance_threshold maximum_sample_files") {
		out[name] = false
	}
	return out
}()

func names(list string) map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(list) {
		out[name] = true
	}
	return out
}

// readerCall reads the call of a reader of text that begins at a token of a query: a name, and what is in brackets
// behind it. end is the token of its closing bracket.
func readerCall(sql string, tokens []sqltext.Token, at int) (c textCall, end int, ok bool) {
	if at+2 >= len(tokens) || !tokens[at+1].Is("(") {
		return c, 0, false
	}
	if c.function, ok = textReaders[strings.ToLower(tokens[at].Text)]; !ok {
		return c, 0, false
	}
	depth := tokens[at+1].Depth
	for end = at + 2; end < len(tokens) && tokens[end].Depth > depth; {
		end++
	}
	if end == len(tokens) {
		return c, 0, false
	}
	args := arguments(tokens[at+2:end], depth+1)
	if c.paths, ok = pathsOf(args[0]); !ok {
		return c, 0, false
	}
	for _, arg := range args[1:] {
		// name = value, name := value, name => value
		value := 2
		if len(arg) > 2 && (arg[1].Is(":") || arg[2].Is(">")) {
			value = 3
		}
		if len(arg) <= value || !arg[1].Is("=") && !arg[1].Is(":") {
			return c, 0, false
		}
		c.options = append(c.options, readerOption{strings.ToLower(arg[0].Text), sql[arg[value].From:arg[len(arg)-1].To]})
	}
	return c, end, true
}

// arguments are the tokens between the commas at a depth; there is at least one list.
func arguments(tokens []sqltext.Token, depth int) [][]sqltext.Token {
	out := [][]sqltext.Token{nil}
	for _, t := range tokens {
		if t.Depth == depth && t.Is(",") {
			out = append(out, nil)
			continue
		}
		out[len(out)-1] = append(out[len(out)-1], t)
	}
	return out
}

// pathsOf reads a string, or a list of strings.
func pathsOf(arg []sqltext.Token) (paths []string, ok bool) {
	if n := len(arg); n > 2 && arg[0].Is("[") && arg[n-1].Is("]") {
		arg = arg[1 : n-1]
	} else if n != 1 {
		return nil, false
	}
	for i, t := range arg {
		if i%2 == 1 {
			if !t.Is(",") {
				return nil, false
			}
			continue
		}
		path, ok := textOf(t.Text)
		if !ok || strings.HasPrefix(t.Text, `"`) {
			return nil, false
		}
		paths = append(paths, path)
	}
	return paths, true
}

// callOf is the call that a table's path stands for, if its files are text.
func callOf(path string) (c textCall, ok bool) {
	function := readerOf(path)
	return textCall{function: function, paths: []string{path}}, function != readParquet
}

// viewName is a name for a call that a query may know: that of its only path, which DuckDB gives to a path without a
// call, or one that nothing else has.
func (c textCall) viewName(number int) string {
	if len(c.paths) == 1 && len(c.options) == 0 && readerOf(c.paths[0]) == c.function {
		return c.paths[0]
	}
	return "@" + strconv.Itoa(number)
}
