package planner

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/extensions"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The program may know Arrow's extension types, or not: here it does, and no answer changes.
var _ = extensions.NewUUIDType
