package plan

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Cardinalities are DuckDB's estimates of the rows that nodes give.
type Cardinalities map[Node]int64

// explained is a node of EXPLAIN (FORMAT json).
type explained struct {
	Name     string         `json:"name"`
	Children []explained    `json:"children"`
	Extra    map[string]any `json:"extra_info"`
}

// ReadCardinalities walks the tree of Decode together with the text of EXPLAIN (FORMAT json) for the same statement,
// planned with the same optimizers and explain_output = 'optimized_only': the two have the same shape. A node for which
// DuckDB states nothing gets its child's estimate. An error means that the shapes differ, so nothing is known.
func ReadCardinalities(root Node, explain string) (Cardinalities, error) {
	var top []explained
	if err := json.Unmarshal([]byte(explain), &top); err != nil || len(top) != 1 {
		return nil, malformed("not an EXPLAIN of one statement")
	}
	c := Cardinalities{}
	if err := c.read(root, top[0]); err != nil {
		return nil, err
	}
	return c, nil
}

func (c Cardinalities) read(n Node, e explained) error {
	children := n.Children()
	if v, ok := n.(*Values); ok && v.Child == nil && len(e.Children) == 1 {
		e.Children = nil // the scan of nothing under a list of constants
	}
	if len(children) != len(e.Children) {
		return malformed("%s has %d children in one tree and %d in the other", e.Name, len(children), len(e.Children))
	}
	for i, child := range children {
		if err := c.read(child, e.Children[i]); err != nil {
			return err
		}
	}
	text, _ := e.Extra["Estimated Cardinality"].(string)
	if rows, err := strconv.ParseInt(strings.TrimPrefix(text, "~"), 10, 64); err == nil {
		c[n] = rows
		return nil
	}
	c[n] = c.guess(n)
	return nil
}

// guess is the estimate of a node for which there is none: its input's.
func (c Cardinalities) guess(n Node) int64 {
	switch n := n.(type) {
	case *Empty:
		return 0
	case *Values:
		if n.Child == nil {
			return int64(len(n.Rows))
		}
	case *CTE:
		return c[n.Body]
	case *DelimJoin:
		return c[n.Source()]
	case *TopN:
		return clamp(c[n.Child], n.Limit)
	case *Limit:
		if n.Limit.Set && !n.Limit.Percent && n.Limit.Expr == nil {
			return clamp(c[n.Child], n.Limit.Rows)
		}
	}
	var most int64
	for _, child := range n.Children() {
		most = max(most, c[child])
	}
	if len(n.Children()) == 0 {
		return 1
	}
	return most
}

func clamp(rows int64, limit uint64) int64 {
	if limit < uint64(rows) {
		return int64(limit)
	}
	return rows
}
