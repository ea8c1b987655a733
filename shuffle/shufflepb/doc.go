// Package shufflepb holds the control messages of exchanges.
package shufflepb

//go:generate protoc --go_out=. --go_opt=paths=source_relative shuffle.proto
