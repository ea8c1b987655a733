package plan

import "fmt"

// UnsupportedError says that a plan, or a part of it, has no known meaning or no SQL spelling here. The statement may
// still be valid: run its original text.
type UnsupportedError struct {
	What string // for a reader: "operator LOGICAL_PIVOT", "key foo of LOGICAL_GET"
}

func (e *UnsupportedError) Error() string { return "plan: unsupported: " + e.What }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{What: fmt.Sprintf(format, args...)}
}

// malformed is about a plan that contradicts what is known of DuckDB's format: as unusable as an unknown operator.
func malformed(format string, args ...any) error {
	return unsupported("malformed plan: "+format, args...)
}
