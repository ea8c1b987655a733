// Package wire holds the runtime's messages as protobuf generates them.
package wire

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative control.proto head.proto runtime.proto
