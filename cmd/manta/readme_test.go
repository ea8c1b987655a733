package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const repository = "../.."

// coveredByCI are the commands of the README that .ci/run runs, and its line that does.
var coveredByCI = map[string]string{
	"go run ./cmd/manta bench tpch --sf 0.1": "go run ./cmd/manta bench tpch --sf 0.1",
	"go test ./...":                          "go test -count=1 -shuffle=on ./...",
	"go build ./cmd/manta":                   "go build ./...",
}

// TestReadmeCommands runs every command in the README in the order in which they
// stand there, but for those that .ci/run runs. A `text` block right after an `sh`
// block is what its last command prints. The addresses in it become free ones.
func TestReadmeCommands(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	ci, err := os.ReadFile(filepath.Join(repository, ".ci/run"))
	require.NoError(t, err)
	ciLines := strings.Split(string(ci), "\n")

	r := newReader(t)
	commands := 0
	for _, block := range readmeBlocks(t) {
		switch block.language {
		case "go":
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "sales.go"), []byte(block.text), 0o600))
		case "text":
			if block.follows == "sh" {
				assert.Equal(t, plain(block.text, "/home/me"), plain(r.output, r.dir), "line %d of the README", block.line)
			}
		case "sh":
			exports := ""
			for _, command := range shellCommands(block.text) {
				switch line, covered := coveredByCI[command]; {
				case covered:
					assert.Contains(t, ciLines, line, ".ci/run should run %s", command)
				case strings.HasPrefix(command, "export "):
					exports += command + "\n"
				default:
					r.do(exports, command)
				}
				commands++
			}
		default:
			t.Errorf("line %d of the README: a block of %q: commands are in sh blocks, output in text blocks", block.line, block.language)
		}
	}
	require.Greater(t, commands, 15, "the commands of the README were not found")
}

// TestReadmeFlags looks up every long flag that the README speaks of.
func TestReadmeFlags(t *testing.T) {
	known := map[string]bool{}
	var collect func(*cobra.Command)
	collect = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) { known["--"+f.Name] = true })
		for _, sub := range c.Commands() {
			collect(sub)
		}
	}
	collect(newRoot())
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	for _, flag := range regexp.MustCompile("[ `](--[a-z-]+)").FindAllStringSubmatch(string(text), -1) {
		assert.True(t, known[flag[1]], "no command has the flag %s", flag[1])
	}
}

// TestDocumentsNameFiles looks up every file and folder that the documents speak of.
func TestDocumentsNameFiles(t *testing.T) {
	names := regexp.MustCompile("`((?:" + strings.Join(layers, "|") + ")/[a-z0-9_/.-]*)`")
	for _, document := range []string{"README.md", "ARCHITECTURE.md"} {
		text, err := os.ReadFile(filepath.Join(repository, document))
		require.NoError(t, err)
		for _, name := range names.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(repository, name[1]))
			assert.NoError(t, err, "%s names it", document)
		}
	}
}

// readmeBlock is a fenced block.
type readmeBlock struct {
	language, text string
	line           int
	follows        string // the language of the block before, when there is nothing between
}

func readmeBlocks(t *testing.T) []readmeBlock {
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	var blocks []readmeBlock
	inside, last := false, ""
	for i, line := range strings.Split(string(text), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !inside:
			blocks = append(blocks, readmeBlock{language: fence, line: i + 1, follows: last})
			inside = true
		case isFence:
			inside, last = false, blocks[len(blocks)-1].language
		case inside:
			blocks[len(blocks)-1].text += line + "\n"
		case line != "":
			last = ""
		}
	}
	require.False(t, inside, "a block without an end")
	return blocks
}

// shellCommands splits a block into commands: a line each, but for lines that end in a backslash.
func shellCommands(block string) []string {
	var commands []string
	for line := range strings.Lines(strings.ReplaceAll(block, "\\\n", "")) {
		if line = strings.TrimSpace(line); line != "" {
			commands = append(commands, line)
		}
	}
	return commands
}

// reader does what a reader of the README does, in a folder of its own.
type reader struct {
	t       *testing.T
	dir     string
	output  string    // of the last command
	cluster []*daemon // the head first
	address string    // of the head
}

