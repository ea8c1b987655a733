package plan

import (
	"errors"
	"fmt"
)

// ErrMalformed is wrapped by errors about text that is not a serialized plan at all.
var ErrMalformed = errors.New("plan: malformed plan")

// UnsupportedError says that a plan, or a part of it, has no known meaning or no SQL spelling here. The statement may
// still be valid: run its original text.
type UnsupportedError struct {
	What string // for a reader: "operator LOGICAL_PIVOT", "key foo of LOGICAL_GET"
}

func (e *UnsupportedError) Error() string { return "plan: unsupported: " + e.What }

func unsupported(format string, args ...any) error {
	return &UnsupportedError{What: fmt.Sprintf(format, args...)}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}
