package shuffle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	exchange "manta/shuffle"
)

// serveVariable makes the test binary a node of the benchmark.
const serveVariable = "MANTA_TEST_SERVE"

func TestMain(m *testing.M) {
	if text := os.Getenv(serveVariable); text != "" {
		var c ServeConfig
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = Serve(context.Background(), c, os.Stdin)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func spawn(c ServeConfig) *exec.Cmd {
	data, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+string(data))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestRun(t *testing.T) {
	for processes := 1; processes <= 3; processes++ {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			dir := t.TempDir()
			r, err := Run(context.Background(), Options{
				Bytes: 12 << 20, Processes: processes, Runs: 1, Skew: 0.5, RowsPerBatch: 1000, Columns: 3,
				Partitions: 5, Producers: 3, Memory: 16 << 20, Dir: dir, Spawn: spawn, TLS: processes == 3,
			})
			require.NoError(t, err)
			require.Len(t, r.Results, len(exchange.Modes))
			for _, x := range r.Results {
				require.Empty(t, x.Error, x.Mode)
				require.Equal(t, int64(12<<20)/24*24, x.Bytes)
				require.InDelta(t, 5/(1+1/math.Sqrt(2)+1/math.Sqrt(3)+1.0/2+1/math.Sqrt(5)), x.PartitionSkew, 0.05)
				require.Positive(t, x.GBps)
				require.Positive(t, x.GBpsPerCore)
				require.Positive(t, x.OfLimit)
				require.Equal(t, processes > 1, x.Crossed > 0)
				require.Equal(t, x.Mode != exchange.Streaming, x.References > 0)
				require.Positive(t, x.Limits.Memcpy)
				require.Positive(t, x.Limits.Partition)
				require.Positive(t, x.Limits.TCP)
				require.Positive(t, x.Limits.PartitionPerCore)
				require.Positive(t, x.Limits.TCPPerCore)
				require.Equal(t, x.Mode != exchange.Disk, x.OfLimitPerCore > 0)
				require.Positive(t, x.Limits.Disk)
			}
			var text bytes.Buffer
			r.WriteTable(&text)
			require.Contains(t, text.String(), "streaming")
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// A baseline that cannot do the work is a result, and the others are measured.
func TestConcatOutOfMemory(t *testing.T) {
	r, err := Run(context.Background(), Options{
		Bytes: 48 << 20, Runs: 1, Producers: 1, Memory: 8 << 20, StoreMemory: 16 << 20, Dir: t.TempDir(),
		Modes: []exchange.Mode{exchange.Streaming, exchange.Concat},
	})
	require.NoError(t, err)
	require.Empty(t, r.Results[0].Error)
	require.LessOrEqual(t, r.Results[0].ExchangePeakMiB, 1.5*r.Results[0].ExchangeMiB)
	require.Contains(t, r.Results[1].Error, "more than 16 MiB")
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Bytes: -1}, {RowsPerBatch: -1}, {Columns: -1}, {Partitions: -1}, {Producers: -1}, {Skew: -1}, {Processes: 4}, {Processes: 2}, {Runs: -1},
		{Modes: []exchange.Mode{"none"}},
	} {
		_, err := Run(context.Background(), o)
		require.Error(t, err, "%+v", o)
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Run(ctx, Options{Dir: t.TempDir()})
	require.ErrorIs(t, err, context.Canceled)
}
