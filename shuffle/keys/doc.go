// Package keys says which partition a row belongs to, from the values of its key columns: by hash, or by ranges of an order.
// It reads Arrow columns only; it keeps and changes nothing.
//
// # Hash
//
// The hash of a row depends on its key values alone: not on the node, the attempt, the batch or the row's place in it.
// It is xxh3 over canonical bytes, the columns' hashes mixed in their order. Equal values hash the same also across
//
//   - integers of any width and sign, with booleans as 0 and 1;
//   - float32 and float64 (-0.0 is 0.0, every NaN is the same);
//   - decimals of one scale, whatever their width;
//   - text and bytes of any layout (large, view, of fixed size);
//   - a dictionary, an extension or a run-end encoding and the type of its values;
//   - lists of any layout, and maps; structs by position of their fields.
//
// Not across other types: 1 and 1.0, or times of two units, are to be cast to one type first. NULL hashes like NULL of any
// type: rows with NULL keys meet. Columns of unions have no hash.
//
// # Order
//
// Ranges and Bounds order numbers, booleans, decimals, times, text and bytes (by bytes). NaN is above all numbers, -0.0
// equals 0.0, and NULL is last unless a key says first, whatever its direction.
package keys
