// Package rows scatters Arrow record batches into partitions and gathers small batches into large ones. It is the
// partitioning kernel of every exchange: plain Go over Arrow buffers, no goroutine, no lock.
//
// A [Builder] keeps one set of column builders for each partition. Scatter sorts the row numbers of a batch by partition
// once (a counting sort), then runs one tight loop for each column and partition. Types with a layout of fixed width, bool and
// (large) utf8 and binary take the fast path; every other type (nested, dictionary, view, run-end encoded) goes through a
// general path that is right first: it takes the rows with arrow's own kernels and concatenates.
//
// With more than a few partitions the places that columns grow at are more than the processor's caches hold, and with many a
// batch has a row or two for each, so that visits to every one of every column would be all that takes time. Columns of fixed
// width are then collected as rows (pack.go), others, from many partitions on, in two levels (fan.go).
//
// A partition that reaches the target size is handed to the caller's emit function, which owns the batch.
// A Builder is for one goroutine. Its memory is Bytes; it holds nothing after Release.
package rows
