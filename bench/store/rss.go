package store

import (
	"fmt"
	"os"
	"strings"
)

// rss returns the resident memory of this process, and what of it is not pages of files; zeros where the system
// does not tell.
func rss() (all, anon int64) {
	return procStatus("VmRSS"), procStatus("RssAnon")
}

// peakRSS returns the most there was since resetPeak.
func peakRSS() int64 { return procStatus("VmHWM") }

func procStatus(name string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			var kib int64
			_, _ = fmt.Sscan(value, &kib)
			return kib << 10
		}
	}
	return 0
}

// resetPeak makes the peak what is resident now, where the system can.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
