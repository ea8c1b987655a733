package actors

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(processMain())
	}
	goleak.VerifyTestMain(m)
}
