package objectstore

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func adviseHuge(b []byte) {
	const madvHugepage = 14
	_ = syscall.Madvise(b, madvHugepage) // advice; a kernel without huge pages refuses it
}

// adviseAhead has the system begin to read a part of a file.
func adviseAhead(f *os.File, off, n int64) {
	_ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_WILLNEED) // advice
}

// reserveFile gives a new file n bytes that are there, or fails.
func reserveFile(f *os.File, n int64) error { return syscall.Fallocate(int(f.Fd()), 0, 0, n) }

// dropMappedPages takes the pages of all mapped files of a folder with a suffix out of this process. They are
// shared with the files, so nothing is lost: touching one maps it again. The files must stay mapped meanwhile.
func dropMappedPages(folder, suffix string) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	prefix := strings.TrimSuffix(folder, "/") + "/"
	for line := range strings.Lines(string(maps)) {
		at := strings.IndexByte(line, '/')
		if at < 0 {
			continue
		}
		path := strings.TrimSuffix(line[at:], "\n")
		if !strings.HasPrefix(path, prefix) || !strings.HasSuffix(path, suffix) {
			continue
		}
		var from, to uintptr
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); err == nil && strings.HasSuffix(mode, "s") {
			_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED)
		}
	}
}
