package plan

import "strconv"

// Printer writes one SQL text. It hands out the aliases, which are unique within the text.
type Printer struct {
	aliases int
}

// Alias is a new name.
func (p *Printer) Alias() string {
	p.aliases++
	return "t" + strconv.Itoa(p.aliases)
}

// Print gives the tree as a SELECT with outputs c0, c1, ...
func Print(n Node) (string, error) { return new(Printer).Select(n) }

// Select gives a complete SELECT of the node, with outputs c0, c1, ...
func (p *Printer) Select(n Node) (string, error) {
	return "", unsupported("printing %T", n)
}

// PrintFragment gives the tree as the text of a fragment: output i is cast to the node's type and named names[i] (or ci
// when names is nil), and each extra expression over the node's output follows. A tree that sorts gives its rows in order.
func PrintFragment(n Node, names []string, extra []Expr) (string, error) {
	return "", unsupported("printing %T", n)
}

// Decode reads the text that json_serialize_plan gave for one statement.
func Decode(json string) (Node, error) { return nil, unsupported("decoding") }
