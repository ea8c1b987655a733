package limits

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Process is what a process uses.
type Process struct {
	CPU time.Duration // of processor time, user and system
	RSS int64         // most resident memory, in bytes, since ResetPeak; 0 where the system does not tell
}

// ThisProcess reads what the system tells.
func ThisProcess() (p Process) {
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

// ResetPeak makes the peak what is resident now, where the system can.
func ResetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
