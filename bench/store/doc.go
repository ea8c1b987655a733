// Package store measures an object store beside the limits of its machine: copying memory, and writing and
// reading files. Limits and store are measured in turn, in the same run, on values of the same size with the same
// number of callers; a figure is the median of its rounds. Files are written as the store writes them, without waiting
// for the disk; before anything is read back, the system is made to forget it, where it can be.
package store
