//go:build !linux

package objectstore

func adviseHuge([]byte) {}
