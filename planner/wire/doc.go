// Package wire holds the protobuf messages of the SQL layer: the client's
// calls to the head and the description of a stage task.
//
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative planner.proto
package wire
