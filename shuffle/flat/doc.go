// Package flat writes a record batch as its bare buffers, for a reader that knows the schema, and reads it without a copy.
//
// # Layout
//
// A batch is a head and then its buffers, each padded to 8 bytes. The head is little-endian words of 8 bytes, as many as the
// schema says, of what does not follow from anything else: the number of rows, and for each array, parents before their
// children,
//
//	values of fixed width, bool,   how many are null
//	struct, fixed-size list
//	text and binary                how many are null; bytes of all values together
//	list, map                      how many are null; values of all lists together
//	null                           nothing
//
// The buffers come in the same order: the validity bitmap, only if something is null; then values, or offsets (one more than
// there are rows) and bytes. Slices are written as if nothing lay around them: offsets begin at 0, bitmaps with their first bit.
//
// Dictionaries, views, unions, list views and run-end encoding have no layout here: see [New].
//
// # Trust
//
// The bytes may be anything: Read gives an error, or a batch that can be read without a panic. It checks every length against what
// there is, and every offset. What a null bitmap or a value says is not checked; no value of these types can do harm.
package flat
