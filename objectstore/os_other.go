//go:build !linux && !darwin

package objectstore

import (
	"errors"
	"math"
	"os"
)

// On systems where the calls of os_unix.go are missing the store works with what Go offers everywhere: memory
// comes from the heap, the directory is not protected from a second store, and the disk is taken to be large.

func mapMemory(n int) ([]byte, error) { return alignedHeap(n), nil }

func mapAligned(n, _ int) ([]byte, error) { return alignedHeap(n), nil }

func unmapMemory([]byte) error { return nil }

const locksFiles = false

func lockFile(*os.File) error { return nil }

func diskSpace(string) (free, total int64, err error) {
	return math.MaxInt64 / 128, math.MaxInt64 / 128, nil
}

func fileBytes(info os.FileInfo) int64 { return info.Size() }

func mapFile(*os.File, int64, bool) ([]byte, error) { return nil, errors.ErrUnsupported }
