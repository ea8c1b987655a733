package objectstore

import "syscall"

// hugeAbove is the size from which a buffer asks for huge pages. A fresh page costs a fault, which for pages of
// 4 KiB takes ten times longer than copying a value into them.
const hugeAbove = 4 << 20

func adviseHuge(b []byte) {
	if len(b) >= hugeAbove {
		const madvHugepage = 14
		_ = syscall.Madvise(b, madvHugepage) // advice; a kernel without huge pages refuses it
	}
}
