package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"manta/actors"
	"manta/objectstore"
)

// MicroOptions say how the microbenchmark runs.
type MicroOptions struct {
	Rows     string        // only rows whose name contains this
	PerRow   time.Duration // of a run of a row; default 1 s
	Runs     int           // of a row, of which the median counts; default 3
	Workers  int           // processes in the cluster of processes; default as many as there are CPUs
	Command  []string      // starts a node that joins the head whose address is added; "" leaves cross-process figures out
	Big      int           // bytes of the large value; default 800 MB
	Envelope bool          // run the envelope too
	Ray      string        // a Python that has ray: run its benchmark beside
	Progress func(format string, args ...any)
}

// MicroResult is a row's rates per second; 0 if not measured.
type MicroResult struct {
	Name         string  `json:"name"`
	InProcess    float64 `json:"in_process_per_s"`
	CrossProcess float64 `json:"cross_process_per_s"`
	RayPublished float64 `json:"ray_published_per_s"`
	RayMeasured  float64 `json:"ray_measured_per_s,omitempty"`
}

// MicroEnvelope is one step of the scalability envelope.
type MicroEnvelope struct {
	Name      string  `json:"name"`
	Seconds   float64 `json:"seconds"`
	BytesEach float64 `json:"bytes_each"` // of memory, while all are there
}

// MicroReport is what the microbenchmark found. Ray's published figures are of one m5.16xlarge, with 64 vCPUs.
type MicroReport struct {
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Workers  int               `json:"workers"`
	Results  []MicroResult     `json:"results"`
	Envelope []MicroEnvelope   `json:"envelope,omitempty"`
}

// microEnv is a cluster with a job.
type microEnv struct {
	client *actors.Client
	cross  bool
	perRow time.Duration
	runs   int
	big    int
}

