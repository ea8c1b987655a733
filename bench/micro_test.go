package bench

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkMicro measures rows in process; choose one with -bench Micro/name.
func BenchmarkMicro(b *testing.B) {
	for _, row := range microRows {
		if _, ok := microClientRows[row.name]; ok {
			continue
		}
		b.Run(row.name, func(b *testing.B) {
			o := MicroOptions{Big: 80_000_000}
			err := withMicroCluster(b.Context(), o, false, func(e *microEnv) error {
				run, err := row.setup(b.Context(), e)
				if err != nil {
					return err
				}
				var units float64
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					n, err := run(b.Context())
					if err != nil {
						return err
					}
					units += n
				}
				b.ReportMetric(float64((cpuTime()-before).Nanoseconds())/units, "cpu-ns/unit")
				b.ReportMetric(units/b.Elapsed().Seconds(), "units/s")
				return nil
			})
			require.NoError(b, err)
		})
	}
}

// cpuTime is what the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestMicro(t *testing.T) {
	report, err := RunMicro(context.Background(), MicroOptions{PerRow: time.Millisecond, Runs: 1, Big: 1_000_000, Rows: "single client"})
	require.NoError(t, err)
	require.NotEmpty(t, report.Results)
	for _, r := range report.Results {
		require.Positive(t, r.InProcess, r.Name)
	}
}

// A Ray that fails takes nothing away of what was measured, and says why.
func TestMicroRayFails(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python")
	script := "#!/bin/sh\necho 'single client wait 1k refs per second 5.5 +- 0.1'\necho 'what went before' >&2\necho 'no memory' >&2\nexit 3\n"
	require.NoError(t, os.WriteFile(python, []byte(script), 0o700))
	report, err := RunMicro(context.Background(), MicroOptions{
		PerRow: time.Millisecond, Runs: 1, Big: 1_000_000, Rows: "wait 1k refs", Ray: python,
	})
	require.ErrorContains(t, err, "exit status 3: no memory")
	require.Len(t, report.Results, 1)
	require.Positive(t, report.Results[0].InProcess)
	require.Equal(t, 5.5, report.Results[0].RayMeasured)
}
