// Package shuffle measures the exchanges beside the limits of their machine.
//
// Producers scatter batches of fixed-width columns to partitions, readers sum a column of what arrives, and the sums and the
// rows are compared: a figure of a run that lost a row is not reported. In the same run, in turn with the modes, the machine's
// limits are measured: copying memory, the partitioning kernel alone on the same batches, one raw TCP stream over
// loopback, and writing and reading a file. A spin calibration brackets every round, because shared machines change speed
// within minutes.
//
// With one process, producers and readers are tasks of one node. With two, all producers are on the one and all readers on
// the other, so every byte crosses. With three, both go round all nodes and two thirds of the bytes cross. The further
// processes are made by Options.Spawn and run Serve: real processes, real gRPC.
package shuffle
