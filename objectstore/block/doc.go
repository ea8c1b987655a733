// Package block turns record batches into bytes and back. A block is one self-contained Arrow IPC stream: a schema,
// its dictionaries and any number of batches. The same bytes lie in the object store, in files, and on the wire when they are
// fetched from there.
//
// [Encode] copies each batch once into one buffer. [Decode] copies nothing: the batches' buffers point into the block, and
// the block's release function runs when the last of them is released.
package block
