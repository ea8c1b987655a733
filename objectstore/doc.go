// Package objectstore is one node's object store: immutable values under random ids, kept in memory up to a hard
// limit and on disk beyond it, for as long as somebody holds them. It knows nothing of networks or actors.
//
// # Vocabulary
//
//   - An object is a sealed value. It has an owner (a job), holders (names that keep it), and pins (readers of its
//     bytes); package refcount has the rules.
//   - An unsealed object is one that a Writer fills. Nobody else sees it.
//   - A value is small up to Config.InlineMax, else large; its id says which. The two never share anything but the
//     memory limit.
//   - What is in memory is clean when it is on disk too, and dirty when it is only in memory.
//   - A batch (PutBatch, GetBatch) is an object that is an Arrow record batch; package block has its form.
//   - A copy (CreateCopy) is of an object that another store keeps. It may go at any time.
//
// # Tiers
//
//   - Memory, large values: each in mapped memory outside the Go heap, recycled by size class, read in place. With
//     Config.Shared it is a file in shared memory that other processes of the node map read-only; its pages are
//     reserved when it is made, so that a full /dev/shm is an error and never a fault. Fresh pages cost more than
//     filling them, recycled ones nothing: what was freed is kept for ten seconds, and what is mapped, is mapped in
//     runs that are huge pages if the system has some. Rounding wastes at most an eighth.
//   - Memory, small values: one after the other in pages of up to 256 KiB, so that nothing is spent on the single
//     value but a record of 56 bytes and a few bytes of index, all outside the Go heap and beside the limit. A page
//     is what is written, dropped and counted. The price is that one pinned value keeps its page.
//   - Badger: the place on disk of small values, which would cost a file or a seek each otherwise. The part of a
//     page that was filled since the last time goes there as one entry (a segment). Badger also has the location
//     of every spilled value. It costs at most about 16 MiB of tables in memory beside the limit; pages of its
//     log are handed back to the system. It syncs each file of its log (64 MiB) when that is full, so that what
//     is written here goes at the disk's own speed at best, and not at that of the system's cache, which takes
//     what is written to spill files. Values that are read in the order in which they were put come back a segment at a
//     time. It is not opened before the first write. Segments that are mostly dead are emptied, its log is
//     collected when most of that is dead, and it starts anew when nothing in it is alive.
//   - Spill files: the place on disk of large values, many to a file of 100 MiB or 2,000 values, each with a
//     checksum. A file goes when the last value in it does, and is compacted when mostly dead.
//
// # Pressure
//
// Room for a value is found in this order: free memory; what is clean is dropped, the longest unread first; dirty
// values are written to disk, the oldest first, then dropped; the request waits in line, first come first served,
// as long as anything gets free. After Config.Wait without that, a new value is written straight to disk, and a
// read fails with ErrFull, which says what the memory is taken by. Writing ahead of need starts when what cannot be
// dropped passes 80 % of the limit. A disk that refuses a write is tried again a little later, and one that is 95 %
// full is not written to; until then values stay in memory, and what is on disk stays readable. Stats().Trouble
// says why nothing is written.
//
// # Restart
//
// Without Config.Recover a store starts and ends empty. With it, what is on disk outlives the process: small
// values are written within milliseconds, large ones when they are spilled or the store is closed. After a kill
// the index is the truth: what it does not name is removed, torn ends of files are cut, and each object is held
// by its owner alone. No write waits until it is safe on the disk, so that this holds for the death of a process
// and not for that of the machine.
//
// # Invariants
//
//   - Memory in use and memory kept for reuse together never exceed the limit.
//   - An object is freed when, and only when, it has neither holder nor pin, and then all its space returns.
//   - Bytes of a pinned object do not move or change.
//   - A value read from disk is what was written, or the read fails with ErrLost.
//   - After the end of an owner nothing it owned is held, nor can it own more.
//   - A location is in the index before the file that it leads away from is removed.
//
// # Concurrency and failure
//
// All methods may be called from any goroutine. Large values and the memory budget are under the store's mutex,
// small values under those of shards; a shard's is taken before the store's, and Badger's lock before both. Bytes of
// large values are copied, read and written outside. Behind the calls one goroutine writes Badger and
// Config.SpillWriters write spill files. A directory has one store at a time and a version.
package objectstore
