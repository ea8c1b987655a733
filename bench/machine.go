package bench

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"manta/actors"
	"manta/planner/kernel"
)

// Machine describes where a measurement was made.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

// ThisMachine reads what the system tells; what it does not tell is empty.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	m.CPU = procField("/proc/cpuinfo", "model name")
	var kib int64
	if _, err := fmt.Sscan(procField("/proc/meminfo", "MemTotal"), &kib); err == nil {
		m.MemoryBytes = kib << 10
	}
	return m
}

// String is one line.
func (m Machine) String() string {
	cpu := m.CPU
	if cpu == "" {
		cpu = m.Arch
	}
	return fmt.Sprintf("%s, %d cores, %d MiB, %s", cpu, m.Cores, m.MemoryBytes>>20, m.OS)
}

// procField returns the value of the first line "name : value" of a file.
func procField(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Versions are those that a measurement depends on.
func Versions() map[string]string {
	v := map[string]string{"manta": actors.Version, "duckdb": kernel.Version(), "go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.HasPrefix(dep.Path, "github.com/apache/arrow-go/") {
				v["arrow-go"] = dep.Version
			}
		}
	}
	return v
}

// resetPeakRSS makes the peak resident memory of this process what it is now. It
// reports false where the system cannot; the peak is then that of the whole run.
func resetPeakRSS() bool {
	return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
}
