// Package tpc makes the data of TPC-H and TPC-DS, gives their queries, runs them in one DuckDB process as the baseline,
// and decides whether a result is right.
//
// # Data
//
// DuckDB's own generators, which are linked into the library, write the tables; they are stored as Parquet files in
// DIR/TABLE/TABLE-N.parquet. [Suite.Generate] builds a directory under another name and renames it when it is complete, so
// a directory that exists is whole, also when it is interrupted or run twice at once.
//
// # When two results are equal
//
// [Compare] asks for the same column names, the same DuckDB types, the same rows as a multiset, and for queries with
// ORDER BY the same sequence of order keys: rows whose keys are equal may stand in any order among themselves, all
// others may not. Values are compared exactly. The one exception are DOUBLE columns that end in a division
// ([Rule].Divided): their last bits may depend on the order of additions before it, so a relative difference of up to
// [Tolerance] passes, and the report counts how many values needed it.
//
// The rules of TPC-H are written down; those of TPC-DS are read off DuckDB's own plan of each query ([DuckDB.Rule]).
//
// [CompareAnswer] does the same with an official answer, which is text: numbers are compared as numbers, whatever
// zeros they end in, and an empty field is NULL.
package tpc