// RunMicro runs the rows of `ray microbenchmark` in one process, and across processes. When it is Ray that fails there is a
// report besides the error, with what was measured before.
func RunMicro(ctx context.Context, o MicroOptions) (*MicroReport, error) {
	if o.PerRow == 0 {
		o.PerRow = time.Second
	}
	if o.Runs == 0 {
		o.Runs = 3
	}
	if o.Workers == 0 {
		o.Workers = runtime.NumCPU()
	}
	if o.Big == 0 {
		o.Big = 800_000_000
	}
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	report := &MicroReport{Machine: ThisMachine(), Versions: Versions(), Workers: o.Workers}
	byName := make(map[string]*MicroResult)
	for _, row := range microRows {
		if row.published > 0 && strings.Contains(row.name, o.Rows) {
			report.Results = append(report.Results, MicroResult{Name: row.name, RayPublished: row.published})
		}
	}
	for i := range report.Results {
		byName[report.Results[i].Name] = &report.Results[i]
	}
	for _, cross := range []bool{false, true} {
		if cross && len(o.Command) == 0 {
			continue
		}
		err := withMicroCluster(ctx, o, cross, func(e *microEnv) error {
			for _, row := range microRows {
				r := byName[row.name]
				if r == nil {
					continue
				}
				o.Progress("%s (across processes: %v)", row.name, cross)
				rate, err := e.measure(ctx, row)
				if err != nil {
					return err
				}
				if cross {
					r.CrossProcess = rate
				} else {
					r.InProcess = rate
				}
				runtime.GC()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Envelope {
		err := withMicroCluster(ctx, o, false, func(e *microEnv) (err error) {
			report.Envelope, err = e.envelope(ctx, o.Progress)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if o.Ray != "" {
		o.Progress("ray microbenchmark")
		measured, err := rayMeasured(ctx, o.Ray)
		for name, r := range byName {
			r.RayMeasured = measured[name]
		}
		if err != nil {
			return report, err
		}
	}
	return report, nil
}

// withMicroCluster runs f with a cluster: a head with CPUs in this process, or a head without and workers in their own.
func withMicroCluster(ctx context.Context, o MicroOptions, cross bool, f func(*microEnv) error) (err error) {
	cfg := actors.Config{Store: objectstore.Config{MemoryLimit: int64(o.Big) + 1<<30}, NoTasks: cross}
	if !cross {
		cfg.InProcess = actors.NewHub()
	}
	n, err := actors.Start(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	if cross {
		stop, err := startWorkers(ctx, n, o)
		defer stop()
		if err != nil {
			return err
		}
	}
	c, err := n.NewClient(ctx, actors.JobSpec{Name: "micro"})
	if err != nil {
		return err
	}
	err = f(&microEnv{client: c, cross: cross, perRow: o.PerRow, runs: o.Runs, big: o.Big})
	return errors.Join(err, c.Close(err))
}

// startWorkers starts the worker processes and waits until they have joined. stop ends them.
func startWorkers(ctx context.Context, head *actors.Node, o MicroOptions) (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, cmd := range started {
			_ = cmd.Process.Signal(os.Interrupt)
		}
		for _, cmd := range started {
			_ = cmd.Wait()
		}
	}
	cpus := max(runtime.NumCPU()/o.Workers, 1)
	for range o.Workers {
		args := append(slices.Clone(o.Command[1:]), "--head", head.Address(), "--cpus", strconv.Itoa(cpus), "--memory", "8GiB")
		cmd := exec.Command(o.Command[0], args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return stop, fmt.Errorf("start a worker: %w", err)
		}
		started = append(started, cmd)
	}
	deadline := time.Now().Add(15 * time.Second)
	for {
		alive := 0
		for _, info := range head.Nodes() {
			if info.State == actors.NodeAlive && !info.Head {
				alive++
			}
		}
		if alive == o.Workers {
			return stop, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return stop, fmt.Errorf("%d of %d worker processes joined", alive, o.Workers)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var rayLine = regexp.MustCompile(`^(.*?)(?: \(.*\))? per second ([0-9.]+)`)

// rayMeasured runs Ray's own benchmark. With an error come the rows before it.
func rayMeasured(ctx context.Context, python string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, python, "-c", "from ray._private.ray_perf import main; main()")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var complaints tail
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run ray's benchmark: %w", err)
	}
	rates := make(map[string]float64)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := rayLine.FindStringSubmatch(lines.Text()); m != nil {
			rates[m[1]], _ = strconv.ParseFloat(m[2], 64)
		}
	}
	if err := cmd.Wait(); err != nil {
		return rates, fmt.Errorf("%s did not run ray's benchmark; has it the package ray? %w: %s", python, err, complaints.line())
	}
	return rates, nil
}

// tail is the end of what a process writes.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-4<<10):]
	return len(p), nil
}

// line is the last one.
func (t *tail) line() string {
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	return lines[len(lines)-1]
}

// WriteTable writes the report for people.
func (r *MicroReport) WriteTable(w io.Writer) {
	fmt.Fprintf(w, "%s; across processes: a head and %d workers. Ray's published figures are of a machine with 64 vCPUs.\n", r.Machine, r.Workers)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "per second\tin process\t×\tacross processes\t×\tRay, published\tRay, here")
	for _, x := range r.Results {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.Name, rateText(x.InProcess), timesText(x.InProcess, x.RayPublished),
			rateText(x.CrossProcess), timesText(x.CrossProcess, x.RayPublished), rateText(x.RayPublished), rateText(x.RayMeasured))
	}
	_ = t.Flush()
	if len(r.Envelope) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "envelope\tseconds\tbytes each")
	for _, x := range r.Envelope {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\n", x.Name, x.Seconds, x.BytesEach)
	}
	_ = t.Flush()
}

func rateText(x float64) string {
	switch {
	case x == 0:
		return "-"
	case x < 100:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func timesText(x, of float64) string {
	if x == 0 || of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", x/of)
}
