package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

// TestScripts runs the command lines in testdata/script. Each has a folder and a
// folder for temporary files of its own, and no MANTA_ variable; DATA is a folder with the
// tables of TPC-H, BUSY an address that is taken, and NOBODY one at which nobody listens.
//
// Beside testscript's own, there are the commands
//
//	runs ARGS…        manta ARGS succeeds, with nothing on standard error
//	fails CODE ARGS…  manta ARGS fails with that exit code, prints nothing, and
//	                  says why in one line; where to get help follows wrong usage
func TestScripts(t *testing.T) {
	t.Parallel()
	tables := data(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { busy.Close() })
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, nobody.Close())

	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("DATA", tables)
			e.Setenv("BUSY", busy.Addr().String())
			e.Setenv("NOBODY", nobody.Addr().String())
			temp := e.Getenv("TMPDIR")
			e.Defer(func() {
				left, err := os.ReadDir(temp)
				if err != nil || len(left) > 0 {
					e.T().Fatal("left in the folder of temporary files:", left, err)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"runs":  runs,
			"fails": fails,
		},
	})
}

func runs(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use fails")
	}
	ts.Check(ts.Exec("manta", args...))
	if text := ts.ReadFile("stderr"); text != "" {
		ts.Fatalf("standard error should be empty: %s", text)
	}
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fails CODE ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("manta", args[1:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("want exit code %d, got: %v", want, err)
	}
	if ts.ReadFile("stdout") != "" {
		ts.Fatalf("standard output should be empty")
	}
	if problem := complaint(ts.ReadFile("stderr"), want); problem != "" {
		ts.Fatalf("%s", problem)
	}
}

// complaint tells what is wrong with what a failing manta says on standard error.
func complaint(text string, code int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if quote := len(lines) == 3 && strings.HasPrefix(lines[1], "LINE ") && strings.TrimLeft(lines[2], " ") == "^"; quote {
		lines = lines[:1]
	}
	switch {
	case code == exitFailure && len(lines) != 1:
		return "want one line on standard error, or one and a quotation of the query"
	case code == exitUsage && (len(lines) != 2 || !strings.HasPrefix(lines[1], "See 'manta ") || !strings.HasSuffix(lines[1], "--help'.")):
		return "want one line on standard error, and one that says where to get help"
	case !strings.HasPrefix(lines[0], "manta: ") || len(lines[0]) > 400:
		return "want a short line that begins with the name of the program"
	}
	for _, p := range []string{"planner: ", "actors: ", "shuffle: ", "objectstore: ", "kernel: ", "tpc: ", "bench: ", "rpc error", "goroutine", "%!"} {
		if strings.Contains(lines[0], p) {
			return "a user should not see " + strconv.Quote(p)
		}
	}
	return ""
}
