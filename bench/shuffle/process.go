package shuffle

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// process is what a process uses.
type process struct {
	CPU time.Duration // of processor time, user and system
	RSS int64         // most resident memory, in bytes, since resetPeak; 0 where the system does not tell
}

func thisProcess() (p process) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		p.CPU = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == "VmHWM" {
			var kib int64
			_, _ = fmt.Sscan(value, &kib)
			p.RSS = kib << 10
		}
	}
	return p
}

// resetPeak makes the peak what is resident now, where the system can.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
