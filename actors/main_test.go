package actors

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

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
	code := m.Run()
	var leak error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); { // connections that failed go after seconds only
		if leak = goleak.Find(); leak == nil {
			break
		}
	}
	if leak != nil && code == 0 {
		fmt.Fprintln(os.Stderr, leak)
		code = 1
	}
	os.Exit(code)
}