// daemon is a head or a worker that runs.
type daemon struct {
	command string
	process *exec.Cmd
}

func newReader(t *testing.T) *reader {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	// The test binary is manta when it is called so.
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(dir, "manta")))
	r := &reader{t: t, dir: dir}
	t.Cleanup(r.stopCluster)
	return r
}

// do runs one command after the exports of its block.
func (r *reader) do(exports, command string) {
	switch {
	case strings.HasPrefix(command, "./manta head"):
		r.stopCluster()
		r.address = freeAddress(r.t)
		if !strings.Contains(command, "--listen") {
			command += " --listen " + r.address
		}
		r.start(exports, command)
	case strings.HasPrefix(command, "./manta worker"):
		r.start(exports, command)
	case command == "go run sales.go":
		// A program that is not in the module is built in the module's folder; it runs beside its data.
		build := exec.CommandContext(r.limit(3*time.Minute), "go", "build", "-o", filepath.Join(r.dir, "sales"), filepath.Join(r.dir, "sales.go"))
		build.Dir = repository
		out, err := build.CombinedOutput()
		require.NoError(r.t, err, "%s", out)
		r.run("", "./sales")
	default:
		r.run(exports, command)
	}
}

// shell is the command as it would run in a terminal of its own, with this run's addresses.
func (r *reader) shell(ctx context.Context, exports, command string) *exec.Cmd {
	_, port, _ := net.SplitHostPort(r.address)
	script := strings.NewReplacer("127.0.0.1:7070", r.address, "head.example:7070", r.address, "0.0.0.0:7070", "0.0.0.0:"+port).
		Replace(exports + command + "\n")
	c := exec.CommandContext(ctx, "sh", "-eu", "-c", script)
	c.Dir = r.dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "MANTA_") {
			c.Env = append(c.Env, variable)
		}
	}
	return c
}

func (r *reader) limit(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	r.t.Cleanup(cancel)
	return ctx
}

// run runs a command to its end. It must succeed, and have nothing to complain about.
func (r *reader) run(exports, command string) {
	c := r.shell(r.limit(2*time.Minute), exports, command)
	var complaints strings.Builder
	c.Stderr = &complaints
	out, err := c.Output()
	require.NoError(r.t, err, "%s\n%s%s", command, out, complaints.String())
	require.Empty(r.t, complaints.String(), command)
	r.output = string(out)
}

// start starts a head or a worker, and waits until it is ready.
func (r *reader) start(exports, command string) {
	// The shell makes way for the program, so that signals reach it.
	c := r.shell(context.Background(), exports, "exec "+command)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, c.Start(), command)
	r.cluster = append(r.cluster, &daemon{command, c})
	ready := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		ready <- line
	}()
	select {
	case line := <-ready:
		require.Contains(r.t, line, " ready at ", command)
	case <-time.After(2 * time.Minute):
		require.Fail(r.t, "it does not get ready", command)
	}
}

// stopCluster interrupts the workers and the head, which end well.
func (r *reader) stopCluster() {
	for i := len(r.cluster) - 1; i >= 0; i-- {
		d := r.cluster[i]
		assert.NoError(r.t, d.process.Process.Signal(syscall.SIGINT), d.command)
		kill := time.AfterFunc(patience, func() { _ = d.process.Process.Kill() })
		assert.NoError(r.t, d.process.Wait(), d.command)
		kill.Stop()
	}
	r.cluster = nil
}

func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// plain is output without what differs from run to run: names, ports, times, and the folder home.
func plain(output, home string) string {
	for _, rule := range []struct{ pattern, with string }{
		{regexp.QuoteMeta(home) + "/", "HOME/"},
		{`\b(head|node)-[0-9a-f]{10}\b`, "$1-ID"},
		{`\b127\.0\.0\.1:\d+`, "ADDRESS"},
		{`\b[0-9.]+(ns|µs|ms|s)\b`, "TIME"},
		{`\d+ bytes sent`, "N bytes sent"},
		{`GiB +\d+ +\d+ +(head|worker)`, "GiB RUNNING WAITING $1"}, // of the last heartbeat
		{` +`, " "},
		{` \n`, "\n"},
	} {
		output = regexp.MustCompile(rule.pattern).ReplaceAllString(output, rule.with)
	}
	return output
}
