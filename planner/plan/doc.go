// Package plan turns DuckDB's optimized logical plan into a typed tree, and any part of that tree back into SQL text.
//
// [Decode] reads the JSON that json_serialize_plan writes. It is strict: an operator, expression class, function, filter
// or key that it does not know gives an [*UnsupportedError], and the caller falls back to the original text. It never
// guesses, because a wrong guess would be a wrong answer.
//
// [Print] and [PrintFragment] write a tree as nested SELECTs with positional column names (c0, c1, ...), unique aliases
// and qualified references. Binding the text again gives the operators of the tree, with their types and values.
//
// # Vocabulary
//
// A [Node] is an operator. Its output is an ordered list of columns; expressions refer to columns of the children's
// outputs by position ([Ref]). Joins see the columns of the left child, then those of the right child, except that a
// [JoinCond] keeps its sides apart. Where DuckDB has a projection map whose absence means "all columns", the tree
// always has the explicit list (the Keep fields).
//
// # Invariants
//
//   - Nodes, expressions, types and values are immutable once built: share them freely, change them with WithChildren
//     or by building new ones.
//   - Every expression and every output column has a type, and it is the type that DuckDB bound.
//   - What a function hides in DuckDB's bind data (a separator, quantiles, field names) is an ordinary argument in the tree.
//   - A [DelimGet] names the [DelimJoin] that feeds it and a [CTERef] names its [CTE], whatever the nesting.
//
// # Foreign nodes
//
// A package that builds on this one may put its own leaves into a tree: a type that implements [Leaf] prints itself. So
// an exchange's view or a part of a scan stands where a subtree stood, and everything above it prints as before.
//
// The package holds no state, starts no goroutine and does no IO.
package plan
