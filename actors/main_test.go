package actors

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var long = flag.Bool("long", false, "run every combination of workload and fault")

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(processMain())
	}
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("8") // these tests wait more than they compute
	}
	goleak.VerifyTestMain(m)
}
