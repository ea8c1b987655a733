// Package planner runs SQL on a cluster: it plans a SELECT with DuckDB, cuts the
// plan into stages, runs their tasks through the runtime, and streams the rows to
// a client.
//
// SQL is a user of the runtime and has nothing private: a stage task is a task of
// package actors, rows between tasks go through package shuffle, an attempt of a query is a job.
//
// # Vocabulary
//
// A [Client] asks the head; with no head it brings an [Embedded] cluster of its
// own. The coordinator (run) is the goroutine on the head that serves one query.
// A fragment is the SQL text that a stage's tasks run. A stage task (stageRun)
// runs one fragment in its node's DuckDB: each of its inputs is a view that reads
// an exchange, its rows go to one or more output exchanges. The result edge is the
// exchange from the last stage to the coordinator. A query falls back when it runs
// as it was written, as one task. A [Node] is a runtime node with the two services
// that SQL needs: the exchanges, and [Service].
//
// The parts below this package know nothing of clusters: kernel is DuckDB, plan
// turns DuckDB's plan into a tree and any part of the tree into SQL, dist decides
// how the tree is distributed, regions what of it runs again, split shares files among tasks, sqltext finds things
// in the query's own text.
//
// # Invariants
//
//   - A result without an error is never a short one: the end of the rows is an
//     event of its own, sent after every task has ended well.
//   - A plan runs only after dist.Check has derived its distributions anew; one that
//     fails falls back. Unknown operators fall back too. Nothing is guessed.
//   - A plan holds for the files it was made from: DuckDB folds their row counts and
//     bounds into it. A task whose files have changed since refuses to run.
//   - All tasks of a query are one gang: they start together or not at all. A task that lacks input or credit
//     waits inside its exchange, without a slot, so any number of slots is enough.
//   - A stage that feeds several edges, and a broadcast, never wait for a reader: in the
//     modes streaming and auto those edges go through the object store, which spills.
//   - The same fragment gives the same columns and types in every task, and the
//     exchange's schema is the one that DuckDB itself gives for those types.
//
// # Three DuckDB instances
//
// disabled_optimizers belongs to a whole instance. Planning needs those off whose
// output cannot be serialized; executing needs those off that would undo the join
// order that was planned. So the head opens an instance for planning, at the first
// query, and every node has one for executing, with one thread: a fragment then runs
// on the thread that calls it, and one that waits for input blocks no other. Queries
// that are not distributed run in a third, with a thread for each slot; the last two
// share one budget (memory.go).
//
// # Concurrency
//
// A Client is safe for concurrent use. A [Result] is read by one goroutine; Cancel
// and Progress may be called from others. The coordinator has one goroutine that
// delivers rows and one for each task that it waits for; events to the client are
// sent under one mutex. A stageRun belongs to its task's goroutine.
//
// # Failure
//
// A client that ends its context, or whose connection breaks, ends the call; the
// call's context is the job's, and the job's end cancels every task on every node.
// Of many errors that follow from one, the coordinator reports the cause: that the job was
// stopped before all, a lost node before a failed task, and that before what others saw of it. A query that loses
// a node starts again as another job, up to three times, while its client has seen no
// row (restart.go); after that it fails with the node's name. Package regions says what
// runs again: outputs of stored edges that ended tasks have made, and that are whole on
// nodes that are left, are handed over to the new job and read as if they were made
// anew (takeover.go). Tasks that ran on other nodes, and lack nothing, first go on to their end
// (survivors.go); the others are cancelled at once. Whoever has read rows that a task may not make alike a
// second time (dist.Stage.Stable) runs again with it, so no two versions of them meet.
// Whatever the end, Job.Finish runs last: it waits for the tasks, and has each node
// drop what it holds for the job.
package planner
