// Package sort sorts files of 100-byte records whose first 10 bytes are the key, more of them than fit into memory, with the
// tasks and exchanges that any program can use.
//
// A sample of the records gives bounds. Producers read an input file each and send every record to the range that it is in;
// a reader sorts the records of a range, by runs and a merge where they do not fit into its memory, and writes a file.
// One range after the other, these files are the output. With streaming, which cannot wait, every range has a reader at work
// from the beginning, and there are as many ranges as cores; in the other modes ranges are small enough to be
// sorted in memory, as many at a time as there are cores.
//
// Inputs are made before the clock starts. It runs from the first sample to the last byte of the output given to
// the system. Then the output is read: the records must be in order and as many as went in, with the same sum of their hashes.
package sort
