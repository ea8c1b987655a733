// Package objectstore is one node's object store: immutable values under random ids, kept in memory up to a hard
// limit and on disk beyond it, for as long as somebody holds them. It knows nothing of networks or actors.
//
// # Vocabulary
//
//   - An object is a sealed value. It has an owner (a job), holders (names that keep it), and pins (readers of its
//     bytes); package refcount has the rules.
//   - An unsealed object is one that a Writer fills. Nobody else sees it.
//   - A value is clean when it is both in memory and on disk, and dirty when it is only in memory.
//
// # Tiers
//
//   - Memory holds values of any size within Config.MemoryLimit. Larger values are in mapped memory outside the Go
//     heap, recycled by size class; small ones are in the heap. A value in memory is read in place, without a copy.
//   - Badger is the place on disk of small values (Config.InlineMax): a file each would cost more than the value.
//     They are written soon after they are made, and not at all when they are freed before. A small value never
//     waits for memory: without room it goes through to Badger. Badger also has the location of every spilled
//     value, so that the index says what is on disk. It costs at most about 16 MiB of tables in memory, beside
//     the limit, and pages of its files that the system may take back. It is not opened before the first write,
//     and starts anew when nothing in it is alive; while something is, the space of freed values stays in its log.
//   - Spill files are the place on disk of larger values, many to a file, each with a checksum. A file goes when
//     the last value in it does.
//
// # Pressure
//
// Room for a value is found in this order: free memory; clean values are dropped, the least recently read first;
// dirty ones are written to disk, the oldest first, then dropped; the request waits in line, first come first
// served, as long as anything gets free. After Config.Wait without that, a new value is written straight to disk,
// and a read fails with ErrFull, which says what the memory is taken by. Writing dirty values starts ahead of need,
// when they and what is in use pass 80 % of the limit. A disk that refuses a write is tried again a little later;
// until then values stay in memory, and what is on disk stays readable.
//
// # Invariants
//
//   - Memory in use and memory kept for reuse together never exceed the limit.
//   - An object is freed when, and only when, it has neither holder nor pin, and then all its space returns.
//   - Bytes of a pinned object do not move or change.
//   - A value read from disk is what was written, or the read fails with ErrLost.
//   - After the end of an owner nothing it owned is held, nor can it own more.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. One mutex guards the books; bytes are copied, read and written
// outside it. Two goroutines work behind the calls: one writes spill files, one writes Badger. A directory has
// one store at a time. Objects do not outlive the store: Open removes what a dead process left.
package objectstore
