package plan

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// culprit says which functions alone can have raised an error of DuckDB.
type culprit struct {
	message *regexp.Regexp // its first group, where there is one, names the type
	names   []string
	args    int // how many arguments; 0: any number
}

var culprits = []culprit{
	{regexp.MustCompile(`Overflow in addition of (\w+)`), []string{"+"}, 2},
	{regexp.MustCompile(`Overflow in subtraction of (\w+)`), []string{"-"}, 2},
	{regexp.MustCompile(`Overflow in multiplication of (\w+)`), []string{"*"}, 2},
	{regexp.MustCompile(`Overflow in negation of`), []string{"-"}, 1},
	{regexp.MustCompile(`Overflow on abs\(`), []string{"abs", "@"}, 0},
	{regexp.MustCompile(`cannot take logarithm of`), []string{"ln", "log", "log2", "log10"}, 0},
	{regexp.MustCompile(`cannot take square root of`), []string{"sqrt"}, 0},
	{regexp.MustCompile(`(?i)left-shift`), []string{"<<"}, 0},
	{regexp.MustCompile(`Invalid UTF8 Codepoint`), []string{"chr"}, 0},
	{regexp.MustCompile(`Could not parse string .* according to format specifier`), []string{"strptime"}, 0},
}

// physical are the types that an overflow names, and DuckDB's names for them elsewhere.
var physical = map[string]string{
	"INT8": "TINYINT", "INT16": "SMALLINT", "INT32": "INTEGER", "INT64": "BIGINT", "INT128": "HUGEINT",
	"UINT8": "UTINYINT", "UINT16": "USMALLINT", "UINT32": "UINTEGER", "UINT64": "UBIGINT", "UINT128": "UHUGEINT",
	"DECIMAL": "DECIMAL",
}

// Place tells where a query has the function that raised an error which says nothing of its place; from 1, 0 if it is
// not surely known. text is the query's plan, as DuckDB wrote it: one place in it alone must be able to.
func Place(text, message string) int {
	for _, c := range culprits {
		m := c.message.FindStringSubmatch(message)
		if m == nil {
			continue
		}
		typ := ""
		if len(m) > 1 {
			if typ = physical[m[1]]; typ == "" {
				return 0
			}
		}
		v, err := parseJSON(text)
		if err != nil {
			return 0
		}
		places := map[uint64]bool{}
		c.places(v, typ, places)
		if len(places) != 1 || places[noIndex] {
			return 0
		}
		for at := range places {
			return int(at) + 1
		}
	}
	return 0
}

// places collects where the functions are that may have raised the error.
func (c culprit) places(v any, typ string, into map[uint64]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			c.places(e, typ, into)
		}
	case map[string]any:
		if v["expression_class"] == "BOUND_FUNCTION" {
			switch {
			case c.raises(v, typ):
				at, ok := asNumber(v["query_location"])
				if !ok {
					at = noIndex
				}
				into[at] = true
			case typ != "" && typ != "DECIMAL" && temporal(v):
				into[noIndex] = true // it calculates with whole numbers
			}
		}
		for _, e := range v {
			c.places(e, typ, into)
		}
	}
}

func (c culprit) raises(f map[string]any, typ string) bool {
	name, _ := f["name"].(string)
	children, _ := f["children"].([]any)
	return slices.Contains(c.names, name) && (c.args == 0 || c.args == len(children)) && (typ == "" || typeID(f["return_type"]) == typ)
}

// temporal reports a function that takes or gives times or intervals.
func temporal(f map[string]any) bool {
	types := []any{f["return_type"]}
	children, _ := f["children"].([]any)
	for _, c := range children {
		if m, ok := c.(map[string]any); ok {
			types = append(types, m["return_type"])
			if value, ok := m["value"].(map[string]any); ok {
				types = append(types, value["type"])
			}
		}
	}
	return slices.ContainsFunc(types, func(t any) bool {
		text, _ := json.Marshal(t) // a list of times is one of times, too
		return strings.Contains(string(text), `"DATE`) || strings.Contains(string(text), `"TIME`) || strings.Contains(string(text), `"INTERVAL`)
	})
}

func typeID(v any) string {
	m, _ := v.(map[string]any)
	id, _ := m["id"].(string)
	return id
}
