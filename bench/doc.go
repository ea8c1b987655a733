// Package bench measures Manta and compares it: the exchange modes with each
// other on the same work, and all of them with DuckDB in one process.
//
// A measurement never stands alone. Every answer is verified before its time
// counts, what is compared runs interleaved in one process on the same files,
// and a report names the machine, the versions and the spread.
package bench
