// Package store measures an object store beside the limits of its machine: copying memory, and writing and
// reading files. Limits and store are measured in turn, in the same run, on values of the same size with the same
// number of callers; a figure is the median of its rounds.
package store
