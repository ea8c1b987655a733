package shuffle

import (
	"fmt"
	"slices"
	"strings"
)

// Mode is how an exchange moves rows.
type Mode string

const (
	Concat      Mode = "concat"
	Disk        Mode = "disk"
	ObjectStore Mode = "object-store"
	Streaming   Mode = "streaming"
)

// Modes are all modes, the baseline first.
var Modes = []Mode{Concat, Disk, ObjectStore, Streaming}

// ParseMode accepts the names of Modes.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains(Modes, m) {
		return m, nil
	}
	names := make([]string, len(Modes))
	for i, m := range Modes {
		names[i] = string(m)
	}
	return "", fmt.Errorf("shuffle: unknown mode %q (want one of %s)", s, strings.Join(names, ", "))
}
