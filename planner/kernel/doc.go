// Package kernel runs SQL in an embedded DuckDB: it plans, describes and executes statements, streams results out as
// Arrow record batches and streams Arrow record batches in as views.
//
// # Vocabulary
//
// A [DB] is one DuckDB instance in memory. A [Conn] is one connection to it, used by one goroutine at a time. [Rows]
// is the streamed result of one query; a connection has at most one open. A [Stream] is a source of batches that a
// query reads as a view.
//
// # Threads
//
// With Config.Threads = 1 a query runs on the thread that calls [Conn.Query] and [Rows.Next] and on no other: a
// query that waits in Stream.Next holds up no other query of the process. With more threads DuckDB's workers call
// Stream.Next too, one call at a time per stream.
//
// # Ownership
//
// Batches from [Rows.Next] are retained for the caller and stay valid after Rows, Conn and DB are closed: they are
// copies in memory of their own. Batches that a Stream returns are taken: they are released when DuckDB has read
// them, and at the latest when the stream is dropped, whatever the end of the query was.
//
// # Ends
//
// Every call that takes a context ends when the context does: DuckDB is interrupted, repeatedly, until the call is
// over, and the interrupt can't reach a later query on the connection. The error then wraps the context's error and
// its cause. A blocked Stream.Next is not interrupted: a stream must watch its own context. An error that Stream.Next
// returns becomes the error of the query that reads it, as the same value ([errors.Is] and [errors.As] hold).
//
// Settings for the whole instance are given to [Open]. disabled_optimizers is one of them, so planning and executing
// need an instance each.
package kernel
