// Package regions decides what of a query runs again when its tasks did not come to their end: because a node was lost,
// or two nodes lost touch; and which tasks go on meanwhile.
//
// It is two functions without a clock, a lock or IO: a plan and what is kept of its outputs go in, what is to be done comes
// out. The coordinator of package planner tells it what there is, and does what it says.
//
// # Vocabulary
//
// A task is one of a stage's. It writes an output to each edge of its stage, for all readers of the edge. A streaming
// edge's rows are gone once they were sent; an output of an edge that is stored is kept if it was stored whole and is
// still where it was stored. A region is the tasks that streaming edges connect. A stage is stable if the same inputs
// give the same rows to the same readers, in whatever order.
//
// # Rules
//
//   - Who takes the result takes it anew. So the tasks run again whose rows the result lacks.
//   - A task that runs reads all of its inputs anew: of each producer an output that is kept, or what the producer makes
//     by running again. The rule goes on with that one's inputs.
//   - A region runs as one: a streaming edge has either all of its tasks, or none.
//   - A task that runs again may make other rows than before when its stage is not stable, or when one of those it reads
//     may do so. Then everyone who reads it runs again, also those who had come to their end: the rows that they had read
//     must not meet those that others read now. Think of a LIMIT without an order of which one reader saw one row, and
//     another one sees another; of a sum of floating-point numbers in another order by which rows are shared out.
//   - Nothing else runs again.
//
// Before that, a task that runs goes on to its end (GoOn) if it lacks nothing, as far as is known, is not one that runs again
// all the same, and its rows are of use. What it stores is then kept as that of any other. This only saves work: what runs
// again is decided by what is kept in the end. When streaming edges connect all tasks they are one region, which runs again as
// a whole, and none goes on.
//
// # What follows
//
// Of no task do two versions of its rows reach the result; its test derives that from every small plan. How a version is
// told from another is not decided here: an attempt of a query is a job, outputs that are kept are handed over to the
// next one, and the rest ends with the old one.
package regions
