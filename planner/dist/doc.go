// Package dist makes a distributed plan of a query: it decides how the rows of
// every operator are spread over tasks, puts exchanges where an operator needs
// another distribution than its input has, and cuts the plan at the exchanges
// into stages.
//
// # Vocabulary
//
// A [Distribution] says how an operator's rows are spread over the tasks that
// compute it: single (one task has them all), partitioned (each row is at one of
// N tasks; by the hash of some keys, or anyhow) or replicated (every task has
// them all). An [Exchange] changes the distribution of its input. A [Shared]
// part of the plan is computed once and read several times. A [Stage] is a
// piece of the plan between exchanges, its fragment, run by one or N tasks; an
// [Edge] is an exchange between two stages.
//
// # The invariant
//
// Running a stage once per task over that task's inputs and uniting the outputs
// equals running it once over all inputs. [Place] is written to keep it, and
// [Check], which derives the distributions again from nothing but the stages,
// to notice when it does not.
//
// A sort of many rows whose order is the result's is by ranges: the bounds come
// from a sample, which decides only which task sorts a row, and the last stage
// takes the tasks' rows one after the other. [Check] lets a sample decide nothing
// else, and the order be lost nowhere.
//
// # What is not distributed
//
// An operator that this package has no rule for gets all its input in one task;
// so do the rounds of a recursion, whose inputs are distributed all the same. A
// function that asks the session is left to the session that planned.
// A plan that cannot be decoded or printed is not this package's business: the
// caller runs the original text in one task.
//
// The package does no IO, starts no goroutine and keeps no state.
package dist
